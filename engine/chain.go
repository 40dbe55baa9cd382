package engine

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/internal/jsonpos"
	"github.com/ddd26017/fixpoint/state"
)

// recordVersion is the first byte of every record and snapshot. A newer one is
// refused: who wrote it knew more.
const recordVersion = 1

// ErrRecord is returned when a journal holds what this program cannot read.
var ErrRecord = errors.New("engine: unreadable record in the journal")

// chain writes the commits of one thread to a journal.
type chain struct {
	eng    *Engine
	thread string
	whole  atomic.Bool // the next commit carries the whole state, so that the store can drop the tail
	sent   *sent

	mu       sync.Mutex // held while something is appended: one at a time and in order
	revision uint64     // of the journal, which counts leases too
	kept     uint64     // revision of the state that the journal has
	epoch    uint64
	broken   error // why nothing more can be written
	lease    *Lease
	holders  int // of the lease, which is given up with the last one
}

// checkpoint is the whole state as a journal's snapshot.
type checkpoint struct {
	state.Dump
	Time time.Time `json:"time,omitzero"`
}

// unknownTries is how often an append whose outcome is unknown is repeated.
const unknownTries = 8

// save appends one commit, and the durable effects of its batches with it.
func (c *chain) save(next *state.Snapshot, d state.Delta, notes []any) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return c.broken
	}
	var commit JournalCommit
	if commit.Record, err = encodeRecord(d); err != nil {
		return err
	}
	var ids []effects.ID
	if c.outbox() {
		var list []effects.Delivery
		for _, n := range notes {
			list = n.(note).deliveries(list, 0, next)
		}
		if ids, err = c.pack(&commit, list); err != nil {
			return err
		}
	}
	// An import is not in the journal by itself.
	whole := c.whole.Swap(false) || next.Revision() != c.kept+1
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
		if commit.Snapshot, err = encodeRecord(checkpoint{dump, c.eng.config.Now()}); err != nil {
			return err
		}
	}
	if err := c.append(&commit, ids); err != nil {
		return err
	}
	c.kept = next.Revision()
	return nil
}

// flush settles the effects that were delivered since the last append.
func (c *chain) flush() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken == nil && c.sent.Any() {
		_ = c.append(&JournalCommit{}, nil) // if it fails, they are delivered again, under the same ids
	}
	if c.broken != nil {
		c.sent.Settled(c.sent.Take()...) // by whoever reads the outbox
	}
}

// append fills in what every commit has and appends it; ids are those of its effects.
// After a conflict, a fence or an outcome that stays unknown the chain is broken:
// somebody else may have the thread, and it must be opened anew.
func (c *chain) append(commit *JournalCommit, ids []effects.ID) error {
	commit.Thread, commit.Base, commit.Epoch, commit.Time = c.thread, c.revision, c.epoch, c.eng.config.Now()
	_, _ = rand.Read(commit.ID[:]) // never fails
	commit.Settles = c.sent.Take()
	rev, err := surely(context.Background(), c.eng, func(ctx context.Context) (uint64, error) {
		return c.eng.config.Journal.Append(ctx, *commit)
	})
	switch {
	case err == nil && rev != c.revision+1:
		err = fmt.Errorf("%w: the journal answered revision %d to an append at %d", ErrCorrupt, rev, c.revision)
	case err == nil:
		c.revision = rev
		c.sent.Settled(commit.Settles...)
		for i, id := range ids {
			c.sent.Add(id, EffectRef{Thread: c.thread, Revision: rev, Index: uint32(i)})
		}
		return nil
	}
	err = fmt.Errorf("engine: thread %s could not be saved: %w", c.thread, err)
	if errors.Is(err, ErrUnknownOutcome) || errors.Is(err, ErrJournalConflict) || errors.Is(err, ErrFenced) || errors.Is(err, ErrCorrupt) {
		c.broken = err
	}
	c.sent.Return(commit.Settles)
	return err
}

// surely makes a call of the journal, and the same again while its outcome is unknown,
// for at most Limits.JournalTimeout. It survives a journal that panics or hangs.
func surely[T any](ctx context.Context, e *Engine, call func(context.Context) (T, error)) (out T, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.config.Limits.JournalTimeout)
	defer cancel()
	unknown := false
	for try := 0; try == 0 || try < unknownTries && errors.Is(err, ErrUnknownOutcome) && ctx.Err() == nil; try++ {
		out, err = detached(ctx, nil, "Config.Journal", 0, call)
		unknown = unknown || errors.Is(err, ErrUnknownOutcome)
	}
	refused := errors.Is(err, ErrJournalConflict) || errors.Is(err, ErrFenced) || errors.Is(err, ErrLeaseHeld)
	if err != nil && (ctx.Err() != nil || unknown && !refused) && !errors.Is(err, ErrUnknownOutcome) {
		err = fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	return out, err
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
	if _, err := jsonpos.Decode(string(raw[1:]), v, (*json.Decoder).DisallowUnknownFields); err != nil {
		return fmt.Errorf("%w: %w", ErrRecord, err)
	}
	return nil
}
