package state_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/state"
)

// fields are the keys of the conflict tests: two exclusive cells, a counter, a
// log, a set and a table.
type fields struct {
	a, b  state.Cell[int]
	n     state.Counter
	log   state.Log[string]
	set   state.Set[string]
	calls state.Table[string, int]
	store *state.Store
}

func newFields(t testing.TB) fields {
	f := fields{
		a:     state.NewCell("a", state.Options[int]{}),
		b:     state.NewCell("b", state.Options[int]{}),
		n:     state.NewCounter("n", state.Options[int64]{}),
		log:   state.NewLog("log", state.Options[string]{}),
		set:   state.NewSet("set", state.Options[string]{}),
		calls: state.NewTable[string]("calls", state.Options[int]{}),
	}
	f.store = newStore(t, f.a, f.b, f.n, f.log, f.set, f.calls)
	return f
}

type batches []state.Batch

func by(owner string, updates ...state.Update) state.Batch {
	return state.Batch{Owner: owner, Updates: updates}
}

func reads(b state.Batch, keys ...state.AnyKey) state.Batch {
	b.Reads = keys
	return b
}

// lost lists the rejections as "loser:key[entry]<winner".
func lost(r state.Result) []string {
	var texts []string
	for _, l := range r.Rejected {
		e := ""
		if l.Err.Entry != "" {
			e = "[" + l.Err.Entry + "]"
		}
		texts = append(texts, fmt.Sprintf("%s:%s%s<%s", l.Err.Loser, l.Err.Key, e, l.Err.Winner))
	}
	return texts
}

// Capability B1.
// Capability B9.
// Fault F12.
func TestConflictsWithinOneCommit(t *testing.T) {
	f := newFields(t)
	put := f.calls.Put
	cases := []struct {
		name    string
		batches batches
		lost    []string
	}{
		{"different exclusive keys", batches{by("A", f.a.With(1)), by("B", f.b.With(2))}, nil},
		{"one exclusive key", batches{by("A", f.a.With(1)), by("B", f.a.With(2)), by("C", f.a.With(3))}, []string{"B:a<A", "C:a<A"}},
		{"twice in one batch", batches{by("A", f.a.With(1), f.a.With(2), f.a.Reset(), f.a.With(3))}, nil},
		{"a rejected batch takes nothing", batches{by("A", f.a.With(1)), by("B", f.a.With(2), f.b.With(2)), by("C", f.b.With(3))}, []string{"B:a<A"}},
		{"commutative key", batches{by("A", f.n.With(1)), by("B", f.n.With(2))}, nil},
		{"reset after add", batches{by("A", f.n.With(1)), by("B", f.n.Reset())}, []string{"B:n<A"}},
		{"add after reset", batches{by("A", f.n.Reset()), by("B", f.n.With(1))}, []string{"B:n<A"}},
		{"different entries", batches{by("A", put("x", 1)), by("B", put("y", 2)), by("C", f.calls.Delete("z"))}, nil},
		{"one entry", batches{by("A", put("x", 1)), by("B", put("y", 1), f.calls.Delete("x"))}, []string{"B:calls[x]<A"}},
		{"table reset meets every entry", batches{by("A", put("x", 1)), by("B", f.calls.Reset())}, []string{"B:calls<A"}},
		{"entry after table reset", batches{by("A", f.calls.Reset()), by("B", put("x", 1))}, []string{"B:calls<A"}},
		{"adding one element twice", batches{by("A", f.set.Add("x", "y")), by("B", f.set.Add("y"))}, nil},
		{"removing what was added", batches{by("A", f.set.Add("x", "y")), by("B", f.set.Remove("z", "y"))}, []string{"B:set[y]<A"}},
		{"adding what was removed", batches{by("A", f.set.Remove("x")), by("B", f.set.Add("w", "x"))}, []string{"B:set[x]<A"}},
		{"removing other elements", batches{by("A", f.set.Add("x")), by("B", f.set.Remove("y")), by("C", f.set.Remove("z"))}, nil},
		{"removing after two adds", batches{by("A", f.set.Add("x")), by("B", f.set.Add("x")), by("C", f.set.Remove("x"))}, []string{"C:set[x]<B"}},
		{"declared read of a written key", batches{by("A", f.a.With(1)), reads(by("B", f.b.With(1)), f.a)}, []string{"B:a<A"}},
		{"declared read of a written entry", batches{by("A", put("x", 1)), reads(by("B", f.b.With(1)), f.calls)}, []string{"B:calls<A"}},
		{"declared read before the write", batches{reads(by("A", f.b.With(1)), f.a), by("B", f.a.With(1))}, nil},
		{"write skew", batches{reads(by("A", f.a.With(1)), f.b), reads(by("B", f.b.With(1)), f.a)}, []string{"B:a<A"}},
		{"log keeps batch order", batches{
			by("A", f.a.With(1)), by("B", f.a.With(2), f.log.Append("B")), by("C", f.log.Append("C")), by("D", f.n.With(1)),
		}, []string{"B:a<A", "C:log<B"}},
		{"held back log holds back its batch's other logs", batches{
			by("A", f.a.With(1)), by("B", f.a.With(2), f.log.Append("B")), by("C", f.log.Append("C"), f.b.With(1)), by("D", f.b.With(2)),
		}, []string{"B:a<A", "C:log<B"}},
		{"unordered key is not held back", batches{by("A", f.a.With(1)), by("B", f.a.With(2), f.n.With(1)), by("C", f.n.With(1))}, []string{"B:a<A"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(t, f.a, f.b, f.n, f.log, f.set, f.calls)
			r, err := s.Commit(c.batches...)
			require.NoError(t, err)
			require.Equal(t, c.lost, lost(r))
			for _, rej := range r.Rejected {
				require.ErrorIs(t, rej.Err, state.ErrConflict)
				require.Equal(t, c.batches[rej.Index].Owner, rej.Err.Loser)
			}
		})
	}
}

// Capability A15.
// Capability B1.
// Capability B9.
// Fault F10.
func TestConflictsWithEarlierCommits(t *testing.T) {
	f := newFields(t)
	put := f.calls.Put
	cases := []struct {
		name   string
		before []state.Update // committed before the base
		since  []state.Update // committed after it
		batch  state.Batch
		lost   []string
	}{
		{"unrelated key", nil, []state.Update{f.b.With(1)}, by("L", f.a.With(1)), nil},
		{"exclusive key", nil, []state.Update{f.a.With(1)}, by("L", f.a.With(2)), []string{"L:a<W"}},
		{"exclusive key reset", []state.Update{f.a.With(1)}, []state.Update{f.a.Reset()}, by("L", f.a.With(2)), []string{"L:a<W"}},
		{"commutative key", nil, []state.Update{f.n.With(1)}, by("L", f.n.With(2)), nil},
		{"commutative key reset", nil, []state.Update{f.n.Reset()}, by("L", f.n.With(2)), nil},
		{"resetting a changed key", nil, []state.Update{f.n.With(1)}, by("L", f.n.Reset()), []string{"L:n<W"}},
		{"appending to a changed log", nil, []state.Update{f.log.Append("x")}, by("L", f.log.Append("y")), nil},
		{"replacing a changed log", nil, []state.Update{f.log.Append("x")}, by("L", f.log.Replace("y")), []string{"L:log<W"}},
		{"other entry", nil, []state.Update{put("x", 1)}, by("L", put("y", 1)), nil},
		{"new entry", nil, []state.Update{put("x", 1)}, by("L", put("x", 2)), []string{"L:calls[x]<W"}},
		{"changed entry", []state.Update{put("x", 0)}, []state.Update{put("x", 1)}, by("L", f.calls.Delete("x")), []string{"L:calls[x]<W"}},
		{"deleted entry", []state.Update{put("x", 0)}, []state.Update{f.calls.Delete("x")}, by("L", put("x", 2)), []string{"L:calls[x]<W"}},
		{"deleted and put again", []state.Update{put("x", 0)}, []state.Update{f.calls.Delete("x"), put("x", 0)}, by("L", put("x", 2)), []string{"L:calls[x]<W"}},
		{"reset table, old entry", []state.Update{put("x", 0)}, []state.Update{f.calls.Reset()}, by("L", put("x", 2)), []string{"L:calls[x]<W"}},
		{"reset table, new entry", nil, []state.Update{f.calls.Reset()}, by("L", put("x", 2)), []string{"L:calls[x]<W"}},
		{"resetting a changed table", nil, []state.Update{put("x", 1)}, by("L", f.calls.Reset()), []string{"L:calls<W"}},
		{"adding a removed element", nil, []state.Update{f.set.Remove("x")}, by("L", f.set.Add("x")), nil},
		{"removing an added element", nil, []state.Update{f.set.Add("x")}, by("L", f.set.Remove("w", "x")), []string{"L:set[x]<W"}},
		{"removing other elements", nil, []state.Update{f.set.Add("x")}, by("L", f.set.Remove("y")), nil},
		{"declared read", nil, []state.Update{f.b.With(1)}, reads(by("L", f.a.With(1)), f.b), []string{"L:b<W"}},
		{"declared read of a table", nil, []state.Update{put("x", 1)}, reads(by("L", f.a.With(1)), f.calls), []string{"L:calls<W"}},
		{"declared read unchanged", []state.Update{f.b.With(1)}, []state.Update{f.a.With(1)}, reads(by("L", f.n.With(1)), f.b), nil},
	}
	for _, c := range cases {
		for _, based := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/based=%v", c.name, based), func(t *testing.T) {
				s := newStore(t, f.a, f.b, f.n, f.log, f.set, f.calls)
				commit(t, s, c.before...)
				if based {
					c.batch.Base = s.Snapshot()
				} else {
					c.batch.Base, c.lost = nil, nil
				}
				_, err := s.Commit(by("W", c.since...))
				require.NoError(t, err)
				before := s.Snapshot()
				r, err := s.Commit(c.batch)
				require.NoError(t, err)
				require.Equal(t, c.lost, lost(r))
				require.Equal(t, c.lost == nil, r.Committed)
				if !r.Committed {
					require.Same(t, before, s.Snapshot())
					require.Same(t, before, r.Snapshot)
				}
				// On the newest snapshot the same batch goes through.
				c.batch.Base = s.Snapshot()
				r, err = s.Commit(c.batch)
				require.NoError(t, err)
				require.True(t, r.Committed)
			})
		}
	}
}

// Fault F12.
func TestLogOrderSurvivesAConflict(t *testing.T) {
	f := newFields(t)
	bs := batches{by("A", f.a.With(1), f.log.Append("A")), by("B", f.a.With(2), f.log.Append("B")), by("C", f.log.Append("C"))}
	r, err := f.store.Commit(bs...)
	require.NoError(t, err)
	for _, l := range r.Rejected {
		again, err := f.store.Commit(bs[l.Index])
		require.NoError(t, err)
		require.True(t, again.Committed)
	}
	require.Equal(t, []string{"A", "B", "C"}, f.log.Get(f.store.Snapshot()).Slice())
}

// Deleted entries are remembered for a while only; what falls out of memory
// may cost a retry but never lets a stale write through.
func TestDeletedEntriesAreForgottenSafely(t *testing.T) {
	calls := state.NewTable[int]("calls", state.Options[int]{})
	s := newStore(t, calls)
	base := commit(t, s, calls.Put(0, 0))
	for i := range 1000 {
		commit(t, s, calls.Put(i, i))
		commit(t, s, calls.Delete(i))
	}
	require.Equal(t, 0, calls.Len(s.Snapshot()))
	for _, i := range []int{0, 1, 500, 999} {
		r, err := s.Commit(state.Batch{Base: base, Updates: []state.Update{calls.Put(i, -1)}})
		require.NoError(t, err)
		require.Len(t, r.Rejected, 1, "entry %d", i)
		require.GreaterOrEqual(t, calls.ChangedAt(s.Snapshot(), i), base.Revision())
	}
	recent := s.Snapshot()
	commit(t, s, calls.Put(7, 7))
	r, err := s.Commit(state.Batch{Base: recent, Updates: []state.Update{calls.Put(8, 8)}})
	require.NoError(t, err)
	require.Empty(t, r.Rejected, "a fresh base must not be rejected for old deletions")
	// One commit that deletes more than is remembered.
	var puts, deletes []state.Update
	for i := range 2000 {
		puts = append(puts, calls.Put(i, i))
		deletes = append(deletes, calls.Delete(i))
	}
	old := commit(t, s, puts...)
	commit(t, s, deletes...)
	r, err = s.Commit(state.Batch{Base: old, Updates: []state.Update{calls.Put(1234, 0)}})
	require.NoError(t, err)
	require.Len(t, r.Rejected, 1)
	require.LessOrEqual(t, calls.ChangedAt(s.Snapshot(), 1234), s.Snapshot().Revision())
}

func TestNothingToCommit(t *testing.T) {
	f := newFields(t)
	before := f.store.Snapshot()
	for _, bs := range []batches{nil, {by("A")}, {by("A", state.Update{}), by("B", state.Update{}, state.Update{})}, {reads(by("A"), f.a)}} {
		r, err := f.store.Commit(bs...)
		require.NoError(t, err)
		require.False(t, r.Committed)
		require.Same(t, before, r.Snapshot)
	}
	require.Same(t, before, f.store.Snapshot())
}

func TestBaseOfAnotherStore(t *testing.T) {
	f, other := newFields(t), newFields(t)
	_, err := f.store.Commit(state.Batch{Owner: "p", Base: other.store.Snapshot(), Updates: []state.Update{f.a.With(1)}})
	require.ErrorIs(t, err, state.ErrStale)
	var be *state.BatchError
	require.ErrorAs(t, err, &be)
	require.Equal(t, "p", be.Owner)
}

// Capability A15.
func TestRevisionsAndChangedAt(t *testing.T) {
	f := newFields(t)
	require.Zero(t, f.store.Snapshot().ChangedAt(f.a))
	commit(t, f.store, f.a.With(1))
	commit(t, f.store, f.b.With(1), f.calls.Put("x", 1))
	commit(t, f.store, f.calls.Put("y", 1))
	s := commit(t, f.store, f.calls.Delete("x"))
	require.EqualValues(t, 4, s.Revision())
	require.EqualValues(t, 1, s.ChangedAt(f.a))
	require.EqualValues(t, 2, s.ChangedAt(f.b))
	require.EqualValues(t, 4, s.ChangedAt(f.calls))
	require.EqualValues(t, 4, f.calls.ChangedAt(s, "x"))
	require.EqualValues(t, 3, f.calls.ChangedAt(s, "y"))
	require.EqualValues(t, 0, f.calls.ChangedAt(s, "never"))
	require.Zero(t, s.ChangedAt(nil))
}

func TestUserCodePanics(t *testing.T) {
	cause := errors.New("cause")
	mode := ""
	boom := func(where string) {
		if mode == where {
			panic(cause)
		}
	}
	k := state.NewKey("k", state.KeyConfig[[]int, []int]{
		Initial: func() []int { boom("initial"); return nil },
		Apply:   func(_, u []int) []int { boom("apply"); return u },
		Check:   func(_, _ []int) error { boom("check"); return nil },
		Clone:   func(v []int) []int { boom("clone"); return append([]int(nil), v...) },
	})
	calls := state.NewTable[string]("calls", state.Options[int]{Check: func(_, _ int) error { boom("entry"); return nil }})
	n := state.NewCounter("n", state.Options[int64]{})
	s := newStore(t, k, calls, n)
	u, put := k.With([]int{1}), calls.Put("c1", 1)
	for _, where := range []string{"initial", "apply", "check", "clone", "entry"} {
		mode = where
		before := s.Snapshot()
		r, err := s.Commit(by("good", n.With(1)), by("bad", n.With(1), u, put))
		mode = ""
		require.ErrorIs(t, err, cause, where)
		var ae *state.ApplyError
		require.ErrorAs(t, err, &ae)
		require.Equal(t, cause, ae.Value)
		require.Contains(t, string(ae.Stack), "commit_test.go")
		if where == "entry" {
			require.Equal(t, "calls/c1", ae.Key+"/"+ae.Entry)
		} else {
			require.Equal(t, "k", ae.Key)
		}
		require.Contains(t, err.Error(), `batch 1 of "bad"`)
		require.False(t, r.Committed)
		require.Same(t, before, s.Snapshot())
		require.Zero(t, n.Get(s.Snapshot()))
	}
	r, err := s.Commit(by("bad", u, put))
	require.NoError(t, err)
	require.True(t, r.Committed)
}

func TestReducerEndsItsGoroutine(t *testing.T) {
	leave := true
	k := state.NewKey("k", state.KeyConfig[int, int]{Apply: func(_, u int) int {
		if leave {
			runtime.Goexit()
		}
		return u
	}})
	s := newStore(t, k)
	for range 3 {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = s.Commit(by("gone", k.With(1)))
		}()
		<-done
	}
	leave = false
	require.Equal(t, 2, k.Get(commit(t, s, k.With(2))))
}

func TestReducerUsesTheStore(t *testing.T) {
	var s *state.Store
	n := state.NewCounter("n", state.Options[int64]{})
	k := state.NewKey("k", state.KeyConfig[int64, int64]{Apply: func(v, u int64) int64 {
		if _, err := s.Commit(by("inner", n.With(1))); err != nil {
			panic(err)
		}
		return v + u + n.Get(s.Snapshot())*0
	}})
	s = newStore(t, k, n)
	snap := commit(t, s, k.With(5))
	require.EqualValues(t, 5, k.Get(snap))
	require.EqualValues(t, 1, n.Get(snap), "the inner commit came first")
	require.EqualValues(t, 2, snap.Revision())
}

func TestReducerThatCommitsToItsOwnKeyGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *state.Store
		var k state.Key[int, int]
		inner := false
		k = state.NewKey("k", state.KeyConfig[int, int]{Apply: func(v, u int) int {
			if !inner {
				inner = true
				defer func() { inner = false }()
				if _, err := s.Commit(by("inner", k.With(u))); err != nil {
					panic(err)
				}
			}
			return v + u
		}})
		s = newStore(t, k)
		_, err := s.Commit(by("outer", k.With(1)))
		require.ErrorIs(t, err, state.ErrBusy)
		require.True(t, strings.HasPrefix(err.Error(), "state: "))
	})
}

func TestNaNIsNoEntry(t *testing.T) {
	nan := func() float64 { z := 0.0; return z / z }()
	calls := state.NewTable[float64]("calls", state.Options[int]{})
	set := state.NewSet("set", state.Options[float64]{})
	s := newStore(t, calls, set)
	commit(t, s, calls.Put(1, 1), set.Add(1))
	for _, u := range []state.Update{calls.Put(nan, 2), calls.Delete(nan), set.Add(2, nan), set.Remove(nan)} {
		_, err := s.Commit(by("p", u))
		require.ErrorIs(t, err, state.ErrInvalidKey)
	}
	snap := s.Snapshot()
	v, ok := calls.Get(snap, 1)
	require.True(t, ok)
	require.Equal(t, 1, v)
	require.False(t, calls.Has(snap, nan))
	require.Zero(t, calls.ChangedAt(snap, nan))
	require.Panics(t, func() { state.Map[float64, int]{}.With(nan, 1) })
}

// bytesPerRun returns how many bytes fn allocates on average.
func bytesPerRun(fn func(i int)) uint64 {
	const runs = 1000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range runs {
		fn(i)
	}
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) / runs
}

// Fault F01.
func TestCommitSharesWhatItDoesNotTouch(t *testing.T) {
	var keys []state.AnyKey
	var cells []state.Cell[[1 << 12]byte]
	for i := range 1000 {
		c := state.NewCell(fmt.Sprintf("cell%d", i), state.Options[[1 << 12]byte]{})
		cells = append(cells, c)
		keys = append(keys, c)
	}
	hot := state.NewCell("hot", state.Options[int]{})
	s := newStore(t, append(keys, hot)...)
	for _, c := range cells {
		commit(t, s, c.With([1 << 12]byte{1}))
	}
	held := s.Snapshot()
	bytes := bytesPerRun(func(i int) { _, _ = s.Commit(by("x", hot.With(i))) })
	require.Less(t, bytes, uint64(32<<10), "one commit must not copy the other values")
	require.Zero(t, hot.Get(held))
}

func TestReadingAllocatesNothing(t *testing.T) {
	f := newFields(t)
	commit(t, f.store, f.a.With(1), f.calls.Put("x", 1), f.set.Add("y"), f.log.Append("z"))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		s := f.store.Snapshot()
		if v, ok := f.calls.Get(s, "x"); !ok || f.a.Get(s)+v != 2 || !f.set.Has(s, "y") || f.log.Get(s).Len() != 1 || s.ChangedAt(f.a) != 1 {
			panic("wrong value")
		}
	}))
}

// A rejected batch that is required takes the whole call with it, whichever of the
// batches it is; one that is not leaves the rest alone.
func TestRequiredBatches(t *testing.T) {
	a, b := state.NewCell("a", state.Options[int]{}), state.NewCell("b", state.Options[int]{})
	for _, required := range []bool{false, true} {
		store, err := state.NewStore(state.Config{Keys: []state.AnyKey{a, b}})
		require.NoError(t, err)
		res, err := store.Commit(
			state.Batch{Owner: "first", Updates: []state.Update{a.With(1)}},
			state.Batch{Owner: "second", Updates: []state.Update{b.With(2), a.With(2)}, Required: required},
		)
		require.NoError(t, err)
		require.Len(t, res.Rejected, 1)
		require.Equal(t, "first", res.Rejected[0].Err.Winner)
		require.Equal(t, !required, res.Committed)
		require.Same(t, store.Snapshot(), res.Snapshot)
		want := 0
		if !required {
			want = 1
		}
		require.Equal(t, want, a.Get(store.Snapshot()))
		require.Zero(t, b.Get(store.Snapshot()))
	}
}
