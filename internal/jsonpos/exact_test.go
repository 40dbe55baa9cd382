package jsonpos_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/jsonpos"
)

type exactItem struct {
	Path string `json:"path"`
}

type exactAll struct {
	exactItem
	List  []exactItem          `json:"list"`
	Map   map[string]exactItem `json:"map"`
	Any   any                  `json:"any"`
	Raw   json.RawMessage      `json:"raw"`
	Ptr   **exactItem          `json:"ptr"`
	Plain int
}

func TestExact(t *testing.T) {
	for _, text := range []string{
		"{}", " {} ", "null", `{"path":"a","list":[{"path":"b"}],"map":{"Path":{"path":"c"},"path":{"path":"d"}},"Plain":1}`,
		`{"any":{"Path":1,"path":2},"raw":{"PATH":1},"ptr":{"path":"x"}}`, `{"ptr":null,"list":null,"map":null}`, "not JSON",
	} {
		require.NoError(t, jsonpos.Exact(text, reflect.TypeFor[exactAll]()), text)
	}
	for text, want := range map[string]string{
		`{"path":"a","path":"b"}`:               `field "path" is there twice, again at 1:13; keep one`,
		`{"path":"a","p\\u0061th":"b"}`:         `field "path" is there twice`,
		`{"PATH":"a"}`:                          `unknown field "PATH" at 1:2; names are exact: list, map, any, raw, ptr, Plain, path`,
		`{"plain":1}`:                           `unknown field "plain"`,
		`{"list":[{"path":"a"},{"Path":"b"}]}`:  `unknown field "Path"`,
		`{"map":{"x":{"Path":"b"}}}`:            `unknown field "Path"`,
		`{"map":{"x":{},"x":{}}}`:               `field "x" is there twice`,
		`{"any":[{"x":{"a":1,"a":2}}]}`:         `field "a" is there twice`,
		`{"raw":{"a":1,"a":2}}`:                 `field "a" is there twice`,
		`{"ptr":{"Path":"b"}}`:                  `unknown field "Path"`,
		"{\"any\":\"\xff\"}":                    `the text is not UTF-8, at 1:9`,
		"{\"path\":\"a\",\n\"path\":\"b\xc3\"}": `the text is not UTF-8, at 2:10`,
	} {
		text = strings.ReplaceAll(text, `\\u`, `\u`)
		require.ErrorContains(t, jsonpos.Exact(text, reflect.TypeFor[exactAll]()), want, text)
	}
}
