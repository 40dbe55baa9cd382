package confirm_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/confirm"
)

// What Parse takes says the same again when it is written, and replies as it reads.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		``, `{"choice":"yes"}`, `{"choice":"no","reason":"r"}`, toB, `{"choice":"always","scope":"thread","covers":"call"}`,
		`{"choice":"times","n":3}`, `{"choice":"times","n":1e3}`, `{"choice":"edit","args":"x"}`, `[]`, `{"Choice":"yes"}`, `{"choice":"edit","args":{"a":1,"a":2}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := confirm.Parse(inference.JSON(text))
		if err != nil {
			require.ErrorIs(t, err, confirm.ErrAnswer)
			return
		}
		written, err := inference.ToJSON(a)
		require.NoError(t, err)
		again, err := confirm.Parse(written)
		require.NoError(t, err)
		again.Args, a.Args = again.Args.Compact(), a.Args.Compact()
		require.Equal(t, a, again)
		reply, err := a.Reply()
		require.NoError(t, err)
		require.Equal(t, a.Choice != confirm.No, reply.Approved)
	})
}

func TestReplyRefusesBadAnswers(t *testing.T) {
	_, err := confirm.Answer{Choice: confirm.Times, N: confirm.MostTimes + 1}.Reply()
	require.ErrorIs(t, err, confirm.ErrAnswer)
	require.ErrorContains(t, err, "n is 1001; use 1 to 1000")
}

// Schemas hands on what is not its own, and says so when there is nobody to hand it to.
func TestSchemasOfOthers(t *testing.T) {
	foreign := errors.New("asked somebody else")
	next := engine.SchemaCheckerFunc(func(schema, _ inference.JSON) error {
		require.Equal(t, inference.JSON(`{"type":"string"}`), schema)
		return foreign
	})
	require.ErrorIs(t, confirm.Schemas(next).CheckSchema(`{"type":"string"}`, `"x"`), foreign)
	require.ErrorContains(t, confirm.Schemas(nil).CheckSchema(`{"type":"string"}`, `"x"`), "give confirm.Schemas a checker")
}

// A diff applied to the old text gives the new one.
func FuzzDiff(f *testing.F) {
	f.Add("", "a\n")
	f.Add("a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n", "a\nx\nc\nd\ne\nf\ng\nh\ni\ny\nj")
	f.Add("1\n2\n3\n1\n2\n2\n1\n", "3\n2\n1\n2\n1\n3\n")
	f.Add("a\n\n\n\n\n\n\n\nb\n", "\n\n\n\n\n\n\n\nb\nc")
	f.Add(strings.Repeat("x\n", 700), strings.Repeat("y\n", 700))
	f.Fuzz(func(t *testing.T, old, text string) {
		diff := confirm.Diff("a", "b", old, text)
		if old == text {
			require.Empty(t, diff)
			return
		}
		require.Equal(t, text, patch(t, old, diff))
	})
}

// patch applies a unified diff, and checks that it fits what it is applied to.
func patch(t *testing.T, old, diff string) string {
	t.Helper()
	lines := strings.SplitAfter(old, "\n")
	var out strings.Builder
	at := 0 // lines of old that are done
	take := func(n int) {
		out.WriteString(strings.Join(lines[at:at+n], ""))
		at += n
	}
	rest := strings.SplitAfter(strings.TrimPrefix(diff, "--- a\n+++ b\n"), "\n")
	for i := 0; i < len(rest) && rest[i] != ""; i++ {
		if span, ok := strings.CutPrefix(rest[i], "@@ -"); ok {
			start, count := number(t, span), number(t, span[strings.Index(span, ",")+1:])
			if count > 0 {
				start--
			}
			take(start - at)
			continue
		}
		text := rest[i][1:]
		if i+1 < len(rest) && strings.HasPrefix(rest[i+1], `\ No newline`) {
			text = strings.TrimSuffix(text, "\n")
		}
		switch rest[i][0] {
		case '+':
			out.WriteString(text)
		case '-', ' ':
			require.Equal(t, lines[at], text)
			if rest[i][0] == ' ' {
				out.WriteString(text)
			}
			at++
		default:
			require.True(t, strings.HasPrefix(rest[i], `\ No newline`), rest[i])
		}
	}
	take(len(lines) - at)
	return out.String()
}

func number(t *testing.T, text string) (n int) {
	t.Helper()
	for i := 0; i < len(text) && text[i] >= '0' && text[i] <= '9'; i++ {
		n = 10*n + int(text[i]-'0')
	}
	return n
}

// twice is a simple model of what is looked for: does an object in value have two members
// of one name?
func twice(value []byte) bool {
	dec := json.NewDecoder(bytes.NewReader(value))
	open, err := dec.Token()
	names := []string{}
	for err == nil && dec.More() && (open == json.Delim('{') || open == json.Delim('[')) {
		if open == json.Delim('{') {
			name, _ := dec.Token()
			if slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name.(string)) }) {
				return true
			}
			names = append(names, name.(string))
		}
		var inner json.RawMessage
		if err = dec.Decode(&inner); err == nil && twice(inner) {
			return true
		}
	}
	return false
}

// FuzzReadings compares files only if there is one way to read the arguments.
func FuzzReadings(f *testing.F) {
	for _, seed := range []string{`{"path":"a","text":"b"}`, `{"path":"a","PATH":"b"}`, `[{"a":1},{"a":[{"b":2,"\u0042":3}]}]`, `{"o":{"k":1,"\u212a":2}}`, `{"a":{},"b":[],"a":null}`, `"x"`, `{"\ud800":1,"\udfff":2}`} {
		f.Add(seed)
	}
	compare := confirm.FileDiff(fstest.MapFS{}, "path", "text")
	f.Fuzz(func(t *testing.T, args string) {
		if !json.Valid([]byte(args)) {
			return
		}
		var object map[string]any
		call := inference.ToolCall{ID: "c", Name: "save", Args: inference.JSON(args)}
		_, err := compare.Preview(t.Context(), phase.NewContext(phase.Frame{Call: &phase.CallFrame{Call: call}}))
		if json.Unmarshal([]byte(args), &object) == nil {
			require.Equal(t, twice([]byte(args)), err != nil && strings.Contains(err.Error(), "more than one member"), "%v", err)
		}
	})
}
