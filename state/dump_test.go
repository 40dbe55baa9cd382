package state_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/state"
)

type point struct {
	X, Y int
	Tags state.List[string] `json:",omitzero"`
}

// every has one key of each kind, in both scopes.
type every struct {
	cell  state.Cell[point]
	n     state.Counter
	log   state.Log[point]
	set   state.Set[float64]
	table state.Table[int, point]
	names state.Table[string, []int]
	temp  state.Cell[int]
}

func newEvery() every {
	return every{
		cell:  state.NewCell("cell", state.Options[point]{Scope: state.ScopeThread}),
		n:     state.NewCounter("n", state.Options[int64]{Scope: state.ScopeThread, Initial: func() int64 { return 4 }}),
		log:   state.NewLog("log", state.Options[point]{}),
		set:   state.NewSet("set", state.Options[float64]{}),
		table: state.NewTable[int]("table", state.Options[point]{Scope: state.ScopeThread}),
		names: state.NewTable[string]("names", state.Options[[]int]{Clone: slices.Clone[[]int]}),
		temp:  state.NewCell("temp", state.Options[int]{Transient: true, Scope: state.ScopeThread}),
	}
}

func (e every) keys() []state.AnyKey {
	return []state.AnyKey{e.temp, e.names, e.table, e.set, e.log, e.n, e.cell}
}

func (e every) fill(t testing.TB, s *state.Store) *state.Snapshot {
	return commit(t, s,
		e.cell.With(point{1, 2, state.ListOf("a", "b")}), e.n.With(3), e.log.Append(point{X: 1}, point{X: 2}),
		e.set.Add(2.5, -1), e.table.Put(10, point{X: 10}), e.table.Put(-3, point{Y: 1}),
		e.names.Put("b", []int{1}), e.names.Put("a", nil), e.temp.With(9))
}

const everyDump = `{"revision":1,"entries":[` +
	`{"name":"cell","scope":"thread","version":0,"raw":{"X":1,"Y":2,"Tags":["a","b"]}},` +
	`{"name":"log","scope":"run","version":0,"raw":[{"X":1,"Y":0},{"X":2,"Y":0}]},` +
	`{"name":"n","scope":"thread","version":0,"raw":7},` +
	`{"name":"names","scope":"run","version":0,"raw":[["a",null],["b",[1]]]},` +
	`{"name":"set","scope":"run","version":0,"raw":[-1,2.5]},` +
	`{"name":"table","scope":"thread","version":0,"raw":[[-3,{"X":0,"Y":1}],[10,{"X":10,"Y":0}]]}]}`

func toJSON(t testing.TB, d state.Dump) string {
	text, err := json.Marshal(d)
	require.NoError(t, err)
	return string(text)
}

// Capability A15.
func TestExportAndImportRoundTrip(t *testing.T) {
	e := newEvery()
	s := newStore(t, e.keys()...)
	snap := e.fill(t, s)
	dump, err := snap.Export()
	require.NoError(t, err)
	require.Equal(t, everyDump, toJSON(t, dump))

	read, err := state.DecodeDump([]byte(everyDump))
	require.NoError(t, err)
	require.Equal(t, dump, read)

	other := newStore(t, e.keys()...)
	r, err := other.Import(read, state.RefuseUnknown)
	require.NoError(t, err)
	require.True(t, r.Committed)
	require.Equal(t, e.cell.Get(snap).Tags.Slice(), e.cell.Get(r.Snapshot).Tags.Slice())
	v, ok := e.names.Get(r.Snapshot, "b")
	require.True(t, ok)
	v[0] = 99
	again, err := r.Snapshot.Export()
	require.NoError(t, err)
	require.Equal(t, dump.Entries, again.Entries)
	require.EqualValues(t, 2, r.Snapshot.Revision())
	require.EqualValues(t, 2, e.table.ChangedAt(r.Snapshot, 10))

	thread, err := snap.Export(state.ScopeThread)
	require.NoError(t, err)
	require.Equal(t, []string{"cell", "n", "table"}, names(thread))
	run, err := snap.Export(state.ScopeRun)
	require.NoError(t, err)
	require.Equal(t, []string{"log", "names", "set"}, names(run))
	empty, err := (*state.Snapshot)(nil).Export()
	require.NoError(t, err)
	require.Equal(t, `{"revision":0,"entries":[]}`, toJSON(t, empty))
}

func names(d state.Dump) []string {
	var list []string
	for _, e := range d.Entries {
		list = append(list, e.Name)
	}
	return list
}

// Capability A15.
func TestImportReplacesOnlyWhatItHas(t *testing.T) {
	e := newEvery()
	s := newStore(t, e.keys()...)
	e.fill(t, s)
	old := s.Snapshot()
	r, err := s.Import(state.Dump{Revision: 41, Entries: []state.DumpEntry{
		{Name: "table", Raw: []byte(`[[1,{"X":5}]]`)}, {Name: "log", Raw: []byte(` [ ] `)},
	}}, state.KeepUnknown)
	require.NoError(t, err)
	require.EqualValues(t, 42, r.Snapshot.Revision())
	require.Equal(t, []int{1}, collect(keysOf(e.table.All(r.Snapshot))))
	require.Zero(t, e.log.Get(r.Snapshot).Len())
	require.EqualValues(t, 7, e.n.Get(r.Snapshot))
	require.Equal(t, 2, e.names.Len(r.Snapshot))
	require.Equal(t, 2, e.table.Len(old))

	// What was replaced has changed; what was not has not.
	stale, err := s.Commit(
		state.Batch{Base: old, Updates: []state.Update{e.table.Put(10, point{})}},
		state.Batch{Base: old, Updates: []state.Update{e.cell.With(point{})}})
	require.NoError(t, err)
	require.Len(t, stale.Rejected, 1)
	require.Equal(t, 0, stale.Rejected[0].Index)
}

// Fault F14.
func TestImportAndResetAreCommits(t *testing.T) {
	e := newEvery()
	s := newStore(t, e.keys()...)
	var commits []string
	s.Subscribe(func(c state.Commit) {
		for _, w := range c.Writes {
			commits = append(commits, fmt.Sprintf("%d %s %s", c.Revision, w.Owner, w.Update))
		}
	})
	dump, err := state.DecodeDump([]byte(everyDump))
	require.NoError(t, err)
	_, err = s.Import(dump, state.RefuseUnknown)
	require.NoError(t, err)
	before := s.Snapshot()
	r, err := s.ResetScope(state.ScopeRun)
	require.NoError(t, err)
	require.True(t, r.Committed)
	require.Equal(t, []string{
		"2 state.import cell.import()", "2 state.import log.import()", "2 state.import n.import()",
		"2 state.import names.import()", "2 state.import set.import()", "2 state.import table.import()",
		"3 state.reset log.reset()", "3 state.reset names.reset()", "3 state.reset set.reset()",
	}, commits)
	require.Zero(t, e.log.Get(r.Snapshot).Len())
	require.EqualValues(t, 7, e.n.Get(r.Snapshot))
	require.Equal(t, 2, e.log.Get(before).Len())

	r, err = s.ResetScope(state.ScopeRun)
	require.NoError(t, err)
	require.False(t, r.Committed, "nothing is left to reset")
	require.EqualValues(t, 3, s.Snapshot().Revision())

	// A restore to an older revision must not let an older base match.
	base := s.Snapshot()
	r, err = s.Import(state.Dump{Revision: 1, Entries: []state.DumpEntry{{Name: "n", Raw: []byte("1")}}}, state.KeepUnknown)
	require.NoError(t, err)
	require.EqualValues(t, 4, r.Snapshot.Revision())
	lose, err := s.Commit(state.Batch{Base: base, Updates: []state.Update{e.n.Reset()}})
	require.NoError(t, err)
	require.Len(t, lose.Rejected, 1)
}

func TestEmptyImportStartsANewEpoch(t *testing.T) {
	s := newStore(t)
	r, err := s.Import(state.Dump{Revision: 7}, state.RefuseUnknown)
	require.NoError(t, err)
	require.True(t, r.Committed)
	require.EqualValues(t, 8, s.Snapshot().Revision())
	_, err = s.Import(state.Dump{Revision: 1<<64 - 1}, state.RefuseUnknown)
	require.Error(t, err)
	require.EqualValues(t, 8, s.Snapshot().Revision())
}

// Fault B35.
func TestVersionsAndUnknownKeys(t *testing.T) {
	calls := 0
	a := state.NewCell("a", state.Options[int]{Version: 2, Migrate: func(from int, raw []byte) (int, error) {
		calls++
		text, err := strconv.Unquote(string(raw))
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(text)
	}})
	b := state.NewCell("b", state.Options[int]{})
	saved := `{"revision":5,"entries":[{"name":"a","scope":"run","version":1,"raw":"12"},{"name":"b","scope":"run","version":0,"raw":3},{"name":"gone","scope":"thread","version":4,"raw":{"z":[1, 2],"a":"\u00e9"}}]}`
	dump, err := state.DecodeDump([]byte(saved))
	require.NoError(t, err)

	strict := newStore(t, a, b)
	_, err = strict.Import(dump, state.RefuseUnknown)
	require.ErrorIs(t, err, state.ErrUnknownKey)
	require.ErrorContains(t, err, `"gone"`)
	require.Zero(t, strict.Snapshot().Revision())
	calls = 0

	s := newStore(t, a, b)
	r, err := s.Import(dump, state.KeepUnknown)
	require.NoError(t, err)
	require.Equal(t, 1, calls)
	require.Equal(t, 12, a.Get(r.Snapshot))
	commit(t, s, b.With(4))
	back, err := s.Snapshot().Export()
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "gone"}, names(back))
	require.Equal(t, state.DumpEntry{Name: "gone", Scope: state.ScopeThread, Version: 4, Raw: []byte(`{"z":[1,2],"a":"\u00e9"}`)}, back.Entries[2])
	require.Equal(t, 2, back.Entries[0].Version)
	back.Entries[2].Raw[2] = 'X'
	thread, err := s.Snapshot().Export(state.ScopeThread)
	require.NoError(t, err)
	require.Equal(t, `{"z":[1,2],"a":"\u00e9"}`, string(thread.Entries[0].Raw), "an export is the caller's own")

	newer := state.Dump{Entries: []state.DumpEntry{{Name: "a", Version: 3, Raw: []byte("1")}}}
	_, err = s.Import(newer, state.KeepUnknown)
	require.ErrorIs(t, err, state.ErrNewerVersion)
	var de *state.DecodeError
	require.ErrorAs(t, err, &de)
	require.Equal(t, "a", de.Key)
	require.Equal(t, 3, de.Version)

	noMigrate := newStore(t, state.NewCell("a", state.Options[int]{Version: 1}))
	_, err = noMigrate.Import(state.Dump{Entries: []state.DumpEntry{{Name: "a", Raw: []byte("1")}}}, state.KeepUnknown)
	require.ErrorContains(t, err, "Migrate")

	// Kept entries are replaced by name and dropped with their scope.
	_, err = s.Import(state.Dump{Entries: []state.DumpEntry{{Name: "gone", Raw: []byte("1")}, {Name: "also", Scope: state.ScopeThread, Raw: []byte("2")}}}, state.KeepUnknown)
	require.NoError(t, err)
	all, err := s.Snapshot().Export()
	require.NoError(t, err)
	require.Equal(t, []string{"a", "also", "b", "gone"}, names(all))
	r, err = s.ResetScope(state.ScopeThread)
	require.NoError(t, err)
	require.True(t, r.Committed)
	all, err = r.Snapshot.Export()
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "gone"}, names(all))
}

func TestElementsMigrateOneByOne(t *testing.T) {
	length := func(_ int, raw []byte) (int, error) { return len(raw), nil }
	log := state.NewLog("log", state.Options[int]{Version: 1, Migrate: length})
	set := state.NewSet("set", state.Options[int]{Version: 1, Migrate: length})
	table := state.NewTable[string]("table", state.Options[int]{Version: 1, Migrate: length})
	s := newStore(t, log, set, table)
	r, err := s.Import(state.Dump{Entries: []state.DumpEntry{
		{Name: "log", Raw: []byte(`["a",12]`)}, {Name: "set", Raw: []byte(`[1,22,3]`)}, {Name: "table", Raw: []byte(`[["x",true]]`)},
	}}, state.RefuseUnknown)
	require.NoError(t, err)
	require.Equal(t, []int{3, 2}, log.Get(r.Snapshot).Slice())
	require.Equal(t, []int{1, 2}, collect(set.All(r.Snapshot)))
	v, _ := table.Get(r.Snapshot, "x")
	require.Equal(t, 4, v)
}

// Fault F17.
func TestFailedImportChangesNothing(t *testing.T) {
	e := newEvery()
	bad := state.NewCell("zz", state.Options[int]{Codec: state.Codec[int]{Decode: func([]byte) (int, error) { panic("decoder") }}})
	s := newStore(t, append(e.keys(), bad)...)
	before := e.fill(t, s)
	good := []state.DumpEntry{{Name: "cell", Raw: []byte(`{"X":100}`)}, {Name: "log", Raw: []byte(`[]`)}}
	for name, entry := range map[string]state.DumpEntry{
		"wrong type":       {Name: "n", Raw: []byte(`"x"`)},
		"not an array":     {Name: "set", Raw: []byte(`3`)},
		"null array":       {Name: "set", Raw: []byte(`null`)},
		"bad element":      {Name: "set", Raw: []byte(`[1,"x"]`)},
		"bad pair":         {Name: "table", Raw: []byte(`[[1]]`)},
		"pair of null":     {Name: "table", Raw: []byte(`[null]`)},
		"bad key":          {Name: "table", Raw: []byte(`[["x",{}]]`)},
		"bad value":        {Name: "table", Raw: []byte(`[[1,2]]`)},
		"repeated entry":   {Name: "table", Raw: []byte(`[[1,{}],[1,{}]]`)},
		"broken JSON":      {Name: "n", Raw: []byte(`{`)},
		"no JSON":          {Name: "n"},
		"panic":            {Name: "zz", Raw: []byte(`1`)},
		"stands twice":     {Name: "cell", Raw: []byte(`{}`)},
		"negative version": {Name: "n", Version: -1, Raw: []byte(`1`)},
		"unknown scope":    {Name: "n", Scope: 5, Raw: []byte(`1`)},
		"no name":          {Raw: []byte(`1`)},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := s.Import(state.Dump{Entries: append(slices.Clone(good), entry)}, state.KeepUnknown)
			var de *state.DecodeError
			require.ErrorAs(t, err, &de)
			require.Equal(t, entry.Name, de.Key)
			require.False(t, r.Committed)
			require.Same(t, before, s.Snapshot())
		})
	}
}

func TestExportNamesTheKeyWhoseCodecFails(t *testing.T) {
	for name, c := range map[string]state.Codec[int]{
		"error":    {Encode: func(int) ([]byte, error) { return nil, errors.New("no") }},
		"panic":    {Encode: func(int) ([]byte, error) { panic("no") }},
		"not JSON": {Encode: func(int) ([]byte, error) { return []byte("no"), nil }},
	} {
		for _, k := range []interface {
			state.AnyKey
			Name() string
		}{
			state.NewCell("k", state.Options[int]{Codec: c}),
			state.NewLog("k", state.Options[int]{Codec: c}),
			state.NewSet("k", state.Options[int]{Codec: c}),
			state.NewTable[int]("k", state.Options[int]{Codec: c}),
		} {
			t.Run(fmt.Sprintf("%s/%T", name, k), func(t *testing.T) {
				s := newStore(t, k)
				switch k := k.(type) {
				case state.Cell[int]:
					commit(t, s, k.With(1))
				case state.Log[int]:
					commit(t, s, k.Append(1))
				case state.Set[int]:
					commit(t, s, k.Add(1))
				case state.Table[int, int]:
					commit(t, s, k.Put(1, 1))
				}
				_, err := s.Snapshot().Export()
				require.ErrorContains(t, err, `state: cannot encode key "k"`)
				require.ErrorContains(t, err, "no")
			})
		}
	}
}

func TestCustomCodec(t *testing.T) {
	c := state.Codec[int]{
		Encode: func(v int) ([]byte, error) { return []byte(fmt.Sprintf(` { "hex" : "%x" } `, v)), nil },
		Decode: func(raw []byte) (v int, err error) {
			var form struct{ Hex string }
			if err = json.Unmarshal(raw, &form); err == nil {
				_, err = fmt.Sscanf(form.Hex, "%x", &v)
			}
			return v, err
		},
	}
	cell := state.NewCell("cell", state.Options[int]{Codec: c})
	log := state.NewLog("log", state.Options[int]{Codec: c})
	s := newStore(t, cell, log)
	d, err := commit(t, s, cell.With(255), log.Append(16, 17)).Export()
	require.NoError(t, err)
	require.Equal(t, `{"hex":"ff"}`, string(d.Entries[0].Raw))
	require.Equal(t, `[{"hex":"10"},{"hex":"11"}]`, string(d.Entries[1].Raw))
	other := newStore(t, cell, log)
	r, err := other.Import(d, state.RefuseUnknown)
	require.NoError(t, err)
	require.Equal(t, 255, cell.Get(r.Snapshot))
	require.Equal(t, []int{16, 17}, log.Get(r.Snapshot).Slice())
}

func TestDecodeDumpIsStrict(t *testing.T) {
	for text, at := range map[string]int64{
		``:                                  0,
		`null`:                              0,
		`[]`:                                0,
		`{"revision":1`:                     13,
		`{"revision":-1}`:                   1,
		`{"revision":1,"revision":2}`:       13,
		`{"revison":1}`:                     1,
		`{"revision":18446744073709551615}`: 1,
		`{"entries":{}}`:                    10,
		`{"entries":[{"name":"a"}]}`:        12,
		`{"entries":[{"name":"a","raw":1},{"name":"a","raw":2}]}`:       32,
		`{"entries":[{"name":"a","raw":1},{"name":"b","raw":2,"x":1}]}`: 32,
		`{"entries":[{"name":"a","scope":"ever","raw":1}]}`:             12,
		`{"entries":[{"name":"","raw":1}]}`:                             12,
		`{"entries":[{"name":"a","raw":tru}]}`:                          34,
		`{"entries":[]} {}`:                                             16,
		`{"entries":[]]`:                                                14,
	} {
		t.Run(text, func(t *testing.T) {
			_, err := state.DecodeDump([]byte(text))
			var de *state.DecodeError
			require.ErrorAs(t, err, &de)
			require.Equal(t, at, de.Offset, err.Error())
			require.ErrorContains(t, err, "state: cannot decode")
		})
	}
	d, err := state.DecodeDump([]byte(` {"entries" : [ {"raw": [1, 2], "name":"b"}, {"name":"a","raw":null} ] } `))
	require.NoError(t, err)
	require.Equal(t, `{"revision":0,"entries":[{"name":"a","scope":"run","version":0,"raw":null},{"name":"b","scope":"run","version":0,"raw":[1,2]}]}`, toJSON(t, d))
}

func TestHistory(t *testing.T) {
	n := state.NewCounter("n", state.Options[int64]{})
	s, err := state.NewStore(state.Config{Keys: []state.AnyKey{n}, History: 3})
	require.NoError(t, err)
	for range 10 {
		commit(t, s, n.With(1))
	}
	for rev := range uint64(13) {
		snap, ok := s.At(rev)
		require.Equal(t, rev >= 7 && rev <= 10, ok, "revision %d", rev)
		if ok {
			require.Equal(t, rev, snap.Revision())
			require.EqualValues(t, rev, n.Get(snap))
		}
	}
	_, err = s.Import(state.Dump{Revision: 100}, state.KeepUnknown)
	require.NoError(t, err)
	_, ok := s.At(50)
	require.False(t, ok)
	_, ok = s.At(9)
	require.True(t, ok)
	none := newStore(t, n)
	commit(t, none, n.With(1))
	_, ok = none.At(0)
	require.False(t, ok)
	_, ok = none.At(1)
	require.True(t, ok)
}

func TestDiff(t *testing.T) {
	f := newFields(t)
	a := commit(t, f.store, f.a.With(1), f.b.With(1), f.calls.Put("x", 1), f.calls.Put("y", 1), f.calls.Put("z", 1), f.set.Add("p", "q"))
	b := commit(t, f.store, f.a.With(2), f.b.Reset(), f.calls.Put("w", 4), f.calls.Put("y", 2), f.calls.Delete("z"),
		f.set.Add("p", "r"), f.set.Remove("q"), f.n.Reset())
	show := func(a, b *state.Snapshot) []string {
		var lines []string
		for c := range state.Diff(a, b) {
			line := c.Key.Name()
			if c.Entry != nil {
				line += fmt.Sprintf("[%v]", c.Entry)
			}
			lines = append(lines, fmt.Sprintf("%s %v,%v -> %v,%v", line, c.Before, c.Had, c.After, c.Has))
		}
		return lines
	}
	require.Equal(t, []string{
		"a 1,true -> 2,true", "b 1,true -> 0,false",
		"calls[w] <nil>,false -> 4,true", "calls[y] 1,true -> 2,true", "calls[z] 1,true -> <nil>,false",
		"set[q] <nil>,true -> <nil>,false", "set[r] <nil>,false -> <nil>,true",
	}, show(a, b))
	require.Empty(t, show(b, b))
	require.Len(t, show(nil, a), 7)
	require.Len(t, show(b, nil), 6)
	require.Empty(t, show(nil, nil))
	other := newStore(t, f.b, f.calls)
	require.Len(t, show(commit(t, other, f.b.With(5)), a), 7)
	for n := range 7 {
		got := 0
		for range state.Diff(a, b) {
			if got == n {
				break
			}
			got++
		}
		require.Equal(t, n, got)
	}
}
