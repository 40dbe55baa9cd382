package engine

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// recordVersion is the first byte of every record and snapshot. A newer one is
// refused: who wrote it knew more.
const recordVersion = 1

// ErrRecord is returned when a journal holds what this program cannot read.
var ErrRecord = errors.New("engine: unreadable record in the journal")

// chain writes the commits of one thread to a journal. The store calls save one
// commit at a time and in order, which is all the locking there is.
type chain struct {
	journal  Journal
	thread   string
	limit    time.Duration
	now      func() time.Time
	revision uint64 // of the journal, which counts leases too
	epoch    uint64
	broken   error       // why nothing more can be written
	whole    atomic.Bool // the next commit carries the whole state, so that the store can drop the tail
}

// unknownTries is how often an append whose outcome is unknown is repeated.
const unknownTries = 8

// save appends one commit. After a conflict, a fence or an outcome that stays
// unknown the chain is broken: somebody else may have the thread, and it must be
// opened anew.
func (c *chain) save(next *state.Snapshot, d state.Delta) (err error) {
	if c.broken != nil {
		return c.broken
	}
	record, err := encodeRecord(d)
	if err != nil {
		return err
	}
	commit := JournalCommit{Thread: c.thread, Base: c.revision, Epoch: c.epoch, Time: c.now(), Record: record}
	whole := c.whole.Swap(false)
	defer func() {
		if whole && err != nil {
			c.whole.Store(true) // still to be done
		}
	}()
	if whole {
		dump, err := next.Export()
		if err != nil {
			return err
		}
		if commit.Snapshot, err = encodeRecord(dump); err != nil {
			return err
		}
	}
	if _, err := rand.Read(commit.ID[:]); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.limit)
	defer cancel()
	rev, err := c.journal.Append(ctx, commit)
	for try := 1; errors.Is(err, ErrUnknownOutcome) && try < unknownTries && ctx.Err() == nil; try++ {
		rev, err = c.journal.Append(ctx, commit)
	}
	switch {
	case err == nil && rev != c.revision+1:
		err = fmt.Errorf("%w: the journal answered revision %d to an append at %d", ErrCorrupt, rev, c.revision)
	case err == nil:
		c.revision = rev
		return nil
	}
	err = fmt.Errorf("engine: thread %s could not be saved: %w", c.thread, err)
	if errors.Is(err, ErrUnknownOutcome) || errors.Is(err, ErrJournalConflict) || errors.Is(err, ErrFenced) ||
		errors.Is(err, ErrCorrupt) || ctx.Err() != nil {
		c.broken = err
	}
	return err
}

func encodeRecord(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	return append([]byte{recordVersion}, text...), err
}

// decodeRecord reads what encodeRecord wrote, strictly.
func decodeRecord(raw []byte, v any) error {
	if len(raw) == 0 {
		return fmt.Errorf("%w: it is empty", ErrRecord)
	}
	if raw[0] != recordVersion {
		return fmt.Errorf("%w: format %d, this program reads format %d", ErrRecord, raw[0], recordVersion)
	}
	dec := json.NewDecoder(bytes.NewReader(raw[1:]))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("%w: %w", ErrRecord, err)
	}
	return nil
}

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
	image, err := e.config.Journal.Load(ctx, id, 0)
	if err != nil {
		return nil, fmt.Errorf("engine: thread %s could not be loaded: %w", id, err)
	}
	t, err := e.NewThread(id)
	if err != nil {
		return nil, err
	}
	if err := t.rebuild(image); err != nil {
		return nil, fmt.Errorf("engine: thread %s: %w", id, err)
	}
	return t, nil
}

// rebuild fills a new thread from what a journal has of it.
func (t *Thread) rebuild(image JournalImage) error {
	if image.Snapshot != nil {
		var dump state.Dump
		if err := decodeRecord(image.Snapshot, &dump); err != nil {
			return fmt.Errorf("snapshot at revision %d: %w", image.SnapshotAt, err)
		}
		if _, err := t.store.Import(dump, state.KeepUnknown); err != nil {
			return fmt.Errorf("snapshot at revision %d: %w", image.SnapshotAt, err)
		}
	}
	for _, r := range image.Tail {
		if len(r.Record) == 0 {
			continue // a lease
		}
		var d state.Delta
		err := decodeRecord(r.Record, &d)
		if err == nil {
			_, err = t.store.Apply(d)
		}
		if err != nil {
			return fmt.Errorf("record %d: %w", r.Revision, err)
		}
	}
	t.chain.revision, t.chain.epoch = image.Revision, image.Epoch
	t.lastID.Store(lastID.Get(t.store.Snapshot()))
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
		if err := guard(p.sc.call.Name, 0, func() error { policy = rec.Recovery(); return nil }); err != nil {
			policy = FailAsInterrupted
		}
	}
	switch policy {
	case Rerun:
		return false, nil
	case AskPerson:
		v := verdict{call: p.sc.call}
		t, answer, err := r.ask(ctx, p.sc, p.sc.call, engineName, gate.Suspend(gate.Ticket{
			Message: p.sc.call.Name + " was running when the process ended and may have done its work. Run it again?",
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
			if _, err := r.phase(ctx, scene{phase: phase.RunStart}); err != nil {
				return r.failed(ctx, err)
			}
			return r.boundary(ctx)
		default:
			return r.endStep(ctx, start, r.inStep(ctx))
		}
	})
}
