package inference_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/inference"
)

func names(x inference.Extra) []string {
	var out []string
	for n := range x.All() {
		out = append(out, n)
	}
	return out
}

func TestExtraIsImmutable(t *testing.T) {
	var empty inference.Extra
	one := empty.With("seed", `1`)
	two := one.With("seed", `2`).With("logit_bias", `{ "5": -1 }`)
	less := two.Without("seed", "absent")

	require.True(t, empty.IsZero())
	require.Zero(t, empty.Len())
	seed, ok := one.Get("seed")
	require.True(t, ok)
	require.Equal(t, inference.JSON("1"), seed, "a later With does not reach back")
	require.Equal(t, []string{"logit_bias", "seed"}, names(two))
	require.Equal(t, 2, two.Len())
	require.Equal(t, `{"logit_bias":{"5":-1},"seed":2}`, two.String())
	require.Equal(t, []string{"logit_bias"}, names(less))
	_, ok = less.Get("seed")
	require.False(t, ok)
	require.Equal(t, one, empty.Over(one))
	require.Equal(t, one, one.Over(empty))
	require.Equal(t, two, one.Over(two))
}

func TestExtraComparesByValue(t *testing.T) {
	a := inference.Extra{}.With("a", `{"x":1,"y":"<"}`).With("b", `null`)
	b := inference.Extra{}.With("b", ``).With("a", ` {"y":"\u003c","x":1}`)
	require.True(t, a == b)
	require.False(t, a == a.Without("b"), "null is a value")

	raw, err := json.Marshal(a)
	require.NoError(t, err)
	var back inference.Extra
	require.NoError(t, json.Unmarshal(raw, &back))
	require.True(t, a == back)

	for range a.All() {
		break
	}
	require.NoError(t, json.Unmarshal([]byte("null"), &back))
	require.True(t, back.IsZero())
	require.Error(t, json.Unmarshal([]byte("[1]"), &back))
	require.Equal(t, "{}", inference.Extra{}.With("bad", `{`).String())
}

// A model of the packed form: names and values of any length and content come back as they went in.
func FuzzExtra(f *testing.F) {
	f.Add("a", "b", 3)
	f.Add("", "\x00", 200)
	f.Add("\xff\xfe", "extra", 20000)
	f.Fuzz(func(t *testing.T, name, other string, size int) {
		long, err := inference.ToJSON(strings.Repeat("v", max(0, min(size, 1<<17))))
		require.NoError(t, err)
		x := inference.Extra{}.With(name, long).With(other, "1")
		want := map[string]inference.JSON{name: long, other: "1"}
		got := map[string]inference.JSON{}
		last := ""
		for n, v := range x.All() {
			require.LessOrEqual(t, last, n)
			got[n], last = v, n
		}
		require.Equal(t, want, got)
		require.Equal(t, len(want), x.Len())
		require.Equal(t, inference.Extra{}, x.Without(name, other))
	})
}
