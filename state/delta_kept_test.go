package state_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/state"
)

// keptStore is a store that knows no keys, with values of others kept, and the deltas of
// what is committed to it.
func keptStore(t *testing.T) (*state.Store, *[]state.Delta) {
	t.Helper()
	var deltas []state.Delta
	n := state.NewCounter("n", state.Options[int64]{})
	s, err := state.NewStore(state.Config{Keys: []state.AnyKey{n}, Persist: func(_ *state.Snapshot, d state.Delta, _ []any) error {
		deltas = append(deltas, d)
		return nil
	}})
	require.NoError(t, err)
	_, err = s.Import(state.Dump{Entries: []state.DumpEntry{
		{Name: "a.run", Raw: json.RawMessage("1")}, {Name: "z.run", Raw: json.RawMessage("[1]")},
		{Name: "z.thread", Scope: state.ScopeThread, Version: 1, Raw: json.RawMessage("[1]")},
	}}, state.KeepUnknown)
	require.NoError(t, err)
	_, err = s.Commit(state.Batch{Updates: []state.Update{n.With(1)}})
	require.NoError(t, err)
	return s, &deltas
}

// A reset of a scope drops kept values of keys that nobody registered, and says so in
// its delta: applied to what was there before it gives the same.
func TestDeltaOfKeptValues(t *testing.T) {
	s, deltas := keptStore(t)
	before, err := s.Snapshot().Export()
	require.NoError(t, err)
	_, err = s.ResetScope(state.ScopeRun)
	require.NoError(t, err)
	after, err := s.Snapshot().Export()
	require.NoError(t, err)
	require.Len(t, after.Entries, 1)

	last := (*deltas)[len(*deltas)-1]
	var names []string
	for _, e := range last.Entries {
		require.Equal(t, state.PartReset, e.Part)
		names = append(names, e.Name)
	}
	require.Equal(t, []string{"a.run", "n", "z.run"}, names)
	other, err := state.NewStore(state.Config{})
	require.NoError(t, err)
	_, err = other.Apply(before.Delta())
	require.NoError(t, err)
	_, err = other.Apply(last)
	require.NoError(t, err)
	got, err := other.Snapshot().Export()
	require.NoError(t, err)
	require.Equal(t, after, got)
}

// Apply refuses what cannot have been a commit, and changes nothing then.
func TestApplyIsStrict(t *testing.T) {
	entry := func(name string, version int, part state.Part, raw string) state.DeltaEntry {
		return state.DeltaEntry{DumpEntry: state.DumpEntry{Name: name, Scope: state.ScopeThread, Version: version, Raw: json.RawMessage(raw)}, Part: part}
	}
	for name, d := range map[string]state.Delta{
		"a part of another version": {Entries: []state.DeltaEntry{entry("z.thread", 2, state.PartAppend, "[2]")}},
		"a part of nothing":         {Entries: []state.DeltaEntry{entry("y.thread", 1, state.PartAppend, "[2]")}},
		"an unknown part":           {Entries: []state.DeltaEntry{entry("z.thread", 1, "some", "[2]")}},
		"a part that is no list":    {Entries: []state.DeltaEntry{entry("z.thread", 1, state.PartAppend, "2")}},
		"no value":                  {Entries: []state.DeltaEntry{entry("z.thread", 1, state.PartWhole, "")}},
		"no JSON":                   {Entries: []state.DeltaEntry{entry("z.thread", 1, state.PartWhole, "{")}},
		"no name":                   {Entries: []state.DeltaEntry{entry("", 1, state.PartWhole, "1")}},
		"a key twice":               {Entries: []state.DeltaEntry{entry("x", 1, state.PartWhole, "1"), entry("x", 1, state.PartWhole, "2")}},
		"a part the key has not":    {Entries: []state.DeltaEntry{entry("n", 0, state.PartAppend, "[1]")}},
		"a revision out of range":   {Revision: 1 << 63, Entries: []state.DeltaEntry{entry("x", 1, state.PartWhole, "1")}},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := keptStore(t)
			before := s.Snapshot()
			_, err := s.Apply(d)
			var fault *state.DecodeError
			require.ErrorAs(t, err, &fault)
			require.Same(t, before, s.Snapshot())
		})
	}
	s, _ := keptStore(t)
	_, err := s.Apply(state.Delta{Entries: []state.DeltaEntry{entry("z.thread", 1, state.PartAppend, "[2]"), entry("a.run", 0, state.PartReset, "null")}})
	require.NoError(t, err)
	dump, err := s.Snapshot().Export(state.ScopeThread)
	require.NoError(t, err)
	require.JSONEq(t, "[1,2]", string(dump.Entries[0].Raw))
}
