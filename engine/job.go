package engine

import (
	"cmp"
	"context"
	"runtime/debug"
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
	status HookStatus
}

// try calls the job once and adds to a.
func (r *run) try(ctx context.Context, p phase.Phase, j *job, pc *phase.Context, a *attempt) {
	start := r.now()
	if j.timeout > 0 {
		a.cmd, a.err = within(ctx, j.timeout, j.owner, p, func(ctx context.Context) (phase.Command, error) {
			return j.call(ctx, pc)
		})
	} else {
		a.cmd, a.err = invoke(ctx, p, j, pc)
	}
	a.calls++
	a.took += r.now().Sub(start)
}

func invoke(ctx context.Context, p phase.Phase, j *job, pc *phase.Context) (cmd phase.Command, err error) {
	defer func() {
		if v := recover(); v != nil {
			cmd, err = phase.Command{}, &PanicError{Plugin: j.owner, Phase: p, Value: v, Stack: debug.Stack()}
		}
	}()
	return j.call(ctx, pc)
}

// tryAll calls every job once, all on pc, and returns when all have returned or
// ctx has ended. A lone job runs on the caller's goroutine: a job that ignores
// its context then holds the run up unless it has a timeout.
func (r *run) tryAll(ctx context.Context, p phase.Phase, jobs []job, pc *phase.Context) []attempt {
	if len(jobs) == 1 {
		out := make([]attempt, 1)
		r.try(ctx, p, &jobs[0], pc, &out[0])
		return out
	}
	return fanOut(ctx, len(jobs), r.eng.config.Limits.Concurrency,
		func(i int) (a attempt) {
			r.try(ctx, p, &jobs[i], pc, &a)
			return a
		},
		func(err error) attempt { return attempt{err: err, calls: 1} })
}

// fanOut calls fn(0) to fn(n-1) on at most limit goroutines and returns their
// results by index. When ctx ends it stops waiting: a call that has not returned
// gets lost(cause) and its late result is dropped, as is lost(ErrGoexit) for a
// call that ended its goroutine.
func fanOut[T any](ctx context.Context, n, limit int, fn func(i int) T, lost func(error) T) []T {
	return fanout.Each(ctx, n, limit, fn, func(cause error) T { return lost(cmp.Or(cause, ErrGoexit)) })
}
