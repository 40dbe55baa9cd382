package state_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/state"
)

// The model is the simplest thing that could be right: plain maps, values and
// whole histories, and the commit rule word by word.
type model struct {
	a, b, n  int
	log      []string
	set      map[string]bool
	calls    map[string]int
	rev      uint64
	changed  map[string]uint64 // place -> revision, kept for ever
	wholeRev map[string]uint64 // key -> revision of the last change of any entry
}

func newModel() *model {
	return &model{set: map[string]bool{}, calls: map[string]int{}, changed: map[string]uint64{}, wholeRev: map[string]uint64{}}
}

func (m *model) clone() *model {
	c := *m
	c.log, c.set, c.calls = slices.Clone(m.log), maps.Clone(m.set), maps.Clone(m.calls)
	c.changed, c.wholeRev = maps.Clone(m.changed), maps.Clone(m.wholeRev)
	return &c
}

// touch is what an update touches: a key, or one entry of it.
type touch struct {
	key, entry string // entry "" is the whole key
	alone      bool
}

func (a touch) overlaps(b touch) bool {
	return a.key == b.key && (a.entry == "" || b.entry == "" || a.entry == b.entry)
}

// step is one update in both worlds.
type step struct {
	update  state.Update
	touches []touch
	apply   func(*model)
}

// turnOf decodes one update from two bytes.
func (f fields) turnOf(what, arg byte) step {
	word := string('p' + rune(arg%4))
	other := string('p' + rune(arg/4%4))
	v := int(arg)
	whole := func(key string, alone bool) []touch { return []touch{{key, "", alone}} }
	switch what % 16 {
	case 0, 1:
		return step{f.a.With(v), whole("a", true), func(m *model) { m.a = v }}
	case 2:
		return step{f.b.With(v), whole("b", true), func(m *model) { m.b = v }}
	case 3:
		return step{f.a.Reset(), whole("a", true), func(m *model) { m.a = 0 }}
	case 4, 5:
		return step{f.n.With(int64(v)), whole("n", false), func(m *model) { m.n += v }}
	case 6:
		return step{f.n.Reset(), whole("n", true), func(m *model) { m.n = 0 }}
	case 7, 8:
		return step{f.log.Append(word, other), whole("log", false), func(m *model) { m.log = append(m.log, word, other) }}
	case 9:
		return step{f.log.Replace(word), whole("log", true), func(m *model) { m.log = []string{word} }}
	case 10:
		return step{f.set.Add(word, other), []touch{{"set", word, false}, {"set", other, false}}, func(m *model) { m.set[word], m.set[other] = true, true }}
	case 11:
		return step{f.set.Remove(word), []touch{{"set", word, true}}, func(m *model) { delete(m.set, word) }}
	case 12, 13:
		return step{f.calls.Put(word, v), []touch{{"calls", word, true}}, func(m *model) { m.calls[word] = v }}
	case 14:
		return step{f.calls.Delete(word), []touch{{"calls", word, true}}, func(m *model) { delete(m.calls, word) }}
	}
	if arg%2 == 0 {
		return step{f.set.Reset(), whole("set", true), func(m *model) { clear(m.set) }}
	}
	return step{f.calls.Reset(), whole("calls", true), func(m *model) { clear(m.calls) }}
}

// modelBatch is a batch in both worlds.
type modelBatch struct {
	batch   state.Batch
	steps   []step
	reads   []string
	based   bool
	baseRev uint64
}

// changedAt is when a touched place last changed.
func (m *model) changedAt(t touch) uint64 {
	if t.entry == "" {
		return m.wholeRev[t.key]
	}
	return max(m.changed[t.key+"/"+t.entry], m.changed[t.key])
}

// split is the commit rule, said as plainly as can be.
func (m *model) split(bs []modelBatch) (accepted []int) {
	var taken []touch
	var held []string
	for i, b := range bs {
		ok := true
		for _, r := range b.reads {
			if b.based && m.wholeRev[r] > b.baseRev || slices.ContainsFunc(taken, func(t touch) bool { return t.key == r }) {
				ok = false
			}
		}
		for _, s := range b.steps {
			for _, t := range s.touches {
				if t.alone && b.based && m.changedAt(t) > b.baseRev {
					ok = false
				}
				for _, o := range taken {
					if t.overlaps(o) && (t.alone || o.alone) {
						ok = false
					}
				}
				if t.key == "log" && slices.Contains(held, "log") {
					ok = false
				}
			}
		}
		for _, s := range b.steps {
			for _, t := range s.touches {
				if ok {
					taken = append(taken, t)
				} else {
					held = append(held, t.key)
				}
			}
		}
		if ok {
			accepted = append(accepted, i)
		}
	}
	return accepted
}

func (m *model) commit(bs []modelBatch, accepted []int) {
	updates := 0
	for _, i := range accepted {
		updates += len(bs[i].steps)
	}
	if updates == 0 {
		return
	}
	m.rev++
	for _, i := range accepted {
		for _, s := range bs[i].steps {
			s.apply(m)
			for _, t := range s.touches {
				m.wholeRev[t.key] = m.rev
				place := t.key
				if t.entry != "" {
					place += "/" + t.entry
				}
				m.changed[place] = m.rev
			}
		}
	}
}

func (f fields) equal(t testing.TB, m *model, s *state.Snapshot) {
	require.Equal(t, m.rev, s.Revision())
	require.Equal(t, m.a, f.a.Get(s))
	require.Equal(t, m.b, f.b.Get(s))
	require.EqualValues(t, m.n, f.n.Get(s))
	require.Equal(t, append([]string{}, m.log...), f.log.Get(s).Slice())
	require.Equal(t, append([]string{}, slices.Sorted(maps.Keys(m.set))...), collect(f.set.All(s)))
	require.Equal(t, m.calls, maps.Collect(f.calls.All(s)))
	for _, k := range []state.AnyKey{f.a, f.b, f.n, f.log, f.set, f.calls} {
		require.Equal(t, m.wholeRev[k.Name()], s.ChangedAt(k))
	}
	for _, w := range []string{"p", "q", "r", "s"} {
		require.Equal(t, m.changedAt(touch{key: "calls", entry: w}), f.calls.ChangedAt(s, w))
	}
}

// play decodes commits from data and plays them on the store and the model.
func play(t testing.TB, data []byte) {
	f := newFields(t)
	m := newModel()
	type version struct {
		snap  *state.Snapshot
		model *model
	}
	past := []version{{f.store.Snapshot(), m.clone()}}
	next := func() byte {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return b
	}
	named := map[string]state.AnyKey{"a": f.a, "n": f.n, "log": f.log, "calls": f.calls}
	for len(data) > 0 {
		bs := make([]modelBatch, 1+next()%5)
		var call []state.Batch
		for i := range bs {
			b := &bs[i]
			b.batch.Owner = fmt.Sprint(i)
			head := next()
			if head%4 != 0 {
				v := past[len(past)-1-int(head/4)%min(len(past), 4)]
				b.based, b.baseRev, b.batch.Base = true, v.snap.Revision(), v.snap
			}
			for range next() % 4 {
				s := f.turnOf(next(), next())
				b.steps = append(b.steps, s)
				b.batch.Updates = append(b.batch.Updates, s.update)
			}
			if r := next(); r < 64 {
				name := []string{"a", "n", "log", "calls"}[r%4]
				b.reads = append(b.reads, name)
				b.batch.Reads = append(b.batch.Reads, named[name])
			}
			call = append(call, b.batch)
		}
		want := m.split(bs)
		r, err := f.store.Commit(call...)
		require.NoError(t, err)
		got := []int{}
		for i := range bs {
			if !slices.ContainsFunc(r.Rejected, func(l state.Rejection) bool { return l.Index == i }) {
				got = append(got, i)
			}
		}
		require.Equal(t, append([]int{}, want...), got)
		before := m.rev
		m.commit(bs, want)
		require.Equal(t, m.rev > before, r.Committed)
		f.equal(t, m, f.store.Snapshot())
		past = append(past, version{f.store.Snapshot(), m.clone()})
	}
	for _, v := range past {
		f.equal(t, v.model, v.snap)
	}
	dump, err := f.store.Snapshot().Export()
	require.NoError(t, err)
	other := newStore(t, f.calls, f.set, f.log, f.n, f.b, f.a)
	r, err := other.Import(dump, state.RefuseUnknown)
	require.NoError(t, err)
	again, err := r.Snapshot.Export()
	require.NoError(t, err)
	require.Equal(t, dump.Entries, again.Entries)
}

// Capability A15.
// Capability B1.
func TestRandomCommitsMatchTheModel(t *testing.T) {
	x := uint64(1)
	for range 60 {
		data := make([]byte, 600)
		for i := range data {
			x = x*6364136223846793005 + 1442695040888963407
			data[i] = byte(x >> 40)
		}
		play(t, data)
	}
}

func FuzzUpdates(f *testing.F) {
	f.Add([]byte{4, 1, 3, 0, 1, 12, 2, 9, 9, 200, 1, 2, 0, 7, 7, 1, 255, 4, 1, 1})
	f.Add([]byte("the quick brown fox jumps over the lazy dog"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 2000 {
			data = data[:2000]
		}
		play(t, data)
	})
}

// FuzzDump reads anything, and what it can read it reads the same twice.
func FuzzDump(f *testing.F) {
	f.Add([]byte(everyDump))
	f.Add([]byte(`{"revision":3,"entries":[{"name":"x","scope":"thread","version":2,"raw":{"a" : "\u00e9"}}]}`))
	f.Add([]byte(`{"entries":[{"name":"n","raw":1}]}`))
	f.Add([]byte(`{"entries":[{"name":"n","raw":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := state.DecodeDump(data)
		if err != nil {
			var de *state.DecodeError
			require.ErrorAs(t, err, &de)
			return
		}
		text := toJSON(t, d)
		again, err := state.DecodeDump([]byte(text))
		require.NoError(t, err)
		require.Equal(t, text, toJSON(t, again))
		require.True(t, slices.IsSorted(names(d)))
	})
}

// FuzzImport imports anything: it succeeds whole or changes nothing.
func FuzzImport(f *testing.F) {
	for _, name := range []string{"cell", "n", "log", "set", "table", "names", "what"} {
		for _, raw := range []string{`1`, `[1,2,2]`, `[[1,{"X":2}],[3,{}]]`, `{"X":1,"Tags":["a"]}`, `[["a",[1]]]`, `null`, `[null]`, `[[`} {
			f.Add(name, 0, []byte(raw))
		}
	}
	f.Fuzz(func(t *testing.T, name string, version int, raw []byte) {
		e := newEvery()
		s := newStore(t, e.keys()...)
		before := e.fill(t, s)
		old, err := before.Export()
		require.NoError(t, err)
		r, err := s.Import(state.Dump{Entries: []state.DumpEntry{{Name: name, Version: version, Raw: raw}}}, state.KeepUnknown)
		if err != nil {
			require.Same(t, before, s.Snapshot())
			return
		}
		now, err := r.Snapshot.Export()
		require.NoError(t, err)
		for i, entry := range old.Entries {
			if entry.Name != name {
				require.Contains(t, now.Entries, old.Entries[i])
			}
		}
	})
}
