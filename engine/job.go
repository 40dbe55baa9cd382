package engine

import (
	"cmp"
	"context"
	"time"

	"github.com/ddd26017/fixpoint/internal/fanout"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// job is one call of user code that returns a command: a hook or an action
// handler. Both are gathered by the same code.
type job struct {
	owner   string // plugin whose code it is and whose name its writes carry
	id      string
	tier    int
	timeout time.Duration
	rule    ErrorRule
	reads   []state.AnyKey
	extra   []state.Update // committed with the command, whatever it holds
	call    func(ctx context.Context, pc *phase.Context) (phase.Command, error)
}

// attempt is what a job's calls came to.
type attempt struct {
	cmd    phase.Command
	err    error
	calls  int
	took   time.Duration
	ended  time.Duration // by the engine's clock; -1 if it was given up on
	status HookStatus
}

// try calls the job once, from start on, and adds to a.
func (r *run) try(ctx context.Context, p phase.Phase, j *job, pc *phase.Context, start time.Duration, a *attempt) {
	if j.timeout > 0 {
		a.cmd, a.err = within(ctx, r.crew, j.timeout, j.owner, p, func(ctx context.Context) (phase.Command, error) {
			return j.call(ctx, pc)
		})
	} else {
		a.cmd, a.err = call(ctx, j.owner, p, j.call, pc)
	}
	a.calls++
	a.ended = r.eng.clock()
	a.took += a.ended - start
}

// tryAll calls every job once, all on pc, and returns what came of them in out, or in
// another slice if a call was given up on, when all have returned or ctx has ended. A
// lone job runs on the caller's goroutine: a job that ignores its context then holds
// the run up unless it has a timeout.
func (r *run) tryAll(ctx context.Context, p phase.Phase, jobs []job, pc *phase.Context, out []attempt, way fanout.Way) []attempt {
	if len(jobs) == 1 {
		r.out.Rouse() // nobody looks after a lone job
		r.try(ctx, p, &jobs[0], pc, r.eng.clock(), &out[0])
		return out
	}
	return fanout.Into(ctx, way, out,
		func(i, before int, a *attempt) {
			// Reading the clock costs as much as a short hook: one begins when the last one ended.
			var start time.Duration
			if before >= 0 && r.eng.ownClock {
				start = out[before].ended
			} else {
				start = r.eng.clock() // another clock is read equally often whoever makes the calls
			}
			r.try(ctx, p, &jobs[i], pc, start, a)
		},
		func(err error) attempt { return attempt{err: cmp.Or(err, ErrGoexit), calls: 1, ended: -1} })
}

// way is how calls of plugins are made of which pace is known, nil for nothing. The
// observers learn of what came before, at once unless the calls are expected to be quick.
func (r *run) way(pace *fanout.Pace) fanout.Way {
	// What was learned by another clock says nothing about time.
	quick := pace != nil && r.eng.ownClock && pace.Quick()
	way := fanout.Way{Crew: r.crew, Limit: r.eng.config.Limits.Concurrency, Quick: quick}
	if quick {
		way.Late = r.rouse
	} else {
		r.out.Rouse()
	}
	return way
}

// fanOut calls fn(0) to fn(n-1) and returns their results by index. When ctx ends it
// stops waiting: a call that has not returned gets lost(cause) and its late result is
// dropped, as is lost(ErrGoexit) for a call that ended its goroutine.
func fanOut[T any](ctx context.Context, way fanout.Way, n int, fn func(i int) T, lost func(error) T) []T {
	return fanout.Each(ctx, way, n, fn, func(cause error) T { return lost(cmp.Or(cause, ErrGoexit)) })
}
