package bolt

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/ddd26017/fixpoint/store"
)

// audit checks the values that a walk finds, and, when it is deep, what they say of
// each other.
type audit struct {
	path   string
	deep   bool
	counts map[string]int
	roots  map[string]int64 // where each bucket begins, as far as is known
	faults []*CorruptError

	threads map[string]*tally
	effects map[string]store.EffectRef // by bucket and key of the index entry that has to be there
	index   map[string]store.EffectRef // by bucket and key of the index entry that is there
	last    counters
	order   uint64 // newest one in use
	token   uint64
}

// tally is what was found of a thread.
type tally struct {
	entry     thread
	found     bool // the entry
	records   uint64
	first     uint64
	last      uint64
	lastID    [16]byte
	snapshots []uint64
}

func newAudit(path string, deep bool) *audit {
	return &audit{
		path: path, deep: deep, counts: map[string]int{}, threads: map[string]*tally{},
		effects: map[string]store.EffectRef{}, index: map[string]store.EffectRef{},
	}
}

func (a *audit) count(bucket []byte) int { return a.counts[string(bucket)] }

func (a *audit) fault(bucket []byte, thread string, revision uint64, offset int64, reason string) {
	if root, known := a.roots[string(bucket)]; known && offset < 0 {
		offset = root // what is missing has no place, but its bucket has
	}
	if len(a.faults) < maxFaults {
		a.faults = append(a.faults, &CorruptError{
			Path: a.path, Bucket: string(bucket), Thread: thread, Revision: revision, Offset: offset, Reason: reason,
		})
	}
}

// value checks one value.
func (a *audit) value(bucket []byte, e element) {
	a.counts[string(bucket)]++
	k := kindOf(bucket)
	v, reason := openValue(k, e.key, e.value)
	if reason != "" {
		a.fault(bucket, v.thread, v.revision, e.offset, reason)
		return
	}
	if !a.right(bucket, k, e.key, v) {
		a.fault(bucket, v.thread, v.revision, e.offset, "the value makes no sense")
	}
}

// right decodes a value whose checksum fits, and reports whether it and its key make
// sense.
func (a *audit) right(bucket []byte, k kind, key []byte, v value) (ok bool) {
	name, rest, named := cutName(key)
	switch k {
	case kindCounters:
		a.last, ok = decodeCounters(v.payload)
		return ok
	case kindThread:
		t, ok := decodeThread(v.revision, v.payload)
		if a.deep && ok {
			a.tally(v.thread).entry, a.tally(v.thread).found = t, true
		}
		return ok && named && len(rest) == 0 && name == v.thread
	case kindRecord, kindSnapshot:
		ok = named && name == v.thread && len(rest) == 8 && binary.BigEndian.Uint64(rest) == v.revision
		if k == kindSnapshot {
			_, _, decoded := decodeSnapshot(v.payload)
			if a.deep {
				t := a.tally(v.thread)
				t.snapshots = append(t.snapshots, v.revision)
			}
			return ok && decoded
		}
		r, decoded := decodeRecord(v.revision, v.payload)
		if a.deep {
			a.tally(v.thread).record(r)
		}
		return ok && decoded
	case kindEffect:
		if !named || name != v.thread || len(rest) != 12 {
			return false
		}
		ref := store.EffectRef{Thread: name, Revision: binary.BigEndian.Uint64(rest), Index: binary.BigEndian.Uint32(rest[8:])}
		f, decoded := decodeEffect(ref, v.payload)
		if a.deep && decoded {
			in, at := f.index()
			a.effects[string(in)+"\x00"+string(at)] = ref
			a.order, a.token = max(a.order, f.order), max(a.token, f.token)
		}
		return decoded && ref.Revision == v.revision
	default:
		ref, decoded := decodeIndex(v)
		if a.deep && decoded {
			a.index[string(bucket)+"\x00"+string(key)] = ref
		}
		return decoded && named
	}
}

func (a *audit) tally(id string) *tally {
	t := a.threads[id]
	if t == nil {
		t = &tally{}
		a.threads[id] = t
	}
	return t
}

// record counts a record; they come in the order of their revisions.
func (t *tally) record(r store.Record) {
	if t.records == 0 {
		t.first = r.Revision
	}
	t.records++
	t.last, t.lastID = r.Revision, r.ID
}

// compare finds what does not fit together though every value is whole.
func (a *audit) compare() {
	for _, id := range slices.Sorted(maps.Keys(a.threads)) {
		t := a.threads[id]
		newest := uint64(0)
		if n := len(t.snapshots); n > 0 {
			newest = t.snapshots[n-1]
		}
		switch {
		case !t.found:
			a.fault(bucketThreads, id, 0, -1, "the thread has records or snapshots and no entry")
		case t.records == 0 || t.first != t.entry.first || t.last != t.entry.revision || t.records != t.last-t.first+1:
			a.fault(bucketRecords, id, t.entry.revision, -1, "records are missing, or there are too many")
		case t.lastID != t.entry.lastID:
			a.fault(bucketRecords, id, t.entry.revision, -1, "the newest record has another id than the thread's entry")
		case newest != t.entry.snapshotAt:
			a.fault(bucketSnapshots, id, t.entry.snapshotAt, -1, "the newest snapshot is not the one of the thread's entry")
		}
	}
	for at, ref := range a.effects {
		if a.index[at] != ref {
			a.fault(bucketEffects, ref.Thread, ref.Revision, -1, "the effect is not in the index")
		}
	}
	if len(a.index) != len(a.effects) {
		a.fault(bucketEffects, "", 0, -1, "the index has entries without effects")
	}
	if a.order > a.last.order || a.token > a.last.token {
		a.fault(bucketCounters, "", 0, -1, "numbers are in use that were not given out")
	}
}
