package state

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"github.com/ddd26017/fixpoint/internal/jsonarray"
	"github.com/ddd26017/fixpoint/internal/sorted"
)

// Delta is what one commit changed, in a form that can be saved: applied to the
// state before the commit it gives the state after it.
type Delta struct {
	// Revision is that of the commit.
	Revision uint64 `json:"revision"`
	// Entries are the changed keys, by name.
	Entries []DeltaEntry `json:"entries"`
}

// DeltaEntry is the change of one key.
type DeltaEntry struct {
	DumpEntry
	// Part says what Raw is: the whole value, or a piece of it.
	Part Part `json:"part,omitempty"`
	// Gone are the keys of deleted entries, a JSON array, with PartEntries.
	Gone json.RawMessage `json:"gone,omitempty"`
}

// Part says how a DeltaEntry changes its key.
type Part string

// The parts.
const (
	PartWhole   Part = ""        // Raw is the value
	PartReset   Part = "reset"   // the key has no value any more; Raw is null
	PartAppend  Part = "append"  // Raw holds the elements that were appended
	PartEntries Part = "entries" // Raw holds the entries that were set
)

// DeltaOf returns what changed from before to after, two snapshots of one store. The
// error names the key whose codec failed.
func DeltaOf(before, after *Snapshot) (Delta, error) {
	out := Delta{Revision: after.rev, Entries: []DeltaEntry{}}
	for _, d := range after.schema.byName {
		was, is := before.cell(d), after.cell(d)
		if d.transient || was == is {
			continue
		}
		out.Entries = append(out.Entries, DeltaEntry{DumpEntry: DumpEntry{Name: d.name, Scope: d.scope, Version: d.version}})
		e := &out.Entries[len(out.Entries)-1]
		_, err := guard(d.name, func() (_ struct{}, err error) {
			switch {
			case !holds(is):
				e.Part, e.Raw = PartReset, json.RawMessage("null")
			case !holds(was):
				e.Raw, err = d.impl.encode(is)
			default:
				err = d.impl.delta(was, is, e)
			}
			return struct{}{}, err
		})
		if err != nil {
			return Delta{}, fmt.Errorf("state: cannot encode key %q: %w", d.name, err)
		}
	}
	for _, e := range before.kept { // of keys that nobody registered; they come with imports only, but a reset of their scope takes them
		if _, found := slices.BinarySearchFunc(after.kept, e, byName); !found {
			e.Raw = json.RawMessage("null")
			out.Entries = append(out.Entries, DeltaEntry{DumpEntry: e, Part: PartReset})
		}
	}
	slices.SortFunc(out.Entries, func(a, b DeltaEntry) int { return byName(a.DumpEntry, b.DumpEntry) })
	return out, nil
}

// Apply makes the change d, as its first commit did, in one commit. It is for
// rebuilding a state from an export and the deltas after it, in order; nobody else
// may commit meanwhile. Everything is decoded first, and an error, as of Import,
// leaves the state as it was. Keys that the store does not have are kept.
func (s *Store) Apply(d Delta) (Result, error) {
	now := s.Snapshot()
	batch := Batch{Owner: "state.apply", quiet: true}
	kept, names := slices.Clone(now.kept), map[string]bool{}
	if d.Revision > maxRevision {
		return Result{Snapshot: now}, &DecodeError{Offset: -1, Err: errRevision}
	}
	for _, e := range d.Entries {
		if err := e.check(names); err != nil {
			return Result{Snapshot: now}, err
		}
		var err error
		var u Update
		if k := s.schema.named[e.Name]; k != nil {
			u, err = k.read(now.cell(k), e)
			batch.Updates = append(batch.Updates, u)
		} else {
			kept, err = patchKept(kept, e)
		}
		if err != nil {
			return Result{Snapshot: now}, e.fault(err)
		}
	}
	return s.commit([]Batch{batch}, func(next *Snapshot) {
		next.rev, next.kept = max(next.rev, d.Revision), kept
	})
}

// read decodes a change of the key, whose cell is cur, to the update that makes it.
func (d *def) read(cur cell, e DeltaEntry) (Update, error) {
	if e.Part == PartReset {
		return Update{d: d, verb: verbReset}, nil
	}
	o, err := guard(d.name, func() (importOp, error) {
		if err := refuseNewer(e.Version, d.version); err != nil {
			return nil, err
		}
		if e.Part == PartWhole {
			return d.impl.decode(e.Raw, e.Version)
		}
		return d.impl.patch(cur, e)
	})
	return Update{d, o, verbImport}, err
}

// patchKept changes the kept value of a key that nobody registered, which can be
// done on its JSON: logs and sets are arrays of elements, tables arrays of pairs.
func patchKept(kept []DumpEntry, e DeltaEntry) (_ []DumpEntry, err error) {
	at, found := slices.BinarySearchFunc(kept, e.DumpEntry, byName)
	switch {
	case e.Part == PartReset && found:
		return slices.Delete(kept, at, at+1), nil
	case e.Part == PartReset:
		return kept, nil
	case e.Part == PartWhole && !found:
		return slices.Insert(kept, at, e.DumpEntry), nil
	case e.Part == PartWhole:
		kept[at] = e.DumpEntry
		return kept, nil
	case e.Part != PartAppend && e.Part != PartEntries:
		return nil, fmt.Errorf("unknown part %q", e.Part)
	case !found || kept[at].Version != e.Version:
		return nil, fmt.Errorf("it is a part (%q) of a value that is not there", e.Part)
	}
	if e.Part == PartAppend {
		kept[at].Raw, err = jsonarray.Append(kept[at].Raw, e.Raw)
	} else {
		kept[at].Raw, err = jsonarray.Replace(kept[at].Raw, e.Raw, e.Gone, jsonarray.PairKey)
	}
	return kept, err
}

func (d *keyDef[V, U]) delta(before, after cell, e *DeltaEntry) (err error) {
	if d.tail != nil {
		if raw, ok, err := d.tail(before.(*box[V]).value, after.(*box[V]).value); ok || err != nil {
			e.Part, e.Raw = PartAppend, raw
			return err
		}
	}
	e.Raw, err = d.encode(after)
	return err
}

func (d *keyDef[V, U]) patch(cur cell, e DeltaEntry) (importOp, error) {
	if e.Part != PartAppend || d.extend == nil {
		return nil, fmt.Errorf("the key takes no part %q", e.Part)
	}
	more, err := d.o.decode(e.Raw, e.Version)
	if err != nil {
		return nil, err
	}
	v := d.extend(d.current(cur), more)
	return func(at *stamp) cell { return boxed(at, v) }, nil
}

func (d *tableDef[K, V]) delta(before, after cell, e *DeltaEntry) (err error) {
	var gone [][]byte
	old, now := d.view(before), d.view(after)
	changed := func(yield func(K, V) bool) {
		old.entries.Diff(&now.entries, func(k K, was, is *box[V]) bool {
			if is != nil {
				return d.own != nil && was != nil || yield(k, copied(d.o.Clone, is.value))
			}
			raw, fault := json.Marshal(k)
			gone, err = append(gone, raw), fault
			return err == nil
		})
	}
	e.Part = PartEntries
	raw, encodeErr := encodeAll(iter.Seq2[K, V](changed), d.o.Codec, d.own == nil)
	if encodeErr != nil {
		return encodeErr
	}
	e.Raw, e.Gone = raw, jsonarray.Join(gone...)
	return err
}

func (d *tableDef[K, V]) patch(cur cell, e DeltaEntry) (importOp, error) {
	if e.Part != PartEntries {
		return nil, fmt.Errorf("the key takes no part %q", e.Part)
	}
	set, err := decodeEntries(e.Raw, func(raw []byte) (V, error) { return d.o.decode(raw, e.Version) }, d.own)
	if err != nil {
		return nil, err
	}
	var gone []K
	if err := json.Unmarshal(e.Gone, &gone); err != nil {
		return nil, err
	}
	live := d.view(cur).derived()
	for _, k := range gone {
		live.entries.Delete(k)
	}
	for _, one := range set {
		if sorted.Unordered(one.key) {
			return nil, fmt.Errorf("entry %v has no order", one.key)
		}
		live.entries.Set(one.key, &box[V]{value: one.value})
	}
	return func(at *stamp) cell {
		return &entries[K, V]{at: at, since: at, live: live}
	}, nil
}
