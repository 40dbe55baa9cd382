package inference_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/inference"
)

// Fault B39. Zero and "not set" are told apart, in memory and in JSON.
func TestOptTellsZeroFromUnset(t *testing.T) {
	type doc struct {
		T inference.Opt[float64] `json:"t,omitzero"`
		N inference.Opt[int]     `json:"n"`
	}
	cases := []struct {
		doc  doc
		text string
	}{
		{doc{}, `{"n":null}`},
		{doc{T: inference.Some(0.0)}, `{"t":0,"n":null}`},
		{doc{T: inference.Some(0.5), N: inference.Some(0)}, `{"t":0.5,"n":0}`},
	}
	for _, c := range cases {
		raw, err := json.Marshal(c.doc)
		require.NoError(t, err)
		require.Equal(t, c.text, string(raw))
		back := doc{T: inference.Some(9.0), N: inference.Some(9)}
		if c.doc.T.IsZero() {
			back.T = inference.None[float64]()
		}
		require.NoError(t, json.Unmarshal(raw, &back))
		require.Equal(t, c.doc, back)
	}

	zero, ok := inference.Some(0).Get()
	require.True(t, ok)
	require.Zero(t, zero)
	require.Equal(t, 0, inference.Some(0).Or(7))
	require.Equal(t, 7, inference.None[int]().Or(7))
	require.True(t, inference.Some(0).IsSet())
	require.False(t, inference.Opt[int]{}.IsSet())
	require.Error(t, json.Unmarshal([]byte(`"x"`), new(inference.Opt[int])))
}
