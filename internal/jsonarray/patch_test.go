package jsonarray_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/jsonarray"
)

func ExampleReplace() {
	raw, err := jsonarray.Replace([]byte(`[["a",1],["b",2],["c",3]]`), []byte(`[["b",5]]`), []byte(`["c"]`), jsonarray.PairKey)
	fmt.Println(string(raw), err)
	// Output: [["a",1],["b",5]] <nil>
}

func TestPatches(t *testing.T) {
	for _, c := range [][4]string{
		{`[]`, `[]`, `[]`, `[]`},
		{`[1,2]`, `[2,3]`, `[]`, `[1,2,3]`}, // a part that is no pair is its own key
		{`[1,2]`, `[]`, `[1]`, `[2]`},
		{`[["a",1]]`, `[["a",2]]`, `["a"]`, `[["a",2]]`}, // what is added stays
	} {
		raw, err := jsonarray.Replace([]byte(c[0]), []byte(c[1]), []byte(c[2]), jsonarray.PairKey)
		require.NoError(t, err)
		require.Equal(t, c[3], string(raw))
	}
	raw, err := jsonarray.Append([]byte(`[1,2]`), []byte(`[2, 3]`))
	require.NoError(t, err)
	require.Equal(t, `[1,2,2,3]`, string(raw))
	for _, bad := range [][3]string{{`{}`, `[]`, `[]`}, {`[]`, `null`, `[]`}, {`[]`, `[]`, ``}} {
		_, err := jsonarray.Replace([]byte(bad[0]), []byte(bad[1]), []byte(bad[2]), jsonarray.PairKey)
		require.Error(t, err, bad)
	}
}

func TestMembers(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1,"b":[2]}`: "a1 b[2]",
		`{}`:              "",
		`{"a":1,"a":2}`:   `field "a" stands twice at byte 6`,
		`{"x":1}`:         "no x at byte 1",
		`[]`:              "want {, have [ at byte 0",
	} {
		var got []string
		dec := json.NewDecoder(strings.NewReader(text))
		at, err := jsonarray.Members(dec, func(name string) error {
			var raw json.RawMessage
			if name == "x" {
				return errors.New("no x")
			}
			err := dec.Decode(&raw)
			got = append(got, name+string(raw))
			return err
		})
		if err != nil {
			got = []string{fmt.Sprintf("%v at byte %d", err, at)}
		}
		require.Equal(t, want, strings.Join(got, " "), text)
	}
}
