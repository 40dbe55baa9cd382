package redact_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/redact"
)

func Example() {
	hide := redact.Texts("[secret]", "hunter2")
	fmt.Println(hide.In("password: hunter2"))
	fmt.Println(hide.InJSON(`{"p": "hunter2"}`))
	// Output:
	// password: [secret]
	// {"p":"[secret]"} true
}

func TestForms(t *testing.T) {
	hide := redact.Texts("#", `a"<b`, "12345", "1234")
	for text, want := range map[string]string{
		`a"<b and 1234`:  "# and #",
		`a\"<b`:          "#", // as a readable encoder writes it
		`a\"\u003cb`:     "#", // as encoding/json does
		"12345":          "#", // the longest first
		"123, a\"<B":     "123, a\"<B",
		"text 123456 ok": "text #6 ok",
	} {
		require.Equal(t, want, hide.In(text), text)
	}
}

func TestInJSON(t *testing.T) {
	hide := redact.Texts("#", "1234", "<key>")
	for text, want := range map[string]string{
		`{"<key>": [1, 1234, 51234.50], "b": {"c": "x 1234", "d": null, "e": true}}`: `{"#":[1,"#","5#.50"],"b":{"c":"x #","d":null,"e":true}}`,
		`"\u003ckey\u003e"`: `"#"`,
		`[ "<none>", 123 ]`: "",
		``:                  "",
		`no JSON 1234`:      "",
	} {
		hidden, found := hide.InJSON(text)
		require.Equal(t, want != "", found, text)
		if want == "" {
			want = text
		}
		require.Equal(t, want, hidden)
	}
}

// Whatever the text and the value that has it, nothing of it is left, and what comes
// out is JSON.
func FuzzInJSON(f *testing.F) {
	f.Add("hunter2", `{"p":"my hunter2","n":[1.5,"x"]}`)
	f.Add("\"<\\", `["a\"<\\b"]`)
	f.Fuzz(func(t *testing.T, secret, text string) {
		if len(secret) < 4 || strings.Contains("[#]", secret) || strings.ContainsAny(secret, "[]#") {
			return
		}
		hide := redact.Texts("[#]", secret)
		if !strings.Contains(hide.In("x"+secret), "[#]") {
			t.Errorf("%q is not found", secret)
		}
		var v any
		if json.Unmarshal([]byte(text), &v) != nil {
			return
		}
		hidden, found := hide.InJSON(text)
		require.True(t, json.Valid([]byte(hidden)))
		if !found {
			require.Equal(t, text, hidden)
		}
	})
}
