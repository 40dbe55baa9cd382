package sim

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"
)

// Options changes how a world is run. The zero value is a plain one.
type Options struct {
	// Calm leaves out all faults and crashes.
	Calm bool
	// Trace keeps what happens, line by line.
	Trace bool

	mutant func(store) store
	change func(*plan)
	story  *story
}

// Report is what became of a world.
type Report struct {
	Seed       uint64
	Violations []string
	Stats      Stats
	Trace      []string
	// Journal is what the store has in the end, in a form without what may differ
	// between two worlds of one seed.
	Journal []string
}

// Stats counts what happened.
type Stats struct {
	Acked, Landed, Refused, Repeats int // commits; repeats of one
	Leases, Renewals, Held          int
	Takeovers, Fenced               int // of leases; commits refused for that
	Deaths, StoreCrashes, Stops     int
	Runs, Waits, Natural, Cancelled int // parts of runs
	Hooks, Bodies, Reruns           int
	Decisions, Late, Forks, Prunes  int // decisions that were refused as late
	Durable, Delivered, Duplicates  int // effects
	Rebuilt                         int // states that were compared with the journal
}

// Add adds other to s.
func (s *Stats) Add(other Stats) {
	a, b := reflect.ValueOf(s).Elem(), reflect.ValueOf(other)
	for i := range a.NumField() {
		a.Field(i).SetInt(a.Field(i).Int() + b.Field(i).Int())
	}
}

// String returns the counts as name=number, none twice.
func (s Stats) String() string {
	var out []string
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		out = append(out, fmt.Sprintf("%s=%d", strings.ToLower(v.Type().Field(i).Name), v.Field(i).Int()))
	}
	return strings.Join(out, " ")
}

// Run lives the world of a seed. It must be called in a bubble of testing/synctest.
func Run(seed uint64, o Options) Report {
	p := newPlan(seed)
	if o.Calm {
		p = p.withoutFaults()
	}
	if o.change != nil {
		o.change(&p)
	}
	if o.Trace && o.story == nil {
		o.story = &story{}
	}
	w := newWorld(p, o)
	w.run()
	r := Report{Seed: seed, Violations: w.ledger.violations, Stats: w.ledger.stats, Journal: w.ledger.journal()}
	if o.story != nil {
		r.Trace = o.story.all()
	}
	return r
}

// story is what happened, for people.
type story struct {
	mu    sync.Mutex
	lines []string
}

func (s *story) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines
}

func (w *world) tracing() bool { return w.story != nil }

func (w *world) trace(who, format string, args ...any) {
	if w.story == nil {
		return
	}
	since := time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
	w.story.mu.Lock()
	defer w.story.mu.Unlock()
	w.story.lines = append(w.story.lines, fmt.Sprintf("%14.6fs %-7s %s", since.Seconds(), who, fmt.Sprintf(format, args...)))
}
