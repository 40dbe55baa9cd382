package exechook_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/plugins/exechook"
	"github.com/ddd26017/fixpoint/inference"
)

func TestParseReply(t *testing.T) {
	text := "new"
	for _, c := range []struct {
		event exechook.Event
		out   string
		want  exechook.Reply
	}{
		{exechook.PreToolUse, "", exechook.Reply{}},
		{exechook.PreToolUse, "all is well\n", exechook.Reply{}},
		{exechook.UserPromptSubmit, " It is Monday.\n", exechook.Reply{Context: "It is Monday."}},
		{exechook.PreToolUse, `{}`, exechook.Reply{}},
		{exechook.PreToolUse, `{"suppressOutput": true, "mine": 1}`, exechook.Reply{}},
		{exechook.PreToolUse, `{"decision": "approve", "reason": "r"}`, exechook.Reply{Opinion: exechook.Allow, Reason: "r"}},
		{exechook.Stop, `{"decision": "block", "reason": "r"}`, exechook.Reply{Opinion: exechook.Deny, Reason: "r"}},
		{exechook.Stop, `{"decision": null}`, exechook.Reply{}},
		{exechook.Stop, `{"continue": false, "stopReason": "s", "systemMessage": "m"}`, exechook.Reply{EndRun: true, EndReason: "s", Message: "m"}},
		{
			exechook.PreToolUse, `{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow",
			"permissionDecisionReason": "r", "updatedInput": {"a": 1}, "additionalContext": "c"}}`,
			exechook.Reply{Opinion: exechook.Allow, Reason: "r", Input: `{"a": 1}`, Context: "c"},
		},
		{
			exechook.PreToolUse, `{"decision": "block", "reason": "no", "hookSpecificOutput": {"permissionDecision": "allow", "permissionDecisionReason": "yes"}}`,
			exechook.Reply{Opinion: exechook.Deny, Reason: "no"},
		},
		{exechook.PreToolUse, `{"hookSpecificOutput": {"permissionDecision": "defer"}}`, exechook.Reply{Opinion: exechook.Defer}},
		{
			exechook.PermissionRequest, `{"hookSpecificOutput": {"decision": {"behavior": "deny", "message": "m", "updatedInput": {}}}}`,
			exechook.Reply{Opinion: exechook.Deny, Reason: "m", Input: `{}`},
		},
		{exechook.PostToolUse, `{"hookSpecificOutput": {"updatedToolOutput": "new"}}`, exechook.Reply{Output: &text}},
	} {
		got, err := exechook.ParseReply(c.event, []byte(c.out))
		require.NoError(t, err, c.out)
		require.Equal(t, c.want, got, c.out)
	}
	for _, bad := range []string{
		`{`, `{"decision": "block"} trailing`, `{"decision": 1}`, `{"decision": "perhaps"}`, `{"continue": "no"}`, "{\"reason\": \"\xff\"}",
		`{"hookSpecificOutput": []}`, `{"hookSpecificOutput": {"permissionDecision": "maybe"}}`,
		`{"hookSpecificOutput": {"hookEventName": "Stop", "permissionDecision": "deny"}}`,
		`{"hookSpecificOutput": {"updatedInput": "rm"}}`, `{"hookSpecificOutput": {"decision": {"behavior": "ask"}}}`,
	} {
		_, err := exechook.ParseReply(exechook.PreToolUse, []byte(bad))
		require.Error(t, err, bad)
	}
}

// FuzzParseReply feeds the reader of replies anything: what it accepts is well formed.
func FuzzParseReply(f *testing.F) {
	for _, seed := range []string{"", "text", `{"decision": "block"}`, `{"hookSpecificOutput": {"updatedInput": {"a": [1]}, "permissionDecision": "ask"}}`, `{"continue": false}`, "{\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, out string) {
		for _, e := range exechook.Events() {
			r, err := exechook.ParseReply(e, []byte(out))
			if err != nil {
				require.Empty(t, r.Opinion)
				continue
			}
			require.Contains(t, []exechook.Opinion{exechook.NoOpinion, exechook.Allow, exechook.Ask, exechook.Defer, exechook.Deny}, r.Opinion)
			require.True(t, r.Input == "" || r.Input.Valid() && r.Input[0] == '{')
			again, err := exechook.ParseReply(e, []byte(out))
			require.NoError(t, err)
			require.Equal(t, r, again)
		}
	})
}

func TestToolNames(t *testing.T) {
	write := exechook.DefaultTools()["write_file"]
	name, input, err := write.There(inference.ToolCall{Name: "write_file", Args: `{"path":"a","content":"<b>","n":12345678901234567890}`})
	require.NoError(t, err)
	require.Equal(t, "Write", name)
	require.JSONEq(t, `{"file_path":"a","content":"<b>","n":12345678901234567890}`, string(input))
	require.Contains(t, string(input), "12345678901234567890", "numbers stay as written")
	back, err := write.Back(input)
	require.NoError(t, err)
	require.JSONEq(t, `{"path":"a","content":"<b>","n":12345678901234567890}`, string(back))

	_, _, err = write.There(inference.ToolCall{Args: `{"path":"a","file_path":"b"}`})
	require.ErrorContains(t, err, `two values for "file_path"`)
	_, err = write.Back(`{"path":"a","file_path":"b"}`)
	require.ErrorContains(t, err, `two values for "path"`)

	for args, want := range map[inference.JSON]string{"": `{}`, `[1]`: `[1]`, `null`: `null`, `{"path"`: `"{\"path\""`, `{"a":1,"a":2}`: `{"a":2}`} {
		name, input, err := exechook.ToolName{}.There(inference.ToolCall{Name: "own", Args: args})
		require.NoError(t, err)
		require.Equal(t, "own", name)
		require.Equal(t, want, string(input))
	}
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

// FuzzOneReading refuses arguments in which a name is there twice, and no others as long
// as nothing is known of a tool.
func FuzzOneReading(f *testing.F) {
	for _, seed := range []string{`{"a":1,"b":{"a":2}}`, `{"path":"a","PATH":"b"}`, `[{"a":1},{"a":[{"b":2,"\u0042":3}]}]`, `{"o":{"k":1,"\u212a":2}}`, `{"a":{},"b":[],"a":null}`, `"x"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, args string) {
		if !json.Valid([]byte(args)) {
			return
		}
		require.Equal(t, twice([]byte(args)), exechook.OneReading(inference.JSON(args), "") != nil)
	})
}
