package state_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/state"
)

func newStore(t testing.TB, keys ...state.AnyKey) *state.Store {
	t.Helper()
	s, err := state.NewStore(state.Config{Keys: keys})
	require.NoError(t, err)
	return s
}

// commit commits the updates as one batch that must be accepted.
func commit(t testing.TB, s *state.Store, updates ...state.Update) *state.Snapshot {
	t.Helper()
	r, err := s.Commit(state.Batch{Owner: "test", Updates: updates})
	require.NoError(t, err)
	require.Empty(t, r.Rejected)
	return r.Snapshot
}

// Fault B03.
func TestInitialValueIsNotAWrite(t *testing.T) {
	n := state.NewCounter("n", state.Options[int64]{Initial: func() int64 { return 10 }})
	s := newStore(t, n)
	require.EqualValues(t, 10, n.Get(s.Snapshot()))
	require.EqualValues(t, 0, s.Snapshot().Revision())
	v, ok := n.Lookup(s.Snapshot())
	require.EqualValues(t, 10, v)
	require.False(t, ok)

	snap := commit(t, s, n.With(5))
	require.EqualValues(t, 15, n.Get(snap))

	seeded := newStore(t, n)
	_, err := seeded.Import(state.Dump{Entries: []state.DumpEntry{{Name: "n", Raw: []byte("100")}}}, state.RefuseUnknown)
	require.NoError(t, err)
	require.EqualValues(t, 105, n.Get(commit(t, seeded, n.With(5))), "the initial value must not be added again")
}

// Fault B03.
func TestResetAndAppendInOneBatch(t *testing.T) {
	l := state.NewLog("l", state.Options[string]{})
	s := newStore(t, l)
	commit(t, s, l.Append("a"))
	require.Equal(t, []string{"b"}, l.Get(commit(t, s, l.Reset(), l.Append("b"))).Slice())
	require.Equal(t, []string{"x", "y", "z"}, l.Get(commit(t, s, l.Replace("x", "y"), l.Append("z"))).Slice())
	require.Equal(t, 0, l.Get(commit(t, s, l.Reset())).Len())
	_, ok := s.Snapshot().Value(l)
	require.False(t, ok)
}

func TestResetReturnsToInitial(t *testing.T) {
	n := state.NewCounter("n", state.Options[int64]{Initial: func() int64 { return 7 }})
	s := newStore(t, n)
	commit(t, s, n.With(1))
	snap := commit(t, s, n.Reset())
	v, ok := n.Lookup(snap)
	require.EqualValues(t, 7, v)
	require.False(t, ok)
	require.EqualValues(t, 2, snap.ChangedAt(n))
	require.EqualValues(t, 10, n.Get(commit(t, s, n.With(3))))
}

func TestUnregisteredKeyReadsAsInitial(t *testing.T) {
	known := state.NewCell("known", state.Options[int]{})
	other := state.NewCell("other", state.Options[int]{Initial: func() int { return 3 }})
	sameName := state.NewCell("known", state.Options[string]{})
	table := state.NewTable[string]("t", state.Options[int]{})
	s := newStore(t, known)
	commit(t, s, known.With(1))
	for name, snap := range map[string]*state.Snapshot{"foreign": s.Snapshot(), "nil": nil} {
		t.Run(name, func(t *testing.T) {
			v, ok := other.Lookup(snap)
			require.Equal(t, 3, v)
			require.False(t, ok)
			require.Empty(t, sameName.Get(snap))
			require.False(t, table.Has(snap, "x"))
			require.Equal(t, 0, table.Len(snap))
			require.Empty(t, slices.Collect(values(table.All(snap))))
			require.False(t, snap.Has(other))
			_, ok = snap.Value(other)
			require.False(t, ok)
			require.Zero(t, snap.ChangedAt(other))
		})
	}
	require.Equal(t, 1, known.Get(s.Snapshot()))
	_, err := s.Commit(state.Batch{Owner: "p", Updates: []state.Update{other.With(1)}})
	require.ErrorIs(t, err, state.ErrUnknownKey)
	require.ErrorContains(t, err, `"other"`)
	_, err = s.Commit(state.Batch{Owner: "p", Reads: []state.AnyKey{other}})
	require.ErrorIs(t, err, state.ErrUnknownKey)
}

func TestZeroHandles(t *testing.T) {
	var cell state.Cell[int]
	var log state.Log[int]
	var set state.Set[int]
	var table state.Table[string, int]
	s := newStore(t)
	snap := s.Snapshot()
	require.Zero(t, cell.Get(snap))
	require.Zero(t, log.Get(snap).Len())
	require.False(t, set.Has(snap, 1))
	require.Zero(t, table.View(snap).Len())
	for _, k := range []state.AnyKey{cell, log, set, table, nil} {
		if k != nil {
			require.Empty(t, k.Name())
			require.Equal(t, state.ScopeRun, k.Scope())
		}
		_, err := state.NewSchema(k)
		require.ErrorIs(t, err, state.ErrInvalidKey)
		_, err = s.Commit(state.Batch{Reads: []state.AnyKey{k}})
		require.ErrorIs(t, err, state.ErrUnknownKey)
	}
	for _, u := range []state.Update{
		cell.With(1), cell.Reset(), log.Append(1), log.Replace(1), log.Reset(), set.Add(1), set.Remove(1),
		set.Reset(), table.Put("a", 1), table.Delete("a"), table.Reset(),
	} {
		_, err := s.Commit(state.Batch{Updates: []state.Update{u}})
		require.ErrorIs(t, err, state.ErrUnknownKey)
	}
}

// Capability A12.
func TestRegistrationReportsEveryFault(t *testing.T) {
	type box struct{ Tags []string }
	a := state.NewCell("a", state.Options[int]{})
	a2 := state.NewCell("a", state.Options[int]{})
	_, err := state.NewStore(state.Config{Keys: []state.AnyKey{
		a, a2, a,
		state.NewCell("", state.Options[int]{}),
		state.NewCell("has space", state.Options[int]{}),
		state.NewCell("aliases", state.Options[box]{}),
		state.NewKey("noapply", state.KeyConfig[int, string]{}),
		state.NewCell("scope", state.Options[int]{Scope: 9}),
		state.NewKey("merge", state.KeyConfig[int, int]{Merge: 9}),
		state.NewCell("version", state.Options[int]{Version: -1}),
		state.NewCell(strings.Repeat("x", 300), state.Options[int]{}),
		state.NewCell("bad\xff", state.Options[int]{}),
	}})
	require.ErrorIs(t, err, state.ErrDuplicateKey)
	require.ErrorIs(t, err, state.ErrInvalidKey)
	require.ErrorIs(t, err, state.ErrAliasable)
	for _, part := range []string{
		`two different keys are named "a"`, `"a" is given twice`, "name is empty", `"has space"`, ".Tags ([]string)",
		`"noapply" needs Apply`, "Scope(9)", "MergeStrategy(9)", "version -1", "300 bytes", "UTF-8",
	} {
		require.ErrorContains(t, err, part)
	}
	_, err = state.NewStore(state.Config{Keys: []state.AnyKey{a}})
	require.NoError(t, err)
}

func TestAliasingTypesNeedCloneOrShared(t *testing.T) {
	//lint:ignore U1000 only its type is looked at
	type deep struct {
		ok    [2]state.Map[string, state.List[time.Time]]
		inner struct{ f [1]map[string]int }
	}
	//lint:ignore U1000 only its type is looked at
	type fine struct {
		a string
		b time.Time
		c [3]struct{ d complex128 }
		e state.Map[string, state.List[struct{ x *int }]] // not fine
	}
	//lint:ignore U1000 only its type is looked at
	type sneaky struct {
		state.List[int]
		m map[string]int
	}
	type node struct{ Kids state.List[node] }
	_, _, _ = deep{}, fine{}, sneaky{}
	require.NoError(t, state.CheckAlias[int]())
	require.NoError(t, state.CheckAlias[node]())
	require.NoError(t, state.CheckAlias[[0]*int]())
	require.NoError(t, state.CheckAlias[state.Map[string, state.List[time.Time]]]())
	for want, err := range map[string]error{
		".inner.f[] (map[string]int)": state.CheckAlias[deep](),
		".e[][].x (*int)":             state.CheckAlias[fine](),
		".m (map[string]int)":         state.CheckAlias[sneaky](),
		"type []int aliases":          state.CheckAlias[[]int](),
		"type error aliases":          state.CheckAlias[error](),
		"type func() aliases":         state.CheckAlias[func()](),
		"type chan int aliases":       state.CheckAlias[chan int](),
		"[] (*int)":                   state.CheckAlias[state.List[*int]](),
	} {
		require.ErrorIs(t, err, state.ErrAliasable)
		require.ErrorContains(t, err, want)
	}

	clone := slices.Clone[[]int]
	for name, k := range map[string]state.AnyKey{
		"cell with clone":   state.NewCell("k", state.Options[[]int]{Clone: clone}),
		"cell shared":       state.NewCell("k", state.Options[[]int]{Shared: true}),
		"log with clone":    state.NewLog("k", state.Options[[]int]{Clone: clone}),
		"table shared":      state.NewTable[string]("k", state.Options[*int]{Shared: true}),
		"update with clone": state.NewKey("k", state.KeyConfig[int, []int]{CloneUpdate: clone, Apply: func(v int, u []int) int { return v + len(u) }}),
	} {
		t.Run(name, func(t *testing.T) { newStore(t, k) })
	}
	for name, k := range map[string]state.AnyKey{
		"cell":           state.NewCell("k", state.Options[[]int]{}),
		"log":            state.NewLog("k", state.Options[[]int]{}),
		"table":          state.NewTable[string]("k", state.Options[*int]{}),
		"update":         state.NewKey("k", state.KeyConfig[int, []int]{Apply: func(v int, u []int) int { return v + len(u) }}),
		"update of copy": state.NewKey("k", state.KeyConfig[[]int, *int]{Clone: clone, Apply: func(v []int, _ *int) []int { return v }}),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := state.NewSchema(k)
			require.ErrorIs(t, err, state.ErrAliasable)
			require.ErrorContains(t, err, `"k"`)
		})
	}
}

// Fault B06.
func TestReadersOwnWhatTheyGet(t *testing.T) {
	type value = map[string][]int
	clone := func(v value) value {
		c := make(value, len(v))
		for k, l := range v {
			c[k] = slices.Clone(l)
		}
		return c
	}
	cell := state.NewCell("cell", state.Options[value]{Clone: clone})
	table := state.NewTable[string]("table", state.Options[value]{Clone: clone})
	log := state.NewLog("log", state.Options[value]{Clone: clone})
	inPlace := state.NewKey("merge", state.KeyConfig[value, value]{
		Merge: state.Commutative, Clone: clone, Initial: func() value { return value{} },
		Apply: func(v, u value) value {
			for k := range u {
				v[k] = append(v[k], u[k]...)
				delete(u, k) // careless, and must not matter
			}
			return v
		},
	})
	s := newStore(t, cell, table, log, inPlace)
	given := value{"a": {1}}
	updates := []state.Update{cell.With(given), table.Put("x", given), log.Append(given), inPlace.With(given)}
	spoil := func(v value) {
		v["a"][0] = 99
		delete(v, "a")
	}
	spoil(given)
	old := commit(t, s, updates...)
	for range 2 {
		snap := s.Snapshot()
		spoil(cell.Get(snap))
		v, _ := table.Get(snap, "x")
		spoil(v)
		spoil(log.Get(snap).At(0))
		spoil(inPlace.Get(snap))
		for _, v := range table.All(snap) {
			spoil(v)
		}
		for _, k := range []state.AnyKey{cell, inPlace} {
			v, ok := snap.Value(k)
			require.True(t, ok)
			spoil(v.(value))
		}
		for c := range state.Diff(nil, snap) {
			if v, ok := c.After.(value); ok {
				spoil(v)
			}
		}
		for _, u := range updates {
			switch v := u.Arg().(type) {
			case value:
				spoil(v)
			case []value:
				spoil(v[0])
			}
		}
	}
	want := value{"a": {1}}
	for _, snap := range []*state.Snapshot{old, s.Snapshot()} {
		require.Equal(t, want, cell.Get(snap))
		v, _ := table.Get(snap, "x")
		require.Equal(t, want, v)
		require.Equal(t, want, log.Get(snap).At(0))
		require.Equal(t, want, inPlace.Get(snap))
	}
	require.EqualValues(t, 1, s.Snapshot().Revision())
	// The same update again adds the same again, and the old snapshot stays.
	require.Equal(t, value{"a": {1, 1}}, inPlace.Get(commit(t, s, updates[3])))
	require.Equal(t, want, inPlace.Get(old))
}

func TestCheckRefusesAChange(t *testing.T) {
	type status int
	bad := errors.New("no way back")
	forward := func(old, next status) error {
		if next < old {
			return bad
		}
		return nil
	}
	cell := state.NewCell("cell", state.Options[status]{Check: forward})
	table := state.NewTable[string]("calls", state.Options[status]{Check: forward})
	log := state.NewLog("log", state.Options[int]{Check: func(_, next int) error {
		if next < 0 {
			return bad
		}
		return nil
	}})
	set := state.NewSet("set", state.Options[int]{Check: func(old, next int) error {
		if old == next && next != 0 {
			return bad
		}
		return nil
	}})
	s := newStore(t, cell, table, log, set)
	commit(t, s, cell.With(2), table.Put("c1", 2), log.Append(1), set.Add(4))
	for name, u := range map[string]state.Update{
		"cell": cell.With(1), "calls": table.Put("c1", 1), "log": log.Append(3, -1), "set": set.Add(4),
	} {
		before := s.Snapshot()
		r, err := s.Commit(
			state.Batch{Owner: "good", Updates: []state.Update{set.Add(9)}},
			state.Batch{Owner: "plug", Updates: []state.Update{u}})
		require.ErrorIs(t, err, bad, name)
		var be *state.BatchError
		require.ErrorAs(t, err, &be)
		require.Equal(t, "plug", be.Owner)
		require.Equal(t, 1, be.Index)
		var ae *state.ApplyError
		require.ErrorAs(t, err, &ae)
		require.Equal(t, name, ae.Key)
		require.False(t, r.Committed)
		require.Same(t, before, s.Snapshot())
	}
	require.Error(t, func() error {
		_, err := s.Commit(state.Batch{Updates: []state.Update{log.Replace(-1)}})
		return err
	}())
	// A whole batch counts as its steps: 2 -> 3 -> 4.
	commit(t, s, cell.With(3), cell.With(4), table.Put("c2", 0), table.Put("c2", 1))
}

func TestUpdateDescribesItself(t *testing.T) {
	cell := state.NewCell("cell", state.Options[int]{})
	log := state.NewLog("log", state.Options[int]{})
	set := state.NewSet("set", state.Options[int]{})
	table := state.NewTable[string]("calls", state.Options[string]{})
	for want, u := range map[string]state.Update{
		"no update":              {},
		"cell.apply(4)":          cell.With(4),
		"cell.reset()":           cell.Reset(),
		"log.append([1 2])":      log.Append(1, 2),
		"log.replace([])":        log.Replace(),
		"set[1].add()":           set.Add(1),
		"set[[1 2]].remove()":    set.Remove(1, 2),
		"calls[c1].put(running)": table.Put("c1", "running"),
		"calls[c1].delete()":     table.Delete("c1"),
		`calls[""].put(empty)`:   table.Put("", "empty"),
		"calls.reset()":          table.Reset(),
	} {
		require.Equal(t, want, u.String())
	}
	require.Equal(t, state.AnyKey(table), table.Put("a", "").Key())
	require.Equal(t, state.AnyKey(log), log.Append(1).Key())
	require.Equal(t, state.AnyKey(set), set.Add(1).Key())
	require.Equal(t, "c1", table.Delete("c1").Entry())
	require.Nil(t, state.Update{}.Key())
	require.Nil(t, cell.Reset().Entry())
	require.Equal(t, "", state.Update{}.Op())
	require.Equal(t, state.Update{}, log.Append())
	require.Equal(t, state.Update{}, set.Add())
}

func TestScopeAndMergeText(t *testing.T) {
	for _, s := range []state.Scope{state.ScopeRun, state.ScopeThread} {
		text, err := s.MarshalText()
		require.NoError(t, err)
		var back state.Scope = 7
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, s, back)
	}
	for _, m := range []state.MergeStrategy{state.Exclusive, state.Commutative} {
		text, err := m.MarshalText()
		require.NoError(t, err)
		var back state.MergeStrategy = 7
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, m, back)
	}
	_, err := state.Scope(9).MarshalText()
	require.Error(t, err)
	_, err = state.MergeStrategy(9).MarshalText()
	require.Error(t, err)
	require.Error(t, new(state.Scope).UnmarshalText([]byte("forever")))
	require.Error(t, new(state.MergeStrategy).UnmarshalText([]byte("")))
}

// Capability A15.
func TestTwoStoresWithOneKeyInDifferentSlots(t *testing.T) {
	a := state.NewCell("a", state.Options[int]{})
	b := state.NewCell("b", state.Options[int]{})
	c := state.NewTable[string]("c", state.Options[int]{})
	one, two := newStore(t, a, b, c), newStore(t, c, b, a)
	commit(t, one, a.With(1), b.With(2), c.Put("x", 3))
	commit(t, two, a.With(10), b.With(20), c.Put("x", 30))
	for i, s := range []*state.Store{one, two} {
		f := []int{1, 10}[i]
		require.Equal(t, f, a.Get(s.Snapshot()))
		require.Equal(t, 2*f, b.Get(s.Snapshot()))
		v, _ := c.Get(s.Snapshot(), "x")
		require.Equal(t, 3*f, v)
	}
}
