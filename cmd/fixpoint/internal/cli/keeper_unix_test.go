//go:build unix

package cli_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/cli"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/plugins/confirm"
)

const keeper = "../../../../examples/keeper/agent.yaml"

// repository is the test directory as a git repository with one commit.
func repository(t *testing.T) string {
	t.Helper()
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_SYSTEM", os.DevNull)
	dir := garden(t)
	git(t, dir, "init", "-q", "-b", "main")
	git(t, dir, "add", "-A")
	git(t, dir, "-c", "user.name=Ann", "-c", "user.email=ann@example.com", "commit", "-q", "-m", "Plant it")
	return dir
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%v: %s", args, out)
	return strings.TrimRight(string(out), "\n")
}

// timed runs the command with a clock that stands still at the start of the tests' time.
func timed(t *testing.T, in string, args ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	code := cli.Run(t.Context(), args, cli.IO{In: strings.NewReader(in), Out: &out, Err: &errs, Now: enginetest.Epoch})
	return outcome{code, out.String(), errs.String()}
}

// Capabilities G2, G5 and G7. The keeper changes a file of a repository: what is on the
// allowlist runs unasked, the rest is asked about with a diff, what was there can be had
// back, and it is committed once the checks have passed.
func TestKeeper(t *testing.T) {
	dir := repository(t)
	before := git(t, dir, "show", "HEAD:README.md")
	trace := filepath.Join(t.TempDir(), "trace.jsonl")
	got := timed(t, "", "run", keeper, "--dir", dir, "--yes", "--trace", trace)
	require.Equal(t, cli.ExitOK, got.code, got.out+got.err)

	text, err := os.ReadFile(trace)
	require.NoError(t, err)
	fitsSchema(t, string(text))
	seen := events(t, string(text))
	asked := map[string]confirm.Preview{}
	for _, e := range enginetest.Select[engine.TicketOpened](seen) {
		var shown confirm.Preview
		require.NoError(t, e.Ticket.Params.Decode(&shown))
		asked[e.Ticket.Call] = shown
		require.Equal(t, gate.Confirm, e.Ticket.Kind)
	}
	require.Len(t, asked, 2, "the shell and what only reads are not asked about")
	require.Contains(t, asked["write"].Diff, "+This place has a keeper.  \n")
	require.Contains(t, asked["fix"].Diff, "-This place has a keeper.  \n+This place has a keeper.\n")
	require.Contains(t, got.out, "│ +This place has a keeper.··\n", "--yes shows what it approves, and blanks are seen")
	require.Contains(t, got.out, `approve by allowlist: allowed by "git status *"`)
	require.Contains(t, got.out, "continue    checks failed\n")
	require.Contains(t, got.out, "     cost  0.01764 USD, model calls: 6\n")
	require.Contains(t, got.out, "cost    the run has cost 0.01005 USD and passed 0.01\n")
	require.Contains(t, got.out, "   checks  passed\n")

	after, err := os.ReadFile(filepath.Join(dir, "README.md"))
	require.NoError(t, err)
	require.Equal(t, before+"\n\n## Upkeep\n\nThis place has a keeper.\n", string(after))
	require.Equal(t, "Keeper: Keep README.md in order", git(t, dir, "log", "-1", "--format=%an: %s"))
	require.Equal(t, enginetest.Epoch().UTC().Format(time.RFC3339), git(t, dir, "log", "-1", "--date=format-local:%Y-%m-%dT%H:%M:%SZ", "--format=%cd"))
	require.Equal(t, "README.md", git(t, dir, "diff", "--name-only", "HEAD^", "HEAD"))
	require.Empty(t, git(t, dir, "status", "--short"), "nothing is left over")
	first := git(t, dir, "for-each-ref", "--format=%(refname)", "refs/fixpoint/*/*/s1")
	require.Equal(t, before, git(t, dir, "show", first+":README.md"), "the way back")
	entries, err := os.ReadDir(filepath.Join(dir, ".fixpoint"))
	require.NoError(t, err)
	require.Len(t, entries, 2, "a drawing, and the note for git")

	seen = slices.DeleteFunc(seen, func(e engine.Event) bool { return e.Type() == engine.Committed{}.Type() })
	golden(t, "keeper.txt", outline(t, strings.Join(enginetest.Lines(seen), "\n")))
}

// Without a yes nothing is changed and nothing committed.
func TestKeeperAsks(t *testing.T) {
	dir := repository(t)
	got := timed(t, "no not today\n", "run", keeper, "--dir", dir)
	require.Equal(t, cli.ExitOK, got.code, got.err)
	require.Contains(t, got.out, "denied: not today")
	require.Contains(t, got.out, "answer  README.md is as it was.\n")
	require.Equal(t, "1", git(t, dir, "rev-list", "--count", "HEAD"))
	require.Empty(t, git(t, dir, "status", "--short"))
}

// A question that waits is shown with its diff, and whatever it takes can be answered
// from the command line.
func TestKeeperWaits(t *testing.T) {
	const ticket = "thread-1.run-1/2/write/1"
	for answer, want := range map[string]struct{ readme, says string }{
		"times 1":           {"has a keeper.\n", "yes, at the terminal, and for 1 more: calls of this tool"},
		"always thread all": {"has a keeper.\n", "yes, at the terminal, for the whole thread: all calls"},
		"no rather not":     {"in the shade.", "no, rather not"},
		`{"choice": "no"}`:  {"in the shade.", "no, at the terminal"},
		`edit {"path":"README.md","content":"has a keeper.  \n"}`: {"has a keeper.\n", "yes, at the terminal, with other arguments"},
	} {
		dir, store := repository(t), filepath.Join(t.TempDir(), "store")
		got := timed(t, "", "run", keeper, "--dir", dir, "--store", store)
		require.Equal(t, cli.ExitWaiting, got.code, got.out+got.err)
		for _, text := range []string{got.out, timed(t, "", "pending", "--store", store).out} {
			require.Contains(t, text, "│ +This place has a keeper.··\n")
			require.Contains(t, text, "  answers  yes, no REASON, edit ARGUMENTS, always [run|thread] [call|tool|all], times N [call|tool|all]\n")
			require.Contains(t, text, "continue  fixpoint approve "+ticket+" --store "+store+"\n")
			require.Contains(t, text, "       or  fixpoint answer "+ticket+" ANSWER --store "+store+"\n")
		}
		for _, wrong := range []string{"sometimes", "edit", "edit [1]", "times", "times 0", "always forever", "yes indeed", `{"choice":"always","scope":"persistent"}`} {
			refused := timed(t, "", "answer", ticket, wrong, "--store", store)
			require.Equal(t, cli.ExitUsage, refused.code, "%s: %s", wrong, refused.out+refused.err)
			require.Contains(t, refused.err, "is still open")
		}
		got = timed(t, "", "answer", ticket, answer, "--store", store, "--yes")
		require.Equal(t, cli.ExitOK, got.code, got.out+got.err)
		require.Contains(t, got.out, "answer    "+want.says+"\n")
		text, err := os.ReadFile(filepath.Join(dir, "README.md"))
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(string(text), want.readme) || strings.HasSuffix(strings.TrimRight(string(text), "\n"), want.readme), "%s: %s", answer, text)
	}
}
