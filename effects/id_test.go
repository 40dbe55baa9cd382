package effects_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/effects"
)

// Capability B7. Fault F07. An id is (run, revision, index) and has one spelling.
func TestID(t *testing.T) {
	for text, id := range map[string]effects.ID{
		"r/0/0":                       {Run: "r"},
		"a/b/12/3":                    {Run: "a/b", Revision: 12, Index: 3},
		"r/18446744073709551615/2":    {Run: "r", Revision: math.MaxUint64, Index: 2},
		"//1/0":                       {Run: "/", Revision: 1},
		"thread 1/run \u00e9/9/10000": {Run: "thread 1/run \u00e9", Revision: 9, Index: 10000},
	} {
		require.Equal(t, text, id.String())
		got, err := effects.ParseID(text)
		require.NoError(t, err)
		require.Equal(t, id, got)
	}
	for _, text := range []string{"", "r", "r/1", "/1/2", "r/1/", "r//2", "r/01/2", "r/1/+2", "r/1/-2", "r/-1/2", "r/x/2", "r/18446744073709551616/0", "r/1/2 "} {
		_, err := effects.ParseID(text)
		require.ErrorIs(t, err, effects.ErrBadID, text)
		require.ErrorContains(t, err, "run/revision/index")
	}

	type doc struct{ ID effects.ID }
	raw, err := json.Marshal(doc{effects.ID{Run: "r", Revision: 4, Index: 1}})
	require.NoError(t, err)
	require.Equal(t, `{"ID":"r/4/1"}`, string(raw))
	var back doc
	require.NoError(t, json.Unmarshal(raw, &back))
	require.Equal(t, effects.ID{Run: "r", Revision: 4, Index: 1}, back.ID)
	require.ErrorIs(t, json.Unmarshal([]byte(`{"ID":"x"}`), &back), effects.ErrBadID)

	_, ok := effects.IDFrom(t.Context())
	require.False(t, ok)
}

func FuzzParseID(f *testing.F) {
	for _, s := range []string{"r/1/2", "a/b/0/0", "/1/2", "r/01/2", "r/1/99999999999999999999", "///", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := effects.ParseID(s)
		if err != nil {
			require.ErrorIs(t, err, effects.ErrBadID)
			require.Zero(t, id)
			return
		}
		require.Equal(t, s, id.String())
		require.NotEmpty(t, id.Run)
		require.GreaterOrEqual(t, id.Index, 0)
	})
}
