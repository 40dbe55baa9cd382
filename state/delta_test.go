package state_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/state"
)

// deltaKeys are one key of each kind.
type deltaKeys struct {
	cell  state.Cell[string]
	count state.Counter
	log   state.Log[int]
	set   state.Set[string]
	table state.Table[int, string]
	gone  state.Cell[int]
}

func newDeltaKeys() deltaKeys {
	return deltaKeys{
		cell:  state.NewCell("cell", state.Options[string]{}),
		count: state.NewCounter("count", state.Options[int64]{}),
		log:   state.NewLog("log", state.Options[int]{}),
		set:   state.NewSet("set", state.Options[string]{}),
		table: state.NewTable[int]("table", state.Options[string]{}),
		gone:  state.NewCell("transient", state.Options[int]{Transient: true}),
	}
}

func (k deltaKeys) all() []state.AnyKey {
	return []state.AnyKey{k.cell, k.count, k.log, k.set, k.table, k.gone}
}

func (k deltaKeys) random(r *rand.Rand) state.Update {
	word := string(rune('a' + r.IntN(6)))
	switch r.IntN(14) {
	case 0:
		return k.cell.With(word)
	case 1:
		return k.count.With(int64(r.IntN(9)))
	case 2, 3, 4:
		return k.log.Append(r.IntN(9), r.IntN(9))
	case 5:
		return k.log.Replace(r.IntN(9))
	case 6:
		return k.set.Add(word)
	case 7:
		return k.set.Remove(word)
	case 8, 9:
		return k.table.Put(r.IntN(9), word)
	case 10:
		return k.table.Delete(r.IntN(9))
	case 11:
		return k.gone.With(1)
	case 12:
		return k.table.Reset()
	default:
		return []interface{ Reset() state.Update }{k.cell, k.count, k.log, k.set}[r.IntN(4)].Reset()
	}
}

func exported(t testing.TB, s *state.Snapshot) string {
	t.Helper()
	d, err := s.Export()
	require.NoError(t, err)
	text, err := json.Marshal(d)
	require.NoError(t, err)
	return string(text)
}

// A state rebuilt from an export and the deltas after it is the state, whatever was
// committed, also when the deltas went through JSON and when the program that
// rebuilds it does not know some of the keys.
func TestDeltasRebuildTheState(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		k := newDeltaKeys()
		var deltas []state.Delta
		store, err := state.NewStore(state.Config{Keys: k.all(), Persist: func(next *state.Snapshot, d state.Delta, _ []any) error {
			require.Equal(t, next.Revision(), d.Revision)
			text, err := json.Marshal(d)
			require.NoError(t, err)
			var back state.Delta
			require.NoError(t, json.Unmarshal(text, &back))
			deltas = append(deltas, back)
			return nil
		}})
		require.NoError(t, err)
		from := r.IntN(20)
		var start state.Dump
		for i := range 40 {
			if i == from {
				start, err = store.Snapshot().Export()
				require.NoError(t, err)
				deltas = nil
			}
			updates := make([]state.Update, 1+r.IntN(4))
			for j := range updates {
				updates[j] = k.random(r)
			}
			_, err := store.Commit(state.Batch{Updates: updates})
			require.NoError(t, err)
		}
		want := exported(t, store.Snapshot())

		for _, known := range [][]state.AnyKey{k.all(), {k.cell}, nil} {
			again, err := state.NewStore(state.Config{Keys: known})
			require.NoError(t, err)
			_, err = again.Import(start, state.KeepUnknown)
			require.NoError(t, err)
			for _, d := range deltas {
				_, err := again.Apply(d)
				require.NoError(t, err, "seed %d", seed)
			}
			require.GreaterOrEqual(t, again.Snapshot().Revision(), store.Snapshot().Revision())
			require.Equal(t, valuesOf(t, want), valuesOf(t, exported(t, again.Snapshot())), "seed %d, %d keys known", seed, len(known))
		}
	}
}

// valuesOf are the entries of an export, with the entries of collections sorted as a
// set: what is kept of an unknown key has no order of its own.
func valuesOf(t *testing.T, text string) map[string]any {
	t.Helper()
	d, err := state.DecodeDump([]byte(text))
	require.NoError(t, err)
	out := map[string]any{}
	for _, e := range d.Entries {
		var v any
		require.NoError(t, json.Unmarshal(e.Raw, &v))
		if list, ok := v.([]any); ok && e.Name != "log" {
			if len(list) == 0 {
				continue // a kept collection may be empty, a known one then has no value
			}
			set := map[string]int{}
			for _, item := range list {
				raw, err := json.Marshal(item)
				require.NoError(t, err)
				set[string(raw)]++
			}
			v = set
		}
		out[e.Name] = v
	}
	return out
}

// A commit that cannot be kept does not happen, and the next one works.
func TestPersistRefusesTheCommit(t *testing.T) {
	k := newDeltaKeys()
	full := errors.New("disk full")
	var fail error
	store, err := state.NewStore(state.Config{Keys: k.all(), Persist: func(*state.Snapshot, state.Delta, []any) error { return fail }})
	require.NoError(t, err)
	told := 0
	store.Subscribe(func(state.Commit) { told++ })
	fail = full
	before := store.Snapshot()
	_, err = store.Commit(state.Batch{Updates: []state.Update{k.count.With(1)}})
	require.ErrorIs(t, err, full)
	require.Same(t, before, store.Snapshot())
	require.Zero(t, told)
	fail = nil
	res, err := store.Commit(state.Batch{Updates: []state.Update{k.count.With(2)}})
	require.NoError(t, err)
	require.Equal(t, int64(2), k.count.Get(res.Snapshot))
	require.Equal(t, uint64(1), res.Snapshot.Revision())
	require.Equal(t, 1, told)
}

// A Persist that panics or ends its goroutine refuses the commit and leaves no lock
// behind.
func TestPersistThatBreaks(t *testing.T) {
	k := newDeltaKeys()
	var how func()
	store, err := state.NewStore(state.Config{Keys: k.all(), Persist: func(*state.Snapshot, state.Delta, []any) error { how(); return nil }})
	require.NoError(t, err)
	how = func() { panic("torn") }
	_, err = store.Commit(state.Batch{Updates: []state.Update{k.count.With(1)}})
	require.ErrorContains(t, err, "torn")
	how = runtime.Goexit
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = store.Commit(state.Batch{Updates: []state.Update{k.count.With(1)}})
	}()
	<-gone
	require.Zero(t, store.Snapshot().Revision())
	how = func() {}
	_, err = store.Commit(state.Batch{Updates: []state.Update{k.count.With(2)}})
	require.NoError(t, err)
	require.Equal(t, int64(2), k.count.Get(store.Snapshot()))
}

// Records come one at a time and in order, however many goroutines commit.
func TestPersistKeepsTheOrder(t *testing.T) {
	k := newDeltaKeys()
	var revisions []uint64 // no lock: Persist is never called twice at a time
	store, err := state.NewStore(state.Config{Keys: k.all(), Persist: func(_ *state.Snapshot, d state.Delta, _ []any) error {
		revisions = append(revisions, d.Revision)
		return nil
	}})
	require.NoError(t, err)
	const workers, each = 8, 50
	done := make(chan error, workers)
	for range workers {
		go func() {
			var err error
			for range each {
				if _, e := store.Commit(state.Batch{Updates: []state.Update{k.count.With(1)}}); e != nil {
					err = e
				}
			}
			done <- err
		}()
	}
	for range workers {
		require.NoError(t, <-done)
	}
	require.Len(t, revisions, workers*each)
	for i, rev := range revisions {
		require.Equal(t, uint64(i+1), rev)
	}
	require.Equal(t, int64(workers*each), k.count.Get(store.Snapshot()))
}

// FuzzDelta: whatever a record holds, applying it is an error or a commit.
func FuzzDelta(f *testing.F) {
	f.Add([]byte(`{"revision":3,"entries":[{"name":"log","scope":"run","version":0,"raw":[1],"part":"append"}]}`))
	f.Add([]byte(`{"revision":3,"entries":[{"name":"table","raw":[[1,"a"]],"part":"entries","gone":[2]}]}`))
	f.Add([]byte(`{"revision":3,"entries":[{"name":"x","raw":[[1,"a"]],"part":"entries","gone":[2]},{"name":"x","raw":[1],"part":"append"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var d state.Delta
		if json.Unmarshal(data, &d) != nil {
			return
		}
		k := newDeltaKeys()
		store, err := state.NewStore(state.Config{Keys: k.all()})
		require.NoError(t, err)
		before := store.Snapshot()
		if _, err := store.Apply(d); err != nil {
			require.Same(t, before, store.Snapshot())
		}
	})
}
