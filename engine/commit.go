package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/internal/fanout"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// lower checks a command's actions and effects and turns it into batch b, based on
// base, nil meaning whatever is current. The updates of its actions and effects are
// among the batch's updates, and the effects themselves are in its note.
func (r *run) lower(j *job, cmd *phase.Command, base *state.Snapshot, b *state.Batch) error {
	b.Owner, b.Part, b.Base = j.owner, j.id, base
	if updates, plain := cmd.Plain(); plain && len(j.extra) == 0 {
		b.Updates, b.Reads = updates, j.reads
		return nil
	}
	parts := cmd.Lower()
	b.Updates, b.Reads = parts.Updates, parts.Reads
	if len(j.reads) > 0 {
		b.Reads = append(parts.Reads, j.reads...)
	}
	if n := len(j.extra) + len(parts.Actions) + min(len(parts.Actions), 1) + min(len(parts.Effects), 1); n > 0 {
		b.Updates = append(slices.Grow(b.Updates, n), j.extra...)
	}
	if len(parts.Actions) > 0 {
		var err error
		if b.Updates, err = r.enqueue(b.Updates, j.owner, parts.Actions); err != nil {
			return err
		}
	}
	if len(parts.Effects) > 0 {
		if err := r.dispatch.Check(parts.Effects...); err != nil {
			return err
		}
		b.Updates = append(b.Updates, emitted.With(int64(len(parts.Effects))))
		b.Note = note{run: r.info.ID, owner: j.owner, effects: parts.Effects}
	}
	return nil
}

// enqueue appends the updates that queue the actions, each with a new id.
func (r *run) enqueue(updates []state.Update, plugin string, actions []phase.Action) ([]state.Update, error) {
	for _, a := range actions {
		entry, ok := r.eng.actions[a.Name()]
		if !ok {
			return nil, &UnknownActionError{Action: a.Name(), Nearest: r.eng.nearestAction(a.Name())}
		}
		if err := entry.handler.Accepts(a); err != nil {
			return nil, &UnknownActionError{Action: a.Name(), Err: err}
		}
	}
	last := r.th.lastID.Add(uint64(len(actions)))
	for i, a := range actions {
		id := last - uint64(len(actions)-1-i)
		updates = append(updates, queue.Put(queueKey(a.Phase(), id), Pending{ID: id, Plugin: plugin, Action: a}))
	}
	return append(updates, lastID.With(last)), nil
}

// apply commits updates of the engine's own, which nothing can conflict with.
func (r *run) apply(_ context.Context, sc scene, updates ...state.Update) error {
	if len(updates) == 0 {
		return nil
	}
	return r.applyAll(sc, state.Batch{Owner: engineName, Updates: updates})
}

// applyAll commits batches of which those of plugins are required: all or nothing.
func (r *run) applyAll(sc scene, batches ...state.Batch) error {
	if r.th.chain != nil {
		r.out.Rouse() // keeping it may take its time
	}
	res, err := r.th.store.Commit(batches...)
	if err == nil && len(res.Rejected) > 0 {
		err = res.Rejected[0].Err
	}
	if err == nil && res.Committed {
		r.committed(sc, res, batches)
	}
	return err
}

// submit commits a command that no hook or handler stands behind.
func (r *run) submit(ctx context.Context, sc scene, plugin string, cmd phase.Command) (*state.Snapshot, error) {
	var b state.Batch
	if err := r.lower(&job{owner: plugin}, &cmd, nil, &b); err != nil {
		return nil, err
	}
	res, err := r.th.store.Commit(b)
	if err != nil {
		return nil, err
	}
	if len(res.Rejected) > 0 {
		return nil, res.Rejected[0].Err
	}
	if res.Committed {
		batches := []state.Batch{b}
		r.committed(sc, res, batches)
		r.deliver(ctx, r.deliveries(nil, res.Snapshot, batches))
	}
	return res.Snapshot, nil
}

// deliver hands effects to the dispatcher. Those of a commit that somebody beside
// the run made while it ended, after its dispatcher closed, get one of their own:
// what has committed is delivered.
func (r *run) deliver(ctx context.Context, list []effects.Delivery) []effects.Outcome {
	if len(list) == 0 {
		return nil
	}
	r.carry(list)
	r.out.Rouse()
	out := r.eng.deliver(ctx, r.dispatch, list)
	if len(out) == 0 || !tooLate(out[0]) {
		return out
	}
	d, err := r.eng.dispatcher(effects.Inline, func(o effects.Outcome) {
		r.outlet().over(o)
		r.emit(scene{aside: true}, effectFinished(o))
	})
	if err != nil {
		return out
	}
	defer r.outlet().flush()
	return d.Deliver(ctx, list)
}

// deliver delivers effects, which do not end with ctx but get no more than the grace
// then.
func (e *Engine) deliver(ctx context.Context, d *effects.Dispatcher, list []effects.Delivery) []effects.Outcome {
	stop := fanout.Overdue(ctx, e.config.Limits.Grace, func() {
		_ = d.Drain(ctx) // which has ended: gives up what is left
	})
	defer stop() // what was given up counts before the caller goes on
	return d.Deliver(ctx, list)
}

// tooLate reports whether the dispatcher refused an effect because it had closed.
func tooLate(o effects.Outcome) bool { return o.Handler == "" && errors.Is(o.Err, effects.ErrClosed) }

func (e *Engine) dispatcher(m effects.Mode, report func(effects.Outcome)) (*effects.Dispatcher, error) {
	c := &e.config
	return effects.NewDispatcher(e.effects, effects.Config{
		Mode: m, Queue: c.Limits.EffectQueue, Timeout: c.Limits.EffectTimeout, Now: c.Now, Report: report,
	})
}

// deliveries appends the effects of one commit, in batch order.
func (r *run) deliveries(to []effects.Delivery, snap *state.Snapshot, batches []state.Batch) []effects.Delivery {
	first := len(to)
	for i := range batches {
		if n, ok := batches[i].Note.(note); ok {
			to = n.deliveries(to, first, snap)
		}
	}
	return to
}

// committed tells observers what a commit wrote and who.
func (r *run) committed(sc scene, res state.Result, batches []state.Batch) {
	if r.watched() {
		r.tellCommit(sc, res, batches)
	}
}

func (r *run) tellCommit(sc scene, res state.Result, batches []state.Batch) {
	writes := writesOf(batches...)
	r.emit(sc, func(h Header) Event {
		h.Revision = res.Snapshot.Revision()
		return Committed{Header: h, Call: sc.callID(), Round: sc.round, Retry: sc.retry, Writes: writes, Before: res.Before, After: res.Snapshot}
	})
}

func writesOf(batches ...state.Batch) []Write {
	n := 0
	for i := range batches {
		n += len(batches[i].Updates)
	}
	writes := make([]Write, 0, n)
	for i := range batches {
		for _, u := range batches[i].Updates {
			if k := u.Key(); k != nil {
				writes = append(writes, Write{Plugin: batches[i].Owner, Hook: batches[i].Part, Key: k.Name(), Entry: entryText(u.Entry()), Op: u.Op(), Update: u})
			}
		}
	}
	return writes
}

// conflict tells that a batch lost.
func (r *run) conflict(sc scene, c *state.ConflictError, lost state.Batch, fate string) {
	r.stats.count(func(s *Stats) { s.Conflicts++ })
	if r.watched() {
		r.emit(sc, func(h Header) Event {
			return Conflict{Header: h, Key: c.Key, Entry: c.Entry, Winner: c.Winner, Loser: c.Loser,
				Hook: lost.Part, Round: sc.round, Fate: fate, Lost: writesOf(lost)}
		})
	}
}

func entryText(entry any) string {
	switch e := entry.(type) {
	case nil:
		return ""
	case string:
		return e
	}
	return fmt.Sprint(entry)
}
