//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/cli"
)

func settings(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "settings.json")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	return file
}

// Capability M9. Hook programs guard the calls of agents that do not know of them, and
// of a run that another process goes on with.
func TestHooks(t *testing.T) {
	guard := settings(t, `{"hooks": {"PreToolUse": [{"matcher": "write_file|Write", "hooks": [{"type": "command", "command": "echo not here >&2; exit 2"}]}]}}`)
	talk := settings(t, `{"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "echo '{\"systemMessage\": \"hello there\"}'"}]}]}}`)
	for _, filter := range []string{"", "active_hook_filter: [files, confirm]\n", "plugin_ids: [files, confirm]\n"} {
		dir := garden(t)
		file := specFile(t, "id: x\nmodel_id: script:script.json\n"+filter, writer)
		got := fixpoint(t, "", "run", file, "--dir", dir, "--yes", "--hooks", guard, "--hooks", talk)
		require.Equal(t, cli.ExitOK, got.code, got.out+got.err)
		require.Contains(t, got.out, "blocked: not here")
		require.Contains(t, got.out, "hello there\n")
		require.NoFileExists(t, filepath.Join(dir, "new.txt"))
	}

	file := specFile(t, "id: x\nmodel_id: script:script.json\nactive_hook_filter: [files, confirm]\n", writer)
	late := settings(t, `{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "test ! -e closed || { echo closed >&2; exit 2; }"}]}]}}`)
	dir, store := garden(t), t.TempDir()
	got := fixpoint(t, "", "run", file, "--dir", dir, "--store", store, "--hooks", late)
	require.Equal(t, cli.ExitWaiting, got.code, got.out+got.err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "closed"), nil, 0o644))
	got = fixpoint(t, "", "approve", "thread-1", "--store", store)
	require.Equal(t, cli.ExitOK, got.code, got.out+got.err)
	require.Contains(t, got.out, "blocked: closed")
	require.NoFileExists(t, filepath.Join(dir, "new.txt"))
}

// A chat goes on with the hook programs that its thread had.
func TestHooksOfAThread(t *testing.T) {
	guard := settings(t, `{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "echo not here >&2; exit 2"}]}]}}`)
	file := specFile(t, "id: x\nmodel_id: script:script.json\nactive_hook_filter: [files]\n", writer)
	dir := garden(t)
	for _, args := range [][]string{{"--hooks", guard}, {"--thread", "thread-1"}, {"--thread", "thread-1"}} {
		got := fixpoint(t, "go\n", append([]string{"chat", file, "--dir", dir}, args...)...)
		require.Equal(t, cli.ExitOK, got.code, got.out+got.err)
		require.Contains(t, got.out, "blocked: not here")
	}
}

// A program can answer the question that the terminal would be asked.
func TestHooksAnswer(t *testing.T) {
	yes := settings(t, `{"hooks": {"PermissionRequest": [{"hooks": [{"type": "command",
		"command": "echo '{\"hookSpecificOutput\": {\"hookEventName\": \"PermissionRequest\", \"decision\": {\"behavior\": \"allow\"}}}'"}]}]}}`)
	dir := garden(t)
	file := specFile(t, "id: x\nmodel_id: script:script.json\nactive_hook_filter: [files, confirm]\n", writer)
	for _, verb := range [][]string{{"run", file}, {"chat", file}} {
		require.NoError(t, os.RemoveAll(filepath.Join(dir, "new.txt")))
		got := fixpoint(t, "go\n", append(verb, "--dir", dir, "--hooks", yes)...)
		require.Equal(t, cli.ExitOK, got.code, got.out+got.err)
		require.FileExists(t, filepath.Join(dir, "new.txt"))
	}
}

func TestBadHooks(t *testing.T) {
	for _, file := range []string{filepath.Join(t.TempDir(), "nope.json"), settings(t, `{"hooks": {"PreTolUse": []}}`)} {
		for _, verb := range []string{"run", "chat"} {
			got := fixpoint(t, "", verb, "--dir", garden(t), "--hooks", file)
			require.Equal(t, cli.ExitUsage, got.code, got.out)
			require.Contains(t, got.err, "fixpoint: --hooks: ")
			require.Contains(t, got.err, filepath.Base(file))
		}
	}
}

// Capability M9. Where an agent compacts, in a run or in a chat, hook programs have a say;
// where it does not, hooks of PreCompact are warned about.
func TestHooksOfCompactions(t *testing.T) {
	no := settings(t, `{"hooks": {"PreCompact": [{"hooks": [{"type": "command", "command": "echo not now >&2; exit 2"}]}]}}`)
	const answers = `{"answers": [{"text": "One answer that is long enough to be worth a summary, or so one would think of it."}, {"text": "Two."}]}`
	const section = "sections:\n  compact: {max_tokens: 10, keep_recent: 1, min_saving: 1, summary_tokens: 5}\n"
	compacts := specFile(t, "id: x\nmodel_id: script:script.json\nplugin_ids: [files, compact]\n"+section, answers)
	plain := specFile(t, "id: x\nmodel_id: script:script.json\n", answers)
	for name, c := range map[string]struct {
		in    string
		args  []string
		shows string
	}{
		"chat":    {"first\n/compact\nsecond\n", []string{"chat", compacts}, `"status":"cancelled","by":"exechook","reason":"not now"`},
		"warning": {"", []string{"run", plain}, "Options.Compacts is not set"},
	} {
		t.Run(name, func(t *testing.T) {
			trace := filepath.Join(t.TempDir(), "trace.jsonl")
			got := fixpoint(t, c.in, append(c.args, "--dir", garden(t), "--hooks", no, "--trace", trace)...)
			require.Equal(t, cli.ExitOK, got.code, got.out+got.err)
			lines, err := os.ReadFile(trace)
			require.NoError(t, err)
			require.Contains(t, string(lines), c.shows)
		})
	}
}
