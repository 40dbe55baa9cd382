package engine

import (
	"context"
	"fmt"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// OpenThread returns the thread of that id as Config.Journal keeps it; one that it
// does not have is new. Values of keys that no plugin registers are kept and
// written back. A run that was waiting, or under way when its process ended, goes
// on with Resume.
//
// Two openings of one thread do not see each other: whoever commits second learns
// that the thread moved on (ErrJournalConflict) and has to open it again.
func (e *Engine) OpenThread(ctx context.Context, id string) (*Thread, error) {
	if e.config.Journal == nil {
		return nil, fmt.Errorf("%w: OpenThread needs Config.Journal", ErrConfig)
	}
	if id == "" {
		return nil, fmt.Errorf("%w: a thread is opened by its id", ErrInput)
	}
	image, err := e.load(ctx, id, 0)
	if err != nil {
		return nil, err
	}
	t, err := e.NewThread(id)
	if err != nil {
		return nil, err
	}
	if err := rebuild(t.store, image, func(JournalRecord, state.Delta) {}); err != nil {
		return nil, fmt.Errorf("engine: thread %s: %w", id, err)
	}
	c, now := t.chain, t.store.Snapshot()
	c.revision, c.kept, c.epoch = image.Revision, now.Revision(), image.Epoch
	c.whole.Store(now.Revision() > 0) // a part of a value must not follow one of an older version
	t.lastID.Store(lastID.Get(now))
	return t, nil
}

// load asks the journal for a thread.
func (e *Engine) load(ctx context.Context, thread string, atLeast uint64) (JournalImage, error) {
	image, err := within(ctx, nil, e.config.Limits.JournalTimeout, "Config.Journal", 0, func(ctx context.Context) (JournalImage, error) {
		return e.config.Journal.Load(ctx, thread, atLeast)
	})
	if err != nil {
		err = fmt.Errorf("engine: thread %s could not be loaded: %w", thread, err)
	}
	return image, err
}

// rebuild makes the commits of an image again in an empty store, and tells each after
// it was made, the snapshot being the first.
func rebuild(store *state.Store, image JournalImage, made func(JournalRecord, state.Delta)) error {
	if image.Snapshot != nil {
		var whole checkpoint
		err := decodeRecord(image.Snapshot, &whole)
		d := whole.Dump.Delta()
		if err == nil {
			_, err = store.Apply(d)
		}
		if err != nil {
			return fmt.Errorf("snapshot at revision %d: %w", image.SnapshotAt, err)
		}
		made(JournalRecord{Revision: image.SnapshotAt, Time: whole.Time}, d)
	}
	at := image.SnapshotAt
	for _, r := range image.Tail {
		if at++; r.Revision != at {
			return fmt.Errorf("%w: record %d stands where %d belongs", ErrCorrupt, r.Revision, at)
		}
		if len(r.Record) == 0 {
			continue // a lease, or effects that were delivered
		}
		var d state.Delta
		err := decodeRecord(r.Record, &d)
		if have := store.Snapshot().Revision(); err == nil && d.Revision != have+1 {
			err = fmt.Errorf("%w: it makes revision %d of the state out of %d", ErrRecord, d.Revision, have)
		}
		if err == nil {
			_, err = store.Apply(d)
		}
		if err != nil {
			return fmt.Errorf("record %d: %w", r.Revision, err)
		}
		made(r, d)
	}
	if at != image.Revision {
		return fmt.Errorf("%w: the records end at %d, the thread at %d", ErrCorrupt, at, image.Revision)
	}
	return nil
}

// saveWhole makes the next commit carry the whole state, where there is a journal.
func (r *run) saveWhole() {
	if c := r.th.chain; c != nil {
		c.whole.Store(true)
	}
}

// Recovery says what becomes of a tool call that was under way when its process
// ended, so that nobody knows whether it did its work.
type Recovery uint8

// The policies.
const (
	// FailAsInterrupted tells the model that the call was interrupted.
	FailAsInterrupted Recovery = iota
	// Rerun runs the tool again: right for tools that may run twice.
	Rerun
	// AskPerson asks whether to run it again.
	AskPerson
)

// Recoverer is implemented by tools that are not FailAsInterrupted.
type Recoverer interface{ Recovery() Recovery }

// recover decides about a call that was under way when its process ended. decided
// means that it is settled, for now or for good.
func (r *run) recover(ctx context.Context, p *passage, tool Tool) (decided bool, err error) {
	policy := FailAsInterrupted
	if rec, ok := unpin(tool).(Recoverer); ok {
		_ = guard(p.sc.call.Call.Name, 0, func() error { policy = rec.Recovery(); return nil }) // one that panics says nothing
	}
	switch policy {
	case Rerun:
		return false, nil
	case AskPerson:
		v := verdict{call: p.sc.call.Call}
		t, answer, err := r.ask(ctx, p.sc, p.sc.call.Call, engineName, gate.Suspend(gate.Ticket{
			Message: p.sc.call.Call.Name + " was running when the process ended and may have done its work. Run it again?",
		}))
		if err != nil || answer == nil {
			p.waits = err == nil
			return true, err
		}
		_, err = r.take(ctx, p.sc, &v, t, *answer)
		return p.decided(v), err
	default:
		p.fail(inference.OutcomeCancelled, "interrupted: the process ended while the tool ran; it may have done its work")
		return true, nil
	}
}

// crashed goes on with a run whose process ended: from its last commit, so that
// hooks of the phase that was running run again, but no call whose result was
// committed does.
func (r *run) crashed(ctx context.Context, l phase.Lifecycle) *Result {
	start := r.now()
	return r.loop(ctx, func(ctx context.Context) ending {
		switch {
		case l.Ended:
			return ending{reason: l.Reason, detail: l.Detail}
		case l.Step == 0:
			return r.passed(ctx, phase.RunStart)
		default:
			return r.endStep(ctx, start, r.inStep(ctx))
		}
	})
}
