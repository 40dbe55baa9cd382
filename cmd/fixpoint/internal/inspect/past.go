package inspect

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// past reads the commits of a thread in a journal, oldest first, and each only once.
type past struct {
	thread string
	done   uint64       // revision of the journal up to which it was read
	store  *state.Store // the state there; nil: nothing was read
}

// commit is one commit that a journal has.
type commit struct {
	time          time.Time
	before, after *state.Snapshot // before is nil for the oldest one
	changes       []state.DeltaEntry
}

// schema has the keys that are looked into. Others are kept as they are.
func schema() (*state.Schema, error) {
	return state.NewSchema(append(phase.Keys(), engine.Transcript, engine.ToolCalls, engine.Usage, kept.Key)...)
}

// errPruned means that what was read before is not in the journal any more.
var errPruned = errors.New("the past of a thread was dropped, or the thread is another one")

// more calls each for every commit that was not read yet.
func (p *past) more(ctx context.Context, j engine.Journal, keys *state.Schema, each func(commit) error) error {
	images, ok := j.(engine.Historian)
	if !ok {
		return errors.New("the store shows no past")
	}
	// The places of the snapshots first: an image may be large, and there is one for
	// every step.
	var ends []uint64
	image, err := j.Load(ctx, p.thread, 0)
	if err != nil {
		return err
	}
	if image.Revision < p.done {
		return errPruned
	}
	for image.Revision > p.done {
		ends = append(ends, image.Revision)
		if image.SnapshotAt <= max(p.done, 1) {
			break
		}
		next, err := images.LoadAt(ctx, p.thread, image.SnapshotAt-1)
		if errors.Is(err, engine.ErrNoRevision) {
			if p.done > 0 {
				return errPruned
			}
			break
		}
		if err != nil {
			return err
		}
		image = next
	}
	for _, end := range slices.Backward(ends) {
		if image, err = images.LoadAt(ctx, p.thread, end); err != nil {
			return err
		}
		if err := p.image(image, keys, each); err != nil {
			return fmt.Errorf("thread %s: %w", p.thread, err)
		}
	}
	return nil
}

// image reads what is new in one image.
func (p *past) image(image engine.JournalImage, keys *state.Schema, each func(commit) error) (err error) {
	if image.SnapshotAt > p.done {
		if err := p.snapshot(image, keys, each); err != nil {
			return fmt.Errorf("snapshot %d: %w", image.SnapshotAt, err)
		}
		p.done = image.SnapshotAt
	}
	if p.store == nil {
		if p.store, err = state.NewStore(state.Config{Schema: keys}); err != nil {
			return err
		}
	}
	for _, r := range image.Tail {
		if r.Revision <= p.done {
			continue
		}
		if len(r.Record) > 0 { // else it is about effects, or a lease
			var d state.Delta
			if err := unpack(r.Record, &d); err != nil {
				return fmt.Errorf("record %d: %w", r.Revision, err)
			}
			res, err := p.store.Apply(d)
			if err != nil {
				return fmt.Errorf("record %d: %w", r.Revision, err)
			}
			if err := each(commit{r.Time, res.Before, res.Snapshot, d.Entries}); err != nil {
				return err
			}
		}
		p.done = r.Revision
	}
	return nil
}

// snapshot reads the commit at whose revision the whole state was kept.
func (p *past) snapshot(image engine.JournalImage, keys *state.Schema, each func(commit) error) (err error) {
	var whole struct {
		state.Dump
		Time time.Time `json:"time"`
	}
	if err := unpack(image.Snapshot, &whole); err != nil {
		return err
	}
	oldest := p.store == nil
	d := whole.Dump.Delta()
	if oldest {
		p.store, err = state.NewStore(state.Config{Schema: keys})
	} else {
		var before state.Dump
		before, err = p.store.Snapshot().Export()
		d.Entries = differ(before, whole.Dump) // only what changed is to be decoded
	}
	if err != nil {
		return err
	}
	res, err := p.store.Apply(d)
	if err != nil {
		return err
	}
	c := commit{time: whole.Time, after: res.Snapshot}
	if !oldest {
		c.before, c.changes = res.Before, d.Entries
	}
	return each(c)
}

// differ lists the keys whose values differ, with the whole values.
func differ(before, after state.Dump) []state.DeltaEntry {
	changes := []state.DeltaEntry{}
	byName := func(e state.DumpEntry, name string) int { return strings.Compare(e.Name, name) }
	for _, e := range after.Entries {
		i, found := slices.BinarySearchFunc(before.Entries, e.Name, byName)
		if !found || !bytes.Equal(before.Entries[i].Raw, e.Raw) {
			changes = append(changes, state.DeltaEntry{DumpEntry: e})
		}
	}
	for _, e := range before.Entries {
		if _, found := slices.BinarySearchFunc(after.Entries, e.Name, byName); !found {
			e.Raw = json.RawMessage("null")
			changes = append(changes, state.DeltaEntry{DumpEntry: e, Part: state.PartReset})
		}
	}
	slices.SortFunc(changes, func(a, b state.DeltaEntry) int { return cmp.Compare(a.Name, b.Name) })
	return changes
}

// unpack reads what the engine packed for a journal: a byte for the format, and JSON.
func unpack(raw []byte, into any) error {
	if len(raw) == 0 || raw[0] != 1 {
		return engine.ErrRecord
	}
	return json.Unmarshal(raw[1:], into)
}
