package engine

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

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
	sent   sent

	mu       sync.Mutex // held while something is appended: one at a time and in order
	revision uint64     // of the journal, which counts leases too
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
	ids, err := c.eng.outgoing(&commit, next.Revision(), notes)
	if err != nil {
		return err
	}
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
		if commit.Snapshot, err = encodeRecord(checkpoint{dump, c.eng.config.Now()}); err != nil {
			return err
		}
	}
	if err := c.append(&commit); err != nil {
		return err
	}
	c.sent.add(ids, c.thread, c.revision)
	return nil
}

// flush settles the effects that were delivered since the last append.
func (c *chain) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken == nil && c.sent.any() {
		_ = c.append(&JournalCommit{}) // if it fails, they are delivered again, under the same ids
	}
}

// append fills in what every commit has and appends it. After a conflict, a fence or
// an outcome that stays unknown the chain is broken: somebody else may have the
// thread, and it must be opened anew.
func (c *chain) append(commit *JournalCommit) error {
	commit.Thread, commit.Base, commit.Epoch, commit.Time = c.thread, c.revision, c.epoch, c.eng.config.Now()
	if _, err := rand.Read(commit.ID[:]); err != nil {
		return err
	}
	commit.Settles = c.sent.take()
	ctx, cancel := context.WithTimeout(context.Background(), c.eng.config.Limits.JournalTimeout)
	defer cancel()
	journal := c.eng.config.Journal
	rev, err := journal.Append(ctx, *commit)
	for try := 1; errors.Is(err, ErrUnknownOutcome) && try < unknownTries && ctx.Err() == nil; try++ {
		rev, err = journal.Append(ctx, *commit)
	}
	switch {
	case err == nil && rev != c.revision+1:
		err = fmt.Errorf("%w: the journal answered revision %d to an append at %d", ErrCorrupt, rev, c.revision)
	case err == nil:
		c.revision = rev
		c.sent.settled(commit.Settles)
		return nil
	}
	err = fmt.Errorf("engine: thread %s could not be saved: %w", c.thread, err)
	if errors.Is(err, ErrUnknownOutcome) || errors.Is(err, ErrJournalConflict) || errors.Is(err, ErrFenced) ||
		errors.Is(err, ErrCorrupt) || ctx.Err() != nil {
		c.broken = err
	}
	c.sent.unsettled(commit.Settles, c.broken != nil)
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
