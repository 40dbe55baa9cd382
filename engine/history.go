package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Revision is one commit in a thread's history.
type Revision struct {
	Revision uint64          `json:"revision"`
	Time     time.Time       `json:"time,omitzero"` // zero for a thread without a journal
	Run      string          `json:"run,omitzero"`
	Step     int             `json:"step,omitzero"`
	Status   phase.RunStatus `json:"status,omitzero"`
	Keys     []string        `json:"keys,omitempty"` // that it wrote, sorted; unknown for the oldest one kept
}

// History yields the thread's commits, newest first: all that the journal can show, or
// without one those that Limits.History keeps. An error ends it.
func (t *Thread) History(ctx context.Context) iter.Seq2[Revision, error] {
	return func(yield func(Revision, error) bool) {
		var newer *past // waits for the one before it, which tells its keys if nobody else does
		for chunk, err := range t.chunks(ctx) {
			if err != nil {
				if newer == nil || yield(newer.revision(nil), nil) {
					yield(Revision{}, err)
				}
				return
			}
			for _, p := range slices.Backward(chunk) {
				if newer != nil && !yield(newer.revision(&p), nil) {
					return
				}
				newer = &p
			}
		}
		if newer != nil {
			yield(newer.revision(nil), nil)
		}
	}
}

// past is one commit and the state that it made.
type past struct {
	snap *state.Snapshot
	time time.Time
	keys []string // nil: not known
}

func (p *past) revision(before *past) Revision {
	if p.keys == nil && before != nil {
		changed, _ := diff(before.snap, p.snap) // what cannot be encoded has no names
		p.keys = each(changed, func(d KeyDiff) string { return d.Key })
	}
	l := lifecycle(p.snap)
	return Revision{Revision: p.snap.Revision(), Time: p.time, Run: l.Run, Step: l.Step, Status: l.Status, Keys: p.keys}
}

// chunks yields the thread's past in pieces, newest first, each oldest first.
func (t *Thread) chunks(ctx context.Context) iter.Seq2[[]past, error] {
	return func(yield func([]past, error) bool) {
		if t.chain == nil {
			var chunk []past
			for snap, ok := t.store.Snapshot(), true; ok && snap.Revision() > 0; snap, ok = t.store.At(snap.Revision() - 1) {
				chunk = append(chunk, past{snap: snap})
			}
			slices.Reverse(chunk)
			yield(chunk, nil)
			return
		}
		for image, err := range t.images(ctx) {
			var chunk []past
			if err == nil {
				if chunk, err = t.eng.unroll(image); err != nil {
					err = fmt.Errorf("engine: thread %s: %w", t.id, err)
				}
			}
			if !yield(chunk, err) || err != nil {
				return
			}
		}
	}
}

// images yields what the journal has of the thread, newest first, up to the snapshots.
func (t *Thread) images(ctx context.Context) iter.Seq2[JournalImage, error] {
	return func(yield func(JournalImage, error) bool) {
		t.chain.mu.Lock()
		at := t.chain.revision
		t.chain.mu.Unlock()
		image, err := t.eng.load(ctx, t.id, at)
		h, ok := t.eng.config.Journal.(Historian)
		for yield(image, err) && err == nil && ok && image.SnapshotAt > 1 {
			before := image.SnapshotAt - 1
			image, err = within(ctx, nil, t.eng.config.Limits.JournalTimeout, "Config.Journal", 0, func(ctx context.Context) (JournalImage, error) {
				return h.LoadAt(ctx, t.id, before)
			})
			switch {
			case errors.Is(err, ErrNoRevision):
				return
			case err != nil:
				err = fmt.Errorf("engine: thread %s could not be loaded at %d: %w", t.id, before, err)
			case image.Revision != before:
				err = fmt.Errorf("%w: thread %s was to be loaded at %d, and is at %d", ErrCorrupt, t.id, before, image.Revision)
			}
		}
	}
}

// unroll makes the commits of an image again, each with its state, up to an error.
func (e *Engine) unroll(image JournalImage) (chunk []past, err error) {
	store, err := state.NewStore(state.Config{Schema: e.schema})
	if err != nil {
		return nil, err
	}
	err = rebuild(store, image, func(r JournalRecord, d state.Delta) {
		p := past{snap: store.Snapshot(), time: r.Time}
		if r.Record != nil {
			p.keys = make([]string, len(d.Entries))
			for i, entry := range d.Entries {
				p.keys[i] = entry.Name
			}
		}
		chunk = append(chunk, p)
	})
	return chunk, err
}

// Past returns the state at a revision of the thread's history. The error is
// ErrNoRevision for one that is not kept.
func (t *Thread) Past(ctx context.Context, revision uint64) (*state.Snapshot, error) {
	if snap, ok := t.store.At(revision); ok {
		return snap, nil
	}
	for chunk, err := range t.chunks(ctx) {
		for _, p := range chunk {
			if p.snap.Revision() == revision {
				return p.snap, nil
			}
		}
		if err != nil {
			return nil, err
		}
		if len(chunk) > 0 && chunk[0].snap.Revision() < revision {
			break
		}
	}
	return nil, fmt.Errorf("%w: %d", ErrNoRevision, revision)
}

// KeyDiff is a key with different values at two revisions, nil where it has none.
type KeyDiff struct {
	Key    string          `json:"key"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// Diff returns the keys that differ between two revisions of the thread's history, by
// name, with their encoded values.
func (t *Thread) Diff(ctx context.Context, a, b uint64) ([]KeyDiff, error) {
	before, err := t.Past(ctx, a)
	if err != nil {
		return nil, err
	}
	after, err := t.Past(ctx, b)
	if err != nil {
		return nil, err
	}
	return diff(before, after)
}

func diff(before, after *state.Snapshot) ([]KeyDiff, error) {
	was, err := before.Export()
	if err != nil {
		return nil, err
	}
	is, err := after.Export()
	if err != nil {
		return nil, err
	}
	byKey := map[string]KeyDiff{}
	for _, e := range was.Entries {
		byKey[e.Name] = KeyDiff{Key: e.Name, Before: e.Raw}
	}
	for _, e := range is.Entries {
		byKey[e.Name] = KeyDiff{Key: e.Name, Before: byKey[e.Name].Before, After: e.Raw}
	}
	out := []KeyDiff{}
	for _, name := range slices.Sorted(maps.Keys(byKey)) {
		if d := byKey[name]; !bytes.Equal(d.Before, d.After) {
			out = append(out, d)
		}
	}
	return out, nil
}
