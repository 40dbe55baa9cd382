package jsondiff_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/jsondiff"
)

func TestChanges(t *testing.T) {
	for _, c := range []struct {
		before, after string
		want          []string
	}{
		{`1`, `1`, nil},
		{`{"a":1,"b":[1,{"c":"<"}]}`, ` {"b": [1, {"c": "<"}], "a": 1}`, nil},
		{`1`, `2`, []string{"~ 1 → 2"}},
		{`1.0`, `1`, []string{"~ 1.0 → 1"}},
		{``, `{"a":1}`, []string{`+ {"a":1}`}},
		{`{"a":1}`, ``, []string{`- {"a":1}`}},
		{``, ``, nil},
		{`{"a":1,"b":2,"d":{"e":1}}`, `{"b":3,"c":null,"d":{"e":2}}`, []string{"- a 1", "~ b 2 → 3", "+ c null", "~ d.e 1 → 2"}},
		{`[1,2]`, `[1,3,4]`, []string{"~ [1] 2 → 3", "+ [2] 4"}},
		{`{"a":[{"b":"<x>"}]}`, `{"a":[]}`, []string{`- a[0] {"b":"<x>"}`}},
		{`{"a":{}}`, `{"a":[]}`, []string{`~ a {} → []`}},
		{`[["a",1],["b",{"c":2}]]`, `[["x",0],["b",{"c":3}]]`, []string{`- ["a"] 1`, `~ ["b"].c 2 → 3`, `+ ["x"] 0`}},
		{`{"t":[[1,"x"]]}`, `{"t":[]}`, []string{`- t[1] "x"`}},
		{`[["a",1],["a",2]]`, `[["a",2]]`, []string{"~ [0][1] 1 → 2", `- [1] ["a",2]`}},
		{`[["b",1],["a",2]]`, `[["a",2],["b",1]]`, nil},
		{`not`, `1`, []string{"~ not → 1"}},
		{`not`, `not`, nil},
		{`1 2`, `1`, []string{"~ 1 2 → 1"}},
	} {
		var got []string
		for _, d := range jsondiff.Changes([]byte(c.before), []byte(c.after)) {
			got = append(got, d.String())
		}
		require.Equal(t, c.want, got, "%s %s", c.before, c.after)
	}
}

// FuzzChanges checks that a value does not differ from itself, and that there and back
// are the same changes.
func FuzzChanges(f *testing.F) {
	for _, s := range [][2]string{{`{"a":1}`, `{"a":2}`}, {`[1]`, `[1,2]`}, {`x`, ``}, {`{"":{}}`, `{}`}, {`"\ud800"`, `"\ufffd"`}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		require.Empty(t, jsondiff.Changes([]byte(a), []byte(a)))
		there := jsondiff.Changes([]byte(a), []byte(b))
		back := jsondiff.Changes([]byte(b), []byte(a))
		require.Len(t, back, len(there))
		for _, c := range there {
			require.Contains(t, back, jsondiff.Change{Path: c.Path, Before: c.After, After: c.Before})
			require.NotEqual(t, c.Before, c.After)
		}
	})
}
