package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// converge runs the phase's queued actions round by round until none is left.
// Actions that a round schedules for the same phase form the next round.
func (r *run) converge(ctx context.Context, sc scene, rep *Report) error {
	var pending []Pending
	var single *turns
	for {
		if pending = r.pending(pending[:0], sc.phase); len(pending) == 0 {
			return nil
		}
		if rep.Rounds == r.eng.config.Limits.PhaseRounds {
			return r.exceeded(ctx, sc, pending, rep)
		}
		rep.Rounds++
		sc.round = rep.Rounds
		before := len(rep.Actions)
		rep.Actions = slices.Grow(rep.Actions, len(pending))
		for left := pending; len(left) > 0; {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			entry := r.eng.actions[left[0].Action.Name()]
			n := together(left, entry.handler)
			limit := cmp.Or(entry.handler.Deadline(), r.eng.config.Limits.ActionTimeout)
			gates := r.ballots(entry.handler.Name())
			if len(gates) > 0 {
				n = 1
			}
			now := single
			if now == nil || n > 1 || limit > 0 { // one that was given up on may still have its own
				now = newTurns(n)
			}
			if n == 1 && limit == 0 {
				single = now
			}
			now.set(entry, limit, left[:n])
			now.list[0].gated = now.gate(r, sc, gates)
			if err := r.runActions(ctx, sc, now, rep); err != nil {
				return err
			}
			left = left[n:]
		}
		if r.watched() {
			r.roundFinished(sc, len(rep.Actions)-before)
		}
	}
}

func (r *run) roundFinished(sc scene, actions int) {
	r.emit(sc, func(h Header) Event { return RoundFinished{Header: h, Round: sc.round, Actions: actions} })
}

// manyPending is from when on a list of actions gets room for all that are queued.
const manyPending = 64

// pending appends the queued actions of a phase that have a handler, in order.
func (r *run) pending(to []Pending, p phase.Phase) []Pending {
	view := queue.View(r.th.store.Snapshot())
	for key, q := range view.From(queueKey(p, 0)) {
		if key>>phaseShift != uint64(p) {
			break
		}
		if len(to) == manyPending {
			to = slices.Grow(to, view.Len()) // growing by and by costs more
		}
		if _, ok := r.eng.actions[q.Action.Name()]; ok {
			to = append(to, q)
		}
	}
	return to
}

// together returns how many actions at the head of the queue may run in parallel:
// a row of one kind whose handler h is ReplaySafe, or else one.
func together(pending []Pending, h phase.ActionHandler) int {
	n := 1
	for h.ReplaySafe() && n < len(pending) && pending[n].Action.Name() == h.Name() {
		n++
	}
	return n
}

// turns are actions of one kind that run now, and the jobs that do it.
type turns struct {
	jobs []job
	list []turn
}

// turn is the call of a handler for an action. Its commit removes the action.
type turn struct {
	Pending
	key     uint64
	handler phase.ActionHandler
	gated   *gated // nil without gates
	remove  [1]state.Update
}

func newTurns(n int) *turns {
	t := &turns{make([]job, n), make([]turn, n)}
	for i := range t.list {
		t.jobs[i] = job{rule: Skip, extra: t.list[i].remove[:], call: t.list[i].call}
	}
	return t
}

func (t *turns) set(entry actionEntry, limit time.Duration, actions []Pending) {
	for i, q := range actions {
		j, now := &t.jobs[i], &t.list[i]
		j.owner, j.id, j.timeout = entry.plugin, q.Action.Name(), limit
		now.Pending, now.handler, now.key = q, entry.handler, queueKey(q.Action.Phase(), q.ID)
		now.remove[0] = queue.Delete(now.key)
	}
}

func (t *turn) call(ctx context.Context, pc *phase.Context) (phase.Command, error) {
	if !queue.Has(pc.Snapshot(), t.key) {
		return phase.Command{}, errTaken
	}
	if t.gated != nil {
		return t.gated.call(ctx, pc, t)
	}
	return t.handle(ctx, pc)
}

func (t *turn) handle(ctx context.Context, pc *phase.Context) (phase.Command, error) {
	return t.handler.Handle(&scheduled{ctx, t.Plugin}, pc, t.Action)
}

// scheduled is the context of a handler's call, see Scheduler.
type scheduled struct {
	context.Context
	by string
}

func (s *scheduled) Value(key any) any {
	if key == (schedulerKey{}) {
		return s.by
	}
	return s.Context.Value(key)
}

// runActions gathers the given actions like hooks. Each commit removes its
// action; one that fails becomes a dead letter and the rest go on.
func (r *run) runActions(ctx context.Context, sc scene, now *turns, rep *Report) error {
	g := r.gatherJobs(ctx, sc, now.jobs, nil)
	defer g.release()
	rep.Commits += g.commits
	rep.Retries += g.retries
	err := r.settleActions(ctx, sc, now, g, rep)
	// What has committed is delivered, also when the run ends here.
	rep.Effects = append(rep.Effects, r.deliver(ctx, g.pending)...)
	if err != nil {
		return err
	}
	if len(g.errs) > 0 {
		return &PhaseError{Phase: sc.phase, Errs: g.errs}
	}
	return nil
}

// errTaken is the fate of an action that another pass over the phase ran meanwhile:
// one that an effect or another goroutine started with RunPhase.
var errTaken = errors.New("engine: the action was run by another pass over its phase")

// settleActions reports what became of gathered actions and buries those that
// failed. The error is why the phase cannot go on.
func (r *run) settleActions(ctx context.Context, sc scene, now *turns, g *gathering, rep *Report) (err error) {
	for i := range now.list {
		q, a := &now.list[i], &g.attempts[i]
		if a.err != nil && !queue.Has(r.th.store.Snapshot(), q.key) {
			continue // taken by another pass, see errTaken
		}
		done := ActionReport{ID: q.ID, Action: g.jobs[i].id, Plugin: q.Plugin, Round: sc.round,
			Status: ActionDone, Duration: a.took, Err: a.err}
		if q.gated != nil {
			rule := &q.gated.ruling
			done.Status, done.By, done.Reason = fates[rule.kind], rule.by, rule.reason
		}
		if a.err != nil {
			if ctx.Err() != nil {
				// The run is being cancelled: the action stays queued, it did not fail.
				err = context.Cause(ctx)
				continue
			}
			done.Status = ActionDead
			if err = r.bury(ctx, sc, ActionDead, a.err.Error(), q.Pending); err != nil {
				return err
			}
		}
		rep.Actions = append(rep.Actions, done)
		var began time.Time
		var again []Retry
		if r.watched() {
			began, again = g.calls(i)
		}
		r.actionDone(sc, done, began, again...)
	}
	return err
}

func (r *run) actionDone(sc scene, a ActionReport, began time.Time, again ...Retry) {
	if r.watched() {
		r.tellAction(sc, a, began, again)
	}
}

func (r *run) tellAction(sc scene, a ActionReport, began time.Time, again []Retry) {
	r.emit(sc, func(h Header) Event {
		return ActionFinished{Header: h, ID: a.ID, Action: a.Action, Plugin: a.Plugin, Round: a.Round,
			Status: a.Status, By: a.By, Reason: a.Reason, Error: errText(a.Err), Began: began, Duration: a.Duration, Retries: again}
	})
}

// exceeded dead-letters what is left after the last permitted round.
func (r *run) exceeded(ctx context.Context, sc scene, pending []Pending, rep *Report) error {
	names := each(pending, func(q Pending) string { return q.Action.Name() })
	err := &phase.ConvergenceError{Phase: sc.phase, Rounds: rep.Rounds, Pending: names}
	if buried := r.bury(ctx, sc, ActionDead, err.Error(), pending...); buried != nil {
		return buried
	}
	for _, q := range pending {
		done := ActionReport{ID: q.ID, Action: q.Action.Name(), Plugin: q.Plugin, Round: rep.Rounds + 1, Status: ActionDead, Err: err}
		rep.Actions = append(rep.Actions, done)
		r.actionDone(sc, done, time.Time{})
	}
	return err
}

// bury moves actions from the queue to the dead letters in one commit, dropping
// the oldest letters beyond the limit.
func (r *run) bury(ctx context.Context, sc scene, status ActionStatus, reason string, actions ...Pending) error {
	snap := r.th.store.Snapshot()
	updates := make([]state.Update, 0, 2*len(actions))
	excess := deadLetters.Len(snap) + len(actions) - r.eng.config.Limits.DeadLetters
	for id := range deadLetters.All(snap) {
		if excess <= 0 {
			break
		}
		excess--
		updates = append(updates, deadLetters.Delete(id))
		r.warn(sc, "", "dead letter %d was dropped: more than %d of them", id, r.eng.config.Limits.DeadLetters)
	}
	for _, q := range actions {
		updates = append(updates, queue.Delete(queueKey(q.Action.Phase(), q.ID)))
		if excess > 0 {
			excess--
			r.warn(sc, q.Plugin, "action %s (%d) was dropped: more than %d dead letters", q.Action.Name(), q.ID, r.eng.config.Limits.DeadLetters)
			continue
		}
		updates = append(updates, deadLetters.Put(q.ID, DeadLetter{
			Pending: q, Status: status, Reason: reason, Run: r.info.ID, Time: r.now().UTC().Truncate(time.Microsecond),
		}))
	}
	return r.apply(ctx, sc, updates...)
}

// undelivered reports, at the end of a run, every action whose phase did not come
// again.
func (r *run) undelivered(ctx context.Context) error {
	var left []Pending
	for _, q := range queue.All(r.th.store.Snapshot()) {
		left = append(left, q)
	}
	if len(left) == 0 {
		return nil
	}
	r.stats.count(func(s *Stats) { s.DeadLetters += len(left) })
	for _, q := range left {
		r.actionDone(scene{}, ActionReport{ID: q.ID, Action: q.Action.Name(), Plugin: q.Plugin, Status: ActionUndelivered,
			Err: fmt.Errorf("engine: the run ended before %s came again", q.Action.Phase())}, time.Time{})
	}
	return r.bury(ctx, scene{}, ActionUndelivered, "the run ended before its phase came again", left...)
}

func (e *Engine) nearestAction(name string) string {
	return nearest(name, slices.Sorted(maps.Keys(e.actions)))
}
