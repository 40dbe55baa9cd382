//go:build unix

package crew

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ddd26017/fixpoint/phase"
)

// CutOptions says how much Cut is to do.
type CutOptions struct {
	Options
	Rounds    int
	Namespace bool // cut a wire between two network namespaces, which needs root; else a proxy
}

// CutReport is what Cut found. The check failed when Err returns an error.
type CutReport struct {
	Rounds     int
	During     int           // healed while the other worker was still at it
	Threads    int           // under way on a worker when it was cut off
	TakenOver  int           // of them gone on with by another worker
	Stale      int           // results of the cut-off worker that came into a thread after the takeover
	Meanwhile  int           // bodies that it began while cut off
	Fenced     int64         // its runs that ended because it was fenced off
	Undead     int           // bodies that it began after another worker had committed the result
	Repeated   int           // bodies that another worker began although their result was committed
	Duplicates int           // deliveries for the second time or later, with the same id
	Missing    int           // durable effects not delivered
	Orphaned   time.Duration // longest time from the cut until a run went on elsewhere
	fault      error
}

// Err returns what was wrong, nil for nothing.
func (r *CutReport) Err() error { return r.fault }

// Cut cuts a worker off its server in the middle of its runs, in each round, has another
// one take them over, and lets the first one go on. What that one does until it learns that it
// was taken over is not promised: a call whose begin was committed just before the cut may
// have its body begin when the acknowledgement comes.
func Cut(ctx context.Context, o CutOptions) (*CutReport, error) {
	rep := &CutReport{}
	random := rand.New(rand.NewPCG(o.Seed, 22))
	name := o.Name
	for round := range o.Rounds {
		o.Name = fmt.Sprintf("%s%d", name, round)
		if err := rep.round(ctx, o, round, random); err != nil {
			return rep, fmt.Errorf("crew: round %d: %w", round, err)
		}
	}
	return rep, nil
}

// wire leads from a worker to its server, and can be cut.
type wire struct {
	proxy *proxy
	space *namespace
}

func newWire(o CutOptions, number int) (w *wire, err error) {
	w = &wire{}
	listen := "127.0.0.1:0"
	if o.Namespace {
		if w.space, err = newNamespace(number); err != nil {
			return nil, err
		}
		listen = net.JoinHostPort(w.space.host, "0")
	}
	network, address := o.Server.Endpoint()
	if w.proxy, err = newProxy(listen, network, address); err != nil && w.space != nil {
		err = errors.Join(err, w.space.close())
	}
	return w, err
}

func (w *wire) cut() error {
	if w.space != nil {
		return w.space.cut()
	}
	w.proxy.cut()
	return nil
}

func (w *wire) heal() error {
	if w.space != nil {
		return w.space.heal()
	}
	w.proxy.heal()
	return nil
}

func (w *wire) enter(cmd *exec.Cmd) {
	if w.space != nil {
		w.space.enter(cmd)
	}
}

func (w *wire) close() error {
	err := w.proxy.close()
	if w.space != nil {
		err = errors.Join(err, w.space.close())
	}
	return err
}

// steps of a run: enough that it can be cut off in its middle, for longer than a lease.
const cutSteps = 12

func (r *CutReport) round(ctx context.Context, o CutOptions, number int, random *rand.Rand) (err error) {
	s, err := newStaff(ctx, o.Options)
	if err != nil {
		return err
	}
	w, err := newWire(o, number)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	slow := func(j *job) { j.Think, j.Work = o.Lease/40, o.Lease/40 }
	first, cutOff, err := s.hire(ctx, func(j *job) {
		slow(j)
		j.Address = j.Address.Via(w.proxy.listener.Addr())
	}, w.enter)
	if err != nil {
		return err
	}
	var ended atomic.Int64
	half := make(chan struct{})
	runs, waiting := errgroup.WithContext(ctx)
	for i := range o.Threads {
		t := task{Thread: fmt.Sprintf("thread-%d", i), Steps: cutSteps}
		receipt, err := s.submit(ctx, activation(t))
		if err != nil {
			return err
		}
		runs.Go(func() error {
			outcome, err := s.await(waiting, receipt)
			if err == nil && (outcome.Status != phase.Done || outcome.Reason != phase.ReasonNatural) {
				err = fmt.Errorf("%s ended so: %+v", t.Thread, outcome)
			}
			if ended.Add(1) == int64(o.Threads+1)/2 {
				close(half)
			}
			return err
		})
	}
	// All are under way, and some have results.
	if err := s.until(ctx, func() bool { return s.bodies.Load() > int64(2*o.Threads+random.IntN(2*o.Threads)) }); err != nil {
		return err
	}
	at := time.Now().UnixNano()
	if err := w.cut(); err != nil {
		return err
	}
	s.out.write(line{Kind: lineCut, Worker: cutOff, Time: at})
	second, other, err := s.hire(ctx, slow, nil)
	if err != nil {
		return err
	}
	during := number%2 == 0
	all := make(chan error, 1)
	go func() { all <- runs.Wait() }()
	if during {
		select {
		case <-half:
		case <-ctx.Done():
		}
	} else if err := <-all; err != nil {
		return err
	}
	s.out.write(line{Kind: lineHealed, Worker: cutOff})
	if err := w.heal(); err != nil {
		return err
	}
	if during {
		r.During++
		if err := <-all; err != nil {
			return err
		}
	}
	if err := s.empty(ctx); err != nil {
		return err
	}
	stats, err := s.dismiss(first)
	if err != nil {
		return err
	}
	if _, err := s.dismiss(second); err != nil {
		return err
	}
	if err := s.finish(); err != nil {
		return err
	}
	r.Rounds++
	r.Fenced += stats.LeaseLost
	return r.judge(ctx, s, cutOff, other)
}

func (r *CutReport) judge(ctx context.Context, s *staff, cutOff, other string) error {
	var sum totals
	for i := range s.Threads {
		thread := fmt.Sprintf("thread-%d", i)
		if err := s.audit(ctx, thread, 1, &sum); err != nil {
			return err
		}
		t, err := s.eng.OpenThread(ctx, thread)
		if err != nil {
			return err
		}
		taken := false
		for _, e := range s.hand.ledger.Get(t.Snapshot()).All() {
			taken = taken || e.Worker == other
			if e.Worker == cutOff && taken {
				r.Stale++
				s.watch.fault("%s: call %s of the worker that was cut off is in the state after the takeover", thread, e.Call)
			}
		}
		r.Threads++
		if taken {
			r.TakenOver++
		}
	}
	w := s.watch
	r.Meanwhile += w.meanwhile
	r.Undead += w.undead
	r.Repeated += w.repeated
	r.Duplicates += w.duplicates
	r.Missing += sum.missing
	r.Orphaned = max(r.Orphaned, w.orphaned)
	r.fault = errors.Join(r.fault, w.err())
	return s.close()
}
