package jsonarray_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/jsonarray"
)

func encode(n int) ([]byte, error) {
	if n < 0 {
		return nil, errors.New("negative")
	}
	return json.Marshal(n)
}

func decode(raw []byte) (n int, err error) {
	err = json.Unmarshal(raw, &n)
	return n, err
}

func ExampleEncode() {
	values, _ := jsonarray.Encode(slices.All([]int{5, 6}), encode, false)
	pairs, _ := jsonarray.Encode(slices.All([]int{5, 6}), encode, true)
	fmt.Println(string(values), string(pairs))
	// Output: [5,6] [[0,5],[1,6]]
}

func ExampleDecode() {
	fmt.Println(jsonarray.Decode([]byte("[5, 6]"), func(raw []byte) (string, error) { return string(raw), nil }))
	// Output: [5 6] <nil>
}

func ExamplePair() {
	fmt.Println(jsonarray.Pair[string]([]byte(`["a", 1]`), func(raw []byte) (string, error) { return string(raw), nil }))
	// Output: a 1 <nil>
}

func TestRoundTrip(t *testing.T) {
	for _, list := range [][]int{{}, {1}, {3, 1, 2}} {
		raw, err := jsonarray.Encode(slices.All(list), encode, false)
		require.NoError(t, err)
		back, err := jsonarray.Decode(raw, decode)
		require.NoError(t, err)
		require.Equal(t, list, back)
		parts, err := jsonarray.Split(raw)
		require.NoError(t, err)
		require.Len(t, parts, len(list))
	}
}

func TestWalk(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1,"b":2}`: "a b",
		`{}`:            "",
		` {"a":1,"x"}`:  "member x at byte 7",
		`[1]`:           "want {, have [ at byte 0",
		``:              "EOF at byte 0",
	} {
		var names []string
		dec := json.NewDecoder(strings.NewReader(text))
		at, err := jsonarray.Walk(dec, '{', func() error {
			name, err := dec.Token()
			if err != nil {
				return err
			}
			if name == "x" {
				return errors.New("member x")
			}
			names = append(names, name.(string))
			return dec.Decode(new(int))
		})
		got := strings.Join(names, " ")
		if err != nil {
			got = fmt.Sprintf("%v at byte %d", err, at)
		}
		require.Equal(t, want, got, text)
	}
}

func TestFaults(t *testing.T) {
	_, err := jsonarray.Encode(maps.All(map[string]int{"x": -1}), encode, false)
	require.EqualError(t, err, "entry x: negative")
	_, err = jsonarray.Encode(func(yield func(func(), int) bool) { yield(nil, 1) }, encode, true)
	require.ErrorContains(t, err, "unsupported type")
	for raw, want := range map[string]string{
		" null":   "want a JSON array, have null",
		"{}":      "cannot unmarshal object",
		"[1,":     "unexpected end",
		`[1,"a"]`: "element 1: ",
	} {
		_, err := jsonarray.Decode([]byte(raw), decode)
		require.ErrorContains(t, err, want, raw)
	}
	for raw, want := range map[string]string{
		`["a"]`:    "it has 1 parts, want a key and a value",
		`[1,1]`:    "cannot unmarshal number",
		`["a",{}]`: "cannot unmarshal object",
		"null":     "have null",
	} {
		_, _, err := jsonarray.Pair[string]([]byte(raw), decode)
		require.ErrorContains(t, err, want, raw)
	}
}
