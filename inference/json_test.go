package inference_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/inference"
)

func TestJSONEmbedsItself(t *testing.T) {
	type doc struct {
		A inference.JSON `json:"a"`
		B inference.JSON `json:"b,omitempty"`
	}
	raw, err := json.Marshal(doc{A: `{"n":[1,2.50]}`})
	require.NoError(t, err)
	require.Equal(t, `{"a":{"n":[1,2.50]}}`, string(raw))

	raw, err = json.Marshal(doc{})
	require.NoError(t, err)
	require.Equal(t, `{"a":null}`, string(raw))

	var back doc
	require.NoError(t, json.Unmarshal([]byte(`{"a":null,"b": [1, 2] }`), &back))
	require.Equal(t, doc{B: `[1, 2]`}, back)

	_, err = json.Marshal(doc{A: `{`})
	require.Error(t, err, "text that is not JSON must not slip into a document")
}

func TestJSONDecodeIsStrict(t *testing.T) {
	type target struct {
		N int `json:"n"`
	}
	cases := map[string]struct {
		text   inference.JSON
		offset int64
		says   string
	}{
		"unknown field":  {`{"n":1,"m":2}`, 13, "unknown field"},
		"trailing value": {`{"n":1} {"n":2}`, 9, "exactly one"},
		"trailing junk":  {`{"n":1}x`, 7, "exactly one"},
		"wrong type":     {`{"n":"1"}`, 8, "cannot unmarshal"},
		"syntax":         {`{"n":}`, 6, "invalid character"},
		"cut off":        {`{"n":1`, 6, "unexpected EOF"},
		"only blanks":    {`   `, 3, "unexpected EOF"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var v target
			err := c.text.Decode(&v)
			require.ErrorIs(t, err, inference.ErrBadJSON)
			var je *inference.JSONError
			require.ErrorAs(t, err, &je)
			require.Equal(t, c.offset, je.Offset)
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "inference: ")
			require.NotNil(t, errors.Unwrap(je))
		})
	}
	var v target
	require.NoError(t, inference.JSON(` {"n":4} `).Decode(&v))
	require.Equal(t, 4, v.N)
	require.NoError(t, inference.JSON("").Decode(&v), "the empty text is null, which changes nothing")
	require.Equal(t, 4, v.N)
}

func TestJSONForms(t *testing.T) {
	j, err := inference.ToJSON(map[string]any{"b": "<&>", "a": 1})
	require.NoError(t, err)
	require.Equal(t, inference.JSON(`{"a":1,"b":"<&>"}`), j)
	_, err = inference.ToJSON(math.NaN())
	require.ErrorContains(t, err, "inference: value of type float64")

	require.True(t, inference.JSON("").Valid())
	require.True(t, inference.JSON(" 1 ").Valid())
	require.False(t, inference.JSON("{").Valid())
	require.False(t, inference.JSON("1 2").Valid())

	require.Equal(t, inference.JSON(`{"a":[1,2]}`), inference.JSON("{ \"a\" : [1,\n2] }").Compact())
	require.Equal(t, inference.JSON(`{ no`), inference.JSON(`{ no`).Compact())
}

func TestCanonicalIsOneTextPerValue(t *testing.T) {
	same := []inference.JSON{`{"a":"<","b":1.0}`, `{ "b":1.0, "a":"\u003c" }`, `{"a":0,"b":1.0,"a":"<"}`}
	for _, j := range same {
		c, err := j.Canonical()
		require.NoError(t, err)
		require.Equal(t, same[0], c)
	}
	c, err := inference.JSON("").Canonical()
	require.NoError(t, err)
	require.Equal(t, inference.JSON("null"), c)
	for _, bad := range []inference.JSON{`{`, `1 2`, ` `, `{"a":1}}`} {
		_, err := bad.Canonical()
		require.ErrorIs(t, err, inference.ErrBadJSON, bad)
	}
	big, err := inference.JSON(`123456789012345678901234567890`).Canonical()
	require.NoError(t, err)
	require.Equal(t, inference.JSON(`123456789012345678901234567890`), big, "numbers stay as written")
}

func FuzzJSON(f *testing.F) {
	for _, s := range []string{``, `null`, ` {"a": [1, "\u003c"]}`, `{"a":1}x`, `{`, `"\ud800"`, "\"\xff\"", `1e400`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		j := inference.JSON(s)
		c, err := j.Canonical()
		require.Equal(t, j.Valid(), err == nil)
		if err != nil {
			require.ErrorIs(t, err, inference.ErrBadJSON)
			require.Error(t, j.Decode(new(any)))
			return
		}
		again, err := c.Canonical()
		require.NoError(t, err)
		require.Equal(t, c, again)

		raw, err := json.Marshal(j)
		require.NoError(t, err)
		var back inference.JSON
		require.NoError(t, json.Unmarshal(raw, &back))
		saved, err := back.Canonical()
		require.NoError(t, err)
		require.Equal(t, c, saved, "saving and loading keeps the canonical form")
	})
}
