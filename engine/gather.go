package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/internal/fanout"
	"github.com/ddd26017/fixpoint/state"
)

// phase runs one phase: its hooks tier by tier, then its actions until none is
// left, each followed by the effects of what it committed.
func (r *run) phase(ctx context.Context, sc scene) error {
	var rep Report
	return r.report(ctx, sc, &rep)
}

// report is phase, and fills in the report, which is complete up to the point of
// failure. Its hooks are left out if nobody gets to see them.
func (r *run) report(ctx context.Context, sc scene, rep *Report) error {
	start := r.eng.clock()
	rep.Phase = sc.phase
	tiers := r.agent.Load().tiers[sc.phase]
	if r.watched() {
		r.phaseStarted(sc, tiers)
	}
	var err error
	for _, t := range tiers {
		var stop bool
		if stop, err = r.gather(ctx, sc, t, rep); err != nil {
			break
		}
		if stop {
			rep.Stopped = true
			break
		}
	}
	if err == nil {
		err = r.converge(ctx, sc, rep)
	}
	rep.Revision = r.th.store.Snapshot().Revision()
	rep.Duration = r.eng.clock() - start
	r.stats.add(rep)
	if r.watched() {
		r.phaseFinished(sc, rep, err)
	}
	return err
}

// What observers are told has functions of its own, so that a run that nobody watches
// makes no closures for them.

func (r *run) phaseStarted(sc scene, tiers []*tier) {
	hooks := 0
	for _, t := range tiers {
		hooks += len(t.jobs)
	}
	r.emit(sc, func(h Header) Event { return PhaseStarted{Header: h, Hooks: hooks, Call: sc.callID()} })
}

func (r *run) phaseFinished(sc scene, rep *Report, err error) {
	r.emit(sc, func(h Header) Event {
		return PhaseFinished{Header: h, Call: sc.callID(), Rounds: rep.Rounds, Retries: rep.Retries,
			Error: errText(err), Duration: rep.Duration}
	})
}

// gathering is one pass over a set of jobs: design section 4. It is used again for
// the next one, so what outlives it is copied out.
type gathering struct {
	r        *run
	sc       scene
	jobs     []job
	attempts []attempt
	batches  []state.Batch
	index    []int // job of each batch
	errs     []error
	stop     bool
	commits  int
	retries  int
	again    []rerun
	noted    bool               // a batch has effects
	pending  []effects.Delivery // of what has committed, in commit order
}

// gathering returns a fresh one for the jobs. Whoever gets it releases it.
func (r *run) gathering(sc scene, jobs []job) *gathering {
	g, ok := r.eng.gatherings.Get().(*gathering)
	if !ok {
		g = &gathering{}
	}
	g.r, g.sc, g.jobs = r, sc, jobs
	g.attempts = slices.Grow(g.attempts[:0], len(jobs))[:len(jobs)]
	return g
}

// gatheringKept is how many jobs a gathering that is kept may have had.
const gatheringKept = 1024

// release keeps the memory for the next gathering. No call that was given up on has it:
// fanout leaves those another slice.
func (g *gathering) release() {
	if cap(g.attempts) > gatheringKept {
		return
	}
	clear(g.attempts)
	clear(g.batches)
	pool := &g.r.eng.gatherings
	*g = gathering{attempts: g.attempts[:0], batches: g.batches[:0], index: g.index[:0], again: g.again[:0]}
	pool.Put(g)
}

// gather runs the hooks of one tier and delivers the effects of what they
// committed. stop reports whether a committed command stops the later tiers.
func (r *run) gather(ctx context.Context, sc scene, t *tier, rep *Report) (stop bool, err error) {
	g := r.gatherJobs(ctx, sc, t.jobs, &t.pace)
	defer g.release()
	calls, took := 0, time.Duration(0)
	for i := range g.attempts {
		calls += g.attempts[i].calls
		took += g.attempts[i].took
	}
	if ctx.Err() == nil { // else nobody knows how long those took that were given up on
		t.pace.Learn(took)
	}
	r.stats.count(func(s *Stats) { s.Hooks += calls })
	rep.Commits += g.commits
	rep.Retries += g.retries
	if sc.told || r.watched() {
		g.report(rep)
	}
	if len(g.pending) > 0 {
		rep.Effects = append(rep.Effects, r.deliver(ctx, g.pending)...)
	}
	if len(g.errs) > 0 {
		return g.stop, &PhaseError{Phase: sc.phase, Errs: g.errs}
	}
	return g.stop, nil
}

// gatherJobs runs the jobs on one snapshot, commits the commands that do not
// conflict together, and runs the rest one by one on fresh snapshots. Every job
// has its final status afterwards. The caller releases the gathering.
func (r *run) gatherJobs(ctx context.Context, sc scene, jobs []job, pace *fanout.Pace) *gathering {
	g := r.gathering(sc, jobs)
	base := r.th.store.Snapshot()
	var seal *state.Seal
	if r.eng.config.CheckFreeze {
		seal = state.SealSnapshot(base)
	}
	g.attempts = r.tryAll(ctx, sc.phase, jobs, r.context(sc, base), g.attempts, r.way(pace))
	if seal != nil {
		if err := seal.Verify(); err != nil {
			g.errs = append(g.errs, err)
		}
	}
	g.commitTogether(ctx, base)
	return g
}

// fault records the failure of job i and reports whether its rule lets the rest
// go on.
func (g *gathering) fault(i int, err error) (skipped bool) {
	j, a := &g.jobs[i], &g.attempts[i]
	if errors.Is(err, errTaken) {
		a.err, a.status = err, HookSkipped
		return true
	}
	a.err = &HookError{Plugin: j.owner, Hook: j.id, Phase: g.sc.phase, Err: err}
	if j.rule == Skip {
		a.status = HookSkipped
		g.r.warn(g.sc, j.owner, "%v; its command was dropped", a.err)
		return true
	}
	a.status = HookFailed
	g.errs = append(g.errs, a.err)
	return false
}

// commitTogether merges the commands of the first call of every job and commits
// them at once, less those that conflict, which are then retried.
func (g *gathering) commitTogether(ctx context.Context, base *state.Snapshot) {
	for i := range g.jobs {
		a := &g.attempts[i]
		if a.err != nil {
			g.fault(i, a.err)
			continue
		}
		n := len(g.batches)
		g.batches = append(g.batches, state.Batch{})
		if err := g.r.lower(&g.jobs[i], &a.cmd, base, &g.batches[n]); err != nil {
			g.batches = g.batches[:n]
			g.fault(i, err)
			continue
		}
		g.noted = g.noted || g.batches[n].Note != nil
		g.index = append(g.index, i)
	}
	var res state.Result
	for {
		if len(g.errs) > 0 {
			g.drop(g.index)
			return
		}
		var err error
		if res, err = g.r.th.store.Commit(g.batches...); err == nil {
			break
		}
		var be *state.BatchError
		if !errors.As(err, &be) || be.Index >= len(g.batches) {
			g.errs = append(g.errs, err)
			continue
		}
		if g.fault(g.index[be.Index], be.Err) {
			g.batches = slices.Delete(g.batches, be.Index, be.Index+1)
			g.index = slices.Delete(g.index, be.Index, be.Index+1)
		}
	}
	lost, accepted := res.Rejected, g.batches
	if len(lost) > 0 {
		accepted = make([]state.Batch, 0, len(g.batches)-len(lost))
	}
	for k, i := range g.index {
		if len(lost) > 0 && lost[0].Index == k {
			lost = lost[1:]
			continue
		}
		g.attempts[i].status = HookCommitted
		g.stop = g.stop || g.attempts[i].cmd.StopsPhase()
		if len(res.Rejected) > 0 {
			accepted = append(accepted, g.batches[k])
		}
	}
	g.committed(res, accepted)
	for _, rej := range res.Rejected {
		g.r.conflict(g.sc, rej.Err, g.batches[rej.Index], "retried")
	}
	if len(res.Rejected) > 0 {
		g.retryAll(ctx, each(res.Rejected, func(rej state.Rejection) int { return g.index[rej.Index] }))
	}
}

// retryAll runs the jobs again, one after the other, away from the caller's
// goroutine: a job that ends its goroutine is a failed job and no more.
func (g *gathering) retryAll(ctx context.Context, jobs []int) {
	g.sc.retry = true
	gone := fanOut(context.WithoutCancel(ctx), fanout.Way{Crew: g.r.crew, Limit: 1}, len(jobs),
		func(i int) bool { g.retry(ctx, jobs[i]); return false },
		func(error) bool { return true })
	for i, exited := range gone {
		if exited {
			g.attempts[jobs[i]].calls++
			g.fault(jobs[i], ErrGoexit)
		}
	}
}

// drop marks the jobs whose commands fall with a sibling's failure.
func (g *gathering) drop(index []int) {
	for _, i := range index {
		if g.attempts[i].status == "" {
			g.attempts[i].status = HookDropped
		}
	}
}

func (g *gathering) committed(res state.Result, batches []state.Batch) {
	if !res.Committed {
		return
	}
	g.commits++
	g.r.committed(g.sc, res, batches)
	if g.noted {
		g.pending = g.r.deliveries(g.pending, res.Snapshot, batches)
	}
}

// retry runs job i alone on the newest snapshot and commits it. It repeats when
// somebody outside this phase changes what the job writes meanwhile.
func (g *gathering) retry(ctx context.Context, i int) {
	j, a := &g.jobs[i], &g.attempts[i]
	for try := 1; ; try++ {
		base := g.r.th.store.Snapshot()
		g.retries++
		first, start := a.ended-a.took, g.r.eng.clock()
		g.again = append(g.again, rerun{i, first, Retry{Began: g.r.eng.born.Add(start)}}) // it may not come back
		g.r.try(ctx, g.sc.phase, j, g.r.context(g.sc, base), start, a)
		g.again[len(g.again)-1].Duration = a.ended - start
		if a.err != nil {
			g.fault(i, a.err)
			return
		}
		g.batches = append(g.batches[:0], state.Batch{})
		b := &g.batches[0]
		if err := g.r.lower(j, &a.cmd, base, b); err != nil {
			g.fault(i, err)
			return
		}
		g.noted = b.Note != nil
		res, err := g.r.th.store.Commit(g.batches...)
		if err != nil {
			var be *state.BatchError
			if errors.As(err, &be) {
				err = be.Err
			}
			g.fault(i, err)
			return
		}
		if len(res.Rejected) == 0 {
			a.status = HookRetried
			g.stop = g.stop || a.cmd.StopsPhase()
			g.committed(res, g.batches)
			return
		}
		fate, over := "retried", try >= g.r.eng.config.Limits.CommitRetries
		if over {
			fate = "refused"
		}
		g.r.conflict(g.sc, res.Rejected[0].Err, *b, fate)
		if over {
			g.fault(i, res.Rejected[0].Err)
			return
		}
	}
}

// rerun is a call after a conflict.
type rerun struct {
	job   int
	first time.Duration // began the first call, if this is the second
	Retry
}

// calls returns when the calls of job i began. The first is zero if it was given up on.
func (g *gathering) calls(i int) (first time.Time, again []Retry) {
	a := &g.attempts[i]
	if a.ended >= 0 {
		first = g.r.eng.born.Add(a.ended - a.took)
	}
	for _, x := range g.again {
		if x.job == i {
			if again == nil {
				first = g.r.eng.born.Add(x.first)
			}
			again = append(again, x.Retry)
		}
	}
	return first, again
}

// report adds what became of the hooks.
func (g *gathering) report(rep *Report) {
	first := len(rep.Hooks)
	rep.Hooks = slices.Grow(rep.Hooks, len(g.jobs))[:first+len(g.jobs)]
	for i := range g.jobs {
		j, a, h := &g.jobs[i], &g.attempts[i], &rep.Hooks[first+i]
		h.Plugin, h.Hook, h.Tier, h.Status, h.Calls, h.Duration, h.Err = j.owner, j.id, j.tier, a.status, a.calls, a.took, a.err
	}
	if g.r.watched() {
		g.reportHooks(rep.Hooks[first:])
	}
}

func (g *gathering) reportHooks(hooks []HookReport) {
	r, sc := g.r, g.sc
	for i, h := range hooks {
		slow := h.Duration > r.eng.config.Limits.SlowHook
		began, retries := g.calls(i)
		r.emit(sc, func(head Header) Event {
			return HookFinished{Header: head, Plugin: h.Plugin, Hook: h.Hook, Tier: h.Tier, Status: h.Status,
				Calls: h.Calls, Error: errText(h.Err), Slow: slow, Began: began, Duration: h.Duration, Retries: retries}
		})
		if slow {
			r.warn(sc, h.Plugin, "hook %s took %s, longer than %s", h.Hook, h.Duration, r.eng.config.Limits.SlowHook)
		}
	}
}
