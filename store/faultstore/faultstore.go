package faultstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/ddd26017/fixpoint/store"
)

// Config says which faults strike. The zero value injects none.
type Config struct {
	Seed uint64
	// Rate is the share of calls, from 0 to 1, that each fault strikes. The shares of
	// all faults add up to at most 1.
	Rate map[Fault]float64
	// At has the fault of the n-th append of all, from 1; it goes before Rate.
	At map[int]Fault
}

var (
	// ErrInjected is the failure of a call that was not passed on.
	ErrInjected = errors.New("faultstore: injected failure: the call was not passed on")
	// ErrCrashed is returned by a crashed store until it is reopened. Such errors are
	// also store.ErrClosed, and that of the append that crashed it is
	// store.ErrUnknownOutcome.
	ErrCrashed = errors.New("faultstore: injected crash: reopen the store")
)

// Store is a store with faults. It implements [store.Journal], [store.Leaser],
// [store.Historian], [store.Queue] and [store.Notifier]; where the store behind it does
// not, the calls fail with errors.ErrUnsupported. It is safe for concurrent use.
type Store struct {
	config Config

	mu      sync.Mutex
	inner   store.Journal
	crashed bool
	broken  chan struct{} // closed by a crash and by Close
	closed  bool
	appends int
	calls   map[callKey]int
	late    []lateAppend
	counts  Counts
	trace   []Event
}

var (
	_ store.Journal   = (*Store)(nil)
	_ store.Leaser    = (*Store)(nil)
	_ store.Historian = (*Store)(nil)
	_ store.Queue     = (*Store)(nil)
	_ store.Notifier  = (*Store)(nil)
)

type callKey struct {
	op   Op
	name string
}

type lateAppend struct {
	commit store.Commit
	wait   int // how many more calls on the thread pass before it
}

// Counts says what has happened so far.
type Counts struct {
	Calls  map[Op]int
	Faults map[Fault]int
	Late   int // appends that were passed on late
	Landed int // those of them that the store took, repeats included
}

// New puts faults in front of inner. It refuses rates that make no sense.
func New(inner store.Journal, c Config) (*Store, error) {
	sum := 0.0
	for f, rate := range c.Rate {
		if f == None || f >= faults || !(rate >= 0 && rate <= 1) {
			return nil, fmt.Errorf("faultstore: rate %v of %s; want a fault and a rate from 0 to 1", rate, f)
		}
		sum += rate
	}
	if sum > 1+1e-9 {
		return nil, fmt.Errorf("faultstore: the rates add up to %v; want at most 1", sum)
	}
	for n, f := range c.At {
		if n < 1 || f >= faults {
			return nil, fmt.Errorf("faultstore: %s at append %d; want a fault at an append from 1 on", f, n)
		}
	}
	if inner == nil {
		return nil, errors.New("faultstore: there is no store to put faults in front of")
	}
	c.Rate, c.At = maps.Clone(c.Rate), maps.Clone(c.At)
	return &Store{
		config: c,
		inner:  inner,
		broken: make(chan struct{}),
		calls:  map[callKey]int{},
		counts: Counts{Calls: map[Op]int{}, Faults: map[Fault]int{}},
	}, nil
}

// Counts returns a copy of the counts.
func (s *Store) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts
	c.Calls, c.Faults = maps.Clone(c.Calls), maps.Clone(c.Faults)
	return c
}

// Trace returns all calls in the order in which they came, with their faults.
func (s *Store) Trace() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.trace)
}

// Reopen ends a crash: inner is the store that was opened again, or nil to go on
// with the one there was. Commits that are still under way stay so, as messages of a
// process that died do.
func (s *Store) Reopen(inner store.Journal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if inner != nil {
		s.inner = inner
	}
	if s.crashed || s.closed {
		s.crashed, s.closed = false, false
		s.broken = make(chan struct{})
	}
}

// Flush passes on all appends that are late, and returns how many the store took.
func (s *Store) Flush(ctx context.Context) int {
	s.mu.Lock()
	late, inner := s.late, s.inner
	s.late = nil
	s.mu.Unlock()
	return s.deliver(ctx, inner, late)
}

func (s *Store) deliver(ctx context.Context, inner store.Journal, late []lateAppend) (landed int) {
	for _, l := range late {
		if _, err := inner.Append(context.WithoutCancel(ctx), l.commit); err == nil {
			landed++
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Late += len(late)
	s.counts.Landed += landed
	return landed
}

// turn is one call on its way through.
type turn struct {
	inner  store.Journal
	fault  Fault
	dice   *dice
	broken <-chan struct{}
}

// begin counts a call, chooses its fault and passes on what was to come before it.
func (s *Store) begin(ctx context.Context, op Op, name string) (turn, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return turn{}, fmt.Errorf("faultstore: the store was closed: %w", store.ErrClosed)
	}
	if s.crashed {
		s.mu.Unlock()
		return turn{}, errCrashed
	}
	key := callKey{op, name}
	s.calls[key]++
	d := s.config.dice(op, name, s.calls[key])
	fault := s.config.pick(d, op)
	if op == OpAppend {
		s.appends++
		if f, planned := s.config.At[s.appends]; planned {
			fault = f
		}
	}
	s.counts.Calls[op]++
	if fault != None {
		s.counts.Faults[fault]++
	}
	s.trace = append(s.trace, Event{Op: op, Name: name, Call: s.calls[key], Fault: fault})

	due := s.arrivals(op, name)
	t := turn{inner: s.inner, fault: fault, dice: d, broken: s.broken}
	s.mu.Unlock()
	s.deliver(ctx, t.inner, due)
	return t, nil
}

// arrivals takes out the late appends that come just before a call. The lock is held.
func (s *Store) arrivals(op Op, name string) (due []lateAppend) {
	switch op {
	case OpThreads, OpClaim, OpLanes, OpDepth, OpDead, OpNotify, OpListen:
		return nil // not of a thread
	}
	rest := s.late[:0]
	for _, l := range s.late {
		switch {
		case l.commit.Thread != name:
			rest = append(rest, l)
		case l.wait == 0:
			due = append(due, l)
		default:
			l.wait--
			rest = append(rest, l)
		}
	}
	clear(s.late[len(rest):])
	s.late = rest
	return due
}

var errCrashed = fmt.Errorf("%w (%w)", ErrCrashed, store.ErrClosed)
