//go:build unix

package crew

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ddd26017/fixpoint/internal/faults/talk"
	"github.com/ddd26017/fixpoint/phase"
)

// KillOptions says how much Kill is to do.
type KillOptions struct {
	Options
	Workers  int           // processes at the same time: 3
	Duration time.Duration // of the kills; then the runs that began may end
	Pause    time.Duration // between two kills, on average
	Think    time.Duration // that a call of the model takes: 10 ms
	Work     time.Duration // that a tool takes: 10 ms
}

// KillReport is what Kill found. The check failed when Err returns an error.
type KillReport struct {
	Kills      int
	Restarts   int // workers that could not start, because the server was too slow, and did later
	Threads    int
	Runs       int
	Commits    uint64        // of threads, without those of inboxes
	Calls      int           // of tools
	Bodies     int           // of tools that began
	Cut        int           // calls whose body was cut off and which must not run again
	Repeated   int           // bodies that began although their result was committed
	Delivered  int           // deliveries of durable effects
	Duplicates int           // of them for the second time or later, with the same id
	Missing    int           // durable effects not delivered
	TakenUp    int           // runs that went on in another process after a kill
	Orphaned   time.Duration // longest time from a kill until a run of that worker went on
	Middle     time.Duration // the same of half of them
	Late       int           // of those taken up, later than a lease after the kill
	Waited     time.Duration // longest time from a submission until the run began
	Elapsed    time.Duration
	fault      error
}

// Err returns what was wrong, nil for nothing.
func (r *KillReport) Err() error { return r.fault }

// Kill keeps all threads busy by workers that are killed and started again, and lets what
// began come to its end. The error is of the check itself; see also KillReport.Err.
func Kill(ctx context.Context, o KillOptions) (rep *KillReport, err error) {
	rep = &KillReport{Threads: o.Threads}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := newStaff(ctx, o.Options)
	if err != nil {
		return rep, err
	}
	began := time.Now()
	closing := make(chan struct{}) // no more runs
	time.AfterFunc(o.Duration, func() { close(closing) })
	runs := make([]int, o.Threads)
	work, working := errgroup.WithContext(ctx)
	for i := range o.Threads {
		work.Go(func() (err error) {
			runs[i], err = s.busy(working, fmt.Sprintf("thread-%d", i), closing)
			return err
		})
	}
	worked := make(chan error, 1)
	go func() { worked <- work.Wait() }()
	peers := make([]*talk.Peer, o.Workers)
	names := make([]string, o.Workers)
	start := func(i int) (err error) {
		// A server that is overloaded may take longer than a worker waits for it at its start.
		for try := 0; try == 0 || err != nil && try < 5 && ctx.Err() == nil; try++ {
			if peers[i], names[i], err = s.hire(ctx, func(j *job) {
				j.Concurrency = o.Threads/2 + 1 // two can have them all
				j.Think, j.Work = cmp.Or(o.Think, j.Think), cmp.Or(o.Work, j.Work)
			}, nil); err != nil {
				rep.Restarts++
			}
		}
		return err
	}
	for i := range peers {
		if err := start(i); err != nil {
			return rep, err
		}
	}
	random := rand.New(rand.NewPCG(o.Seed, 21))
	for over := false; !over; {
		select {
		case <-closing:
			over = true
		case err := <-worked:
			return rep, errors.Join(err, errors.New("crew: the threads ended before their time"))
		case <-time.After(time.Duration(random.Int64N(int64(2 * o.Pause)))):
			i := random.IntN(o.Workers)
			if err := s.kill(peers[i], names[i]); err != nil {
				return rep, err
			}
			rep.Kills++
			if err := start(i); err != nil {
				return rep, err
			}
		}
	}
	if err := <-worked; err != nil {
		return rep, err
	}
	if err := s.empty(ctx); err != nil {
		return rep, err
	}
	for _, p := range peers {
		if _, err := s.dismiss(p); err != nil {
			return rep, err
		}
	}
	rep.Elapsed = time.Since(began)
	return rep, rep.judge(ctx, s, runs)
}

func (r *KillReport) judge(ctx context.Context, s *staff, runs []int) error {
	if err := s.finish(); err != nil {
		return err
	}
	var sum totals
	for i, n := range runs {
		if err := s.audit(ctx, fmt.Sprintf("thread-%d", i), n, &sum); err != nil {
			return err
		}
	}
	w := s.watch
	r.Runs, r.Commits, r.Calls, r.Cut, r.Missing = sum.runs, sum.commits, sum.calls, sum.interrupted, sum.missing
	r.Bodies, r.Repeated, r.Delivered, r.Duplicates = w.bodies, w.repeated, w.delivered, w.duplicates
	r.TakenUp, r.Late, r.Orphaned, r.Waited = w.takenUp, w.late, w.orphaned, w.waited
	if slices.Sort(w.orphans); len(w.orphans) > 0 {
		r.Middle = w.orphans[len(w.orphans)/2]
	}
	r.fault = w.err()
	return s.close()
}

// busy submits run after run of a thread, until no more are wanted, and returns how many.
func (s *staff) busy(ctx context.Context, thread string, closing <-chan struct{}) (runs int, err error) {
	for {
		select {
		case <-closing:
			return runs, nil
		default:
		}
		t := task{Thread: thread, Run: runs, Steps: 2 + runs%2}
		s.out.write(line{Kind: lineSubmit, Thread: thread})
		r, err := s.submit(ctx, activation(t))
		if err != nil {
			return runs, err
		}
		runs++
		o, err := s.await(ctx, r)
		if err != nil {
			return runs, err
		}
		if o.Status != phase.Done || o.Reason != phase.ReasonNatural {
			return runs, fmt.Errorf("crew: %s: run %d ended so: %+v", thread, t.Run, o)
		}
	}
}
