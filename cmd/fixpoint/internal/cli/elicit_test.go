package cli_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/cli"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/vault"
	"github.com/ddd26017/fixpoint/plugins/elicit"
)

// The agent asks for a region, then for a token, and repeats what it was told.
const (
	plannerSpec   = "id: planner\nmodel_id: script:script.json\nsections:\n  permission: {allow: ['kind:ask']}\n"
	plannerScript = `{"answers": [
		{"tool_calls": [{"id": "region", "tool": "ask_user", "args": {"kind": "choice", "message": "Which region?", "choices": ["eu", "us"]}}]},
		{"text": "region: {{ (.Result \"region\").Content }}", "tool_calls": [{"id": "token", "tool": "ask_user", "args": {"kind": "secret", "message": "The token?"}}]},
		{"text": "token: {{ (.Result \"token\").Content }}"}
	]}`
)

// Capability G6. Capability M5. An agent asks for a choice and a secret: the run waits
// for each, pending shows it, answer gives it, and the model's next request has it as
// JSON. Of the secret that is a handle, which the vault knows; the secret itself is
// nowhere else.
func TestAskUser(t *testing.T) {
	const secret = "hunter2-swordfish"
	spec, dir, store := specFile(t, plannerSpec, plannerScript), t.TempDir(), t.TempDir()
	var outputs strings.Builder
	do := func(code int, in string, args ...string) string {
		t.Helper()
		got := fixpoint(t, in, append(args, "--store", store)...)
		require.Equal(t, code, got.code, got.out+got.err)
		outputs.WriteString(got.out + got.err)
		return got.out
	}
	trace := filepath.Join(dir, "trace.jsonl")

	require.Contains(t, do(cli.ExitWaiting, "", "run", spec, "--dir", dir, "-v"), "ask_user: Which region?\n")
	open := do(cli.ExitOK, "", "pending")
	require.Contains(t, open, "ask_user: Which region?\n")
	require.Contains(t, open, "  choices  eu, us\n")
	do(cli.ExitUsage, "", "answer", "region", "moon")

	out := do(cli.ExitWaiting, "", "answer", "region", "us", "-v")
	require.Contains(t, out, `“region: {"status":"answered","kind":"choice","value":"us"}”`)
	open = do(cli.ExitOK, "", "pending", "--json")
	var tickets []struct{ Kind, Message, Call string }
	require.NoError(t, json.Unmarshal([]byte(open), &tickets))
	require.Len(t, tickets, 1)
	require.Equal(t, struct{ Kind, Message, Call string }{"secret", "The token?", "token"}, tickets[0])

	out = do(cli.ExitOK, secret+"\n", "answer", "token", "-v", "--trace", trace)
	_, heard, _ := strings.Cut(out, " answer  token: ")
	heard, _, _ = strings.Cut(heard, "\n")
	var reply elicit.Reply
	require.NoError(t, json.Unmarshal([]byte(heard), &reply), out)
	require.Equal(t, elicit.Reply{Status: elicit.Answered, Kind: "secret", Handle: reply.Handle}, reply)
	revealed, err := vault.New(kept.VaultFolder(store)).Reveal(t.Context(), reply.Handle)
	require.NoError(t, err, "the result hands the handle on, so that the secret is kept")
	require.Equal(t, secret, revealed)
	require.Contains(t, do(cli.ExitOK, "", "pending"), "nothing")
	do(cli.ExitOK, "", "history", "thread-1", "--json")

	encoded := strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(secret)), "=") // as the vault writes it
	for _, s := range []string{secret, encoded} {
		require.NotContains(t, outputs.String(), s)
		for _, folder := range []string{store, dir} {
			require.NoError(t, filepath.WalkDir(folder, func(path string, e os.DirEntry, err error) error {
				switch {
				case err != nil:
					return err
				case path == kept.VaultFolder(store):
					return filepath.SkipDir
				case e.IsDir():
					return nil
				}
				text, err := os.ReadFile(path)
				require.NotContains(t, string(text), s, path)
				return err
			}))
		}
	}
	do(cli.ExitOK, "", "delete", "thread-1")
	left, err := os.ReadDir(kept.VaultFolder(store))
	require.NoError(t, err)
	require.Empty(t, left, "deleting the thread forgets it")
}

// Capability M5. A run that is not kept cannot wait: when standard input is at its end,
// a question's own default counts, or else what the section says.
func TestAskUserUnattended(t *testing.T) {
	for _, c := range []struct{ section, question, want string }{
		{"", `{"kind": "text", "message": "?"}`, `{"status":"cancelled","kind":"text","reason":"nobody is there to answer"}`},
		{"decline", `{"kind": "form", "message": "?"}`, `{"status":"declined","kind":"form","reason":"nobody is there to answer"}`},
		{"", `{"kind": "secret", "message": "?"}`, `{"status":"cancelled","kind":"secret","reason":"a secret can only be typed at a terminal"}`},
		{"", `{"kind": "choice", "message": "?", "choices": ["eu", "us"], "default": "us"}`, `{"status":"answered","kind":"choice","value":"us","reason":"nobody is there to answer, and the default counts"}`},
		{"", `{"kind": "confirm", "message": "?", "default": true}`, `{"status":"answered","kind":"confirm","value":true,"reason":"nobody is there to answer, and the default counts"}`},
		{"", `{"kind": "confirm", "message": "?", "default": false}`, `{"status":"answered","kind":"confirm","value":false,"reason":"nobody is there to answer; --yes approves"}`},
	} {
		spec := plannerSpec
		if c.section != "" {
			spec += "  elicit: {unattended: " + c.section + "}\n"
		}
		file := specFile(t, spec, `{"answers": [{"tool_calls": [{"id": "q", "tool": "ask_user", "args": `+c.question+`}]}, {"text": "{{ (.Result \"q\").Content }}"}]}`)
		got := fixpoint(t, "", "run", file, "--dir", t.TempDir(), "-q")
		require.Equal(t, cli.ExitOK, got.code, got.out+got.err)
		require.Contains(t, got.out, " answer  "+c.want+"\n")
	}
}
