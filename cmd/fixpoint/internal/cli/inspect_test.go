package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/cli"
	"github.com/ddd26017/fixpoint/plugins/trace/recording"
)

// traced runs the steward with a trace and returns it.
func traced(t *testing.T) (dir, trace string) {
	t.Helper()
	dir, trace = garden(t), filepath.Join(t.TempDir(), "trace.jsonl")
	got := fixpoint(t, "y\n", "run", agent, "--dir", dir, "--trace", trace, "-q")
	require.Equal(t, cli.ExitOK, got.code, got.err)
	return dir, trace
}

// asked is what commands say, each behind its arguments.
func asked(t *testing.T, dir string, all ...[]string) string {
	t.Helper()
	var out strings.Builder
	for _, args := range all {
		got := fixpoint(t, "", args...)
		require.Equal(t, cli.ExitOK, got.code, "%v: %s", args, got.err)
		for i, a := range args {
			if filepath.IsAbs(a) {
				args[i] = "PATH"
			}
		}
		out.WriteString("$ fixpoint " + strings.Join(args, " ") + "\n" + normal(got.out, dir) + "\n")
	}
	return out.String()
}

// Capability B2. fixpoint explain says of a key at a revision who wrote it, where, over
// what, and who lost a conflict over it.
func TestExplain(t *testing.T) {
	dir, trace := traced(t)
	golden(t, "explain.txt", asked(t, dir,
		[]string{"explain", trace, "headline"},
		[]string{"explain", trace, "headline@26"},
		[]string{"explain", trace, "headline@22"},
		[]string{"explain", trace, "census.levels[2]"},
		[]string{"explain", trace, "census.levels[2]@4", "--run", "run-1", "--thread", "thread-1"},
		[]string{"explain", trace, "fixpoint.lifecycle@1"},
	))
	got := fixpoint(t, "", "explain", trace, "headline", "--json")
	require.Equal(t, cli.ExitOK, got.code, got.err)
	var x recording.Explanation
	require.NoError(t, json.Unmarshal([]byte(got.out), &x))
	require.NotZero(t, x.Revision)
	require.NotEmpty(t, x.Writers)
}

// Capability B5. fixpoint why tells the whole decision about a call.
func TestWhy(t *testing.T) {
	dir, trace := traced(t)
	golden(t, "why.txt", asked(t, dir,
		[]string{"why", trace, "report"},
		[]string{"why", trace, "run-1/4/again"},
		[]string{"why", trace, "list_files"},
	))
	got := fixpoint(t, "", "why", trace, "again", "--json")
	require.Equal(t, cli.ExitOK, got.code, got.err)
	var all []recording.Decision
	require.NoError(t, json.Unmarshal([]byte(got.out), &all))
	require.Len(t, all, 1)
	require.Equal(t, "blocked", all[0].Call.Outcome)
}

// A store answers what it can, and says what it cannot.
func TestExplainAndWhyOfAStore(t *testing.T) {
	dir, store := garden(t), t.TempDir()
	paused(t, dir, store, "-q")
	got := fixpoint(t, "", "approve", "report", "--store", store, "-q")
	require.Equal(t, cli.ExitOK, got.code, got.err)
	golden(t, "explain-store.txt", asked(t, dir,
		[]string{"explain", "--store", store, "census.levels[2]"},
		[]string{"explain", "--store", store, "headline", "--thread", "thread-1"},
		[]string{"why", "--store", store, "report"},
		[]string{"why", "--store", store, "again"},
	))
	got = fixpoint(t, "", "why", "--store", store, "report")
	require.Contains(t, got.err, "note: of a run without a trace the store tells what each commit changed and when, not who wrote it")

	// With a trace beside it, it knows all.
	trace := filepath.Join(t.TempDir(), "trace.jsonl")
	got = fixpoint(t, "", "run", "--dir", dir, "--store", store, "--yes", "-q", "--trace", trace)
	require.Equal(t, cli.ExitOK, got.code, got.err)
	got = fixpoint(t, "", "explain", "--store", store, "headline", "--thread", "thread-2")
	require.Equal(t, cli.ExitOK, got.code, got.err)
	require.Contains(t, got.out, "Hook outline/step_end/0 wrote it")
	got = fixpoint(t, "", "explain", "--store", store, "headline")
	require.Equal(t, cli.ExitUsage, got.code)
	require.Contains(t, got.err, "--thread")
}

// What cannot be answered says why, and what to do.
func TestWrongQuestions(t *testing.T) {
	_, trace := traced(t)
	folder := t.TempDir()
	notes := filepath.Join(folder, "notes.md")
	require.NoError(t, os.WriteFile(notes, []byte("# Notes\n"), 0o644))
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"explain"}, "name a trace, or a store with --store; see fixpoint explain --help"},
		{[]string{"explain", trace}, "explain takes TRACE KEY[@REVISION], got 1 arguments"},
		{[]string{"explain", "--store", folder}, "explain takes KEY[@REVISION], got 0 arguments"},
		{[]string{"explain", trace, "nothing"}, "unknown key “nothing”; there are "},
		{[]string{"explain", trace, "headline@x"}, `"x" is no revision`},
		{[]string{"explain", trace, "headline@0"}, `"0" is no revision`},
		{[]string{"explain", trace, "headline@999999"}, "999999"},
		{[]string{"explain", trace, "census.levels[nothing]"}, "nothing"},
		{[]string{"explain", trace, "headline[]"}, "names no entry"},
		{[]string{"explain", trace, "@3"}, "names no key"},
		{[]string{"explain", trace, "headline", "--thread", "other"}, "other"},
		{[]string{"why", trace, "nothing"}, "unknown call “nothing”; there are "},
		{[]string{"why", trace}, "why takes TRACE CALL"},
		{[]string{"explain", notes, "key"}, "notes.md is no trace: trace: line 1:"},
		{[]string{"explain", notes + ".none", "key"}, "notes.md.none"},
		{[]string{"explain", "--store", folder, "key"}, "there is no store in " + folder},
		{[]string{"inspect"}, "name a trace, or a store with --store"},
		{[]string{"inspect", trace, trace}, "inspect takes TRACE, got 2 arguments"},
		{[]string{"inspect", trace, "--store", folder}, "inspect takes no arguments"},
		{[]string{"inspect", trace, "--addr", "0.0.0.0:0"}, "for this machine only"},
		{[]string{"inspect", trace, "--addr", ":8080"}, "for this machine only"},
		{[]string{"inspect", notes}, "notes.md is no trace: trace: line 1:"},
		{[]string{"inspect", notes + ".none"}, "notes.md.none"},
		{[]string{"inspect", "--store", folder}, "there is no store in " + folder},
		{[]string{"inspect", trace, "--html", filepath.Join(folder, "none", "x.html")}, "--html: "},
		{[]string{"inspect", trace, "--html", ""}, "--html needs a file"},
		{[]string{"inspect", trace, "--html", "x.html", "--addr", "127.0.0.1:0"}, "none of the others can be"},
	} {
		got := fixpoint(t, "", c.args...)
		require.Equal(t, cli.ExitUsage, got.code, "%v %s%s", c.args, got.out, got.err)
		require.Contains(t, got.err, c.says, "%v", c.args)
		require.Empty(t, got.out)
	}
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, files, 1, "nothing is left behind")
}

// Shells complete the name of the trace, and no file behind it.
func TestCompleteTrace(t *testing.T) {
	for _, name := range []string{"inspect", "explain", "why"} {
		require.Equal(t, ":0\n", fixpoint(t, "", "__complete", name, "").out)
		require.Equal(t, ":4\n", fixpoint(t, "", "__complete", name, "trace", "").out)
		require.Equal(t, ":4\n", fixpoint(t, "", "__complete", name, "--store", "runs", "").out)
	}
}

var viewOf = regexp.MustCompile(`(?s)<script type="application/json" id="view">(.*?)</script>`)

// fixpoint inspect --html writes the page as one file with all that the trace tells.
func TestInspectHTML(t *testing.T) {
	_, trace := traced(t)
	file := filepath.Join(t.TempDir(), "page.html")
	require.NoError(t, os.WriteFile(file, []byte("old"), 0o644))
	got := fixpoint(t, "", "inspect", trace, "--html", file)
	require.Equal(t, cli.ExitOK, got.code, got.err)
	require.Equal(t, file+"\n", got.out)
	page, err := os.ReadFile(file)
	require.NoError(t, err)
	var v recording.View
	require.NoError(t, json.Unmarshal(viewOf.FindSubmatch(page)[1], &v))
	require.Len(t, v.Runs, 1)
	require.Equal(t, "done", v.Runs[0].Status)
	require.Len(t, v.Calls, 11)
	require.False(t, v.Live)
	got = fixpoint(t, "", "inspect", trace, "--html", "-")
	require.Equal(t, cli.ExitOK, got.code, got.err)
	require.Equal(t, string(page), got.out)
}

// A store shows its threads, what they wait for, and those that began as others were.
func TestInspectStore(t *testing.T) {
	dir, store := garden(t), t.TempDir()
	paused(t, dir, store, "-q")
	newest := history(t, store, "thread-1")[0].Revision
	got := fixpoint(t, "", "fork", "thread-1", fmt.Sprint(newest), "--store", store)
	require.Equal(t, cli.ExitOK, got.code, got.err)
	got = fixpoint(t, "", "inspect", "--store", store, "--html", "-")
	require.Equal(t, cli.ExitOK, got.code, got.err)
	var v recording.View
	require.NoError(t, json.Unmarshal([]byte(viewOf.FindStringSubmatch(got.out)[1]), &v))
	require.Len(t, v.Runs, 2)
	for i, id := range []string{"thread-1.run-1", "thread-2.run-1"} {
		require.Equal(t, id, v.Runs[i].ID)
		require.Equal(t, "waiting", v.Runs[i].Status)
	}
	report := v.Calls[10]
	require.Equal(t, "report", report.Call)
	require.Equal(t, "waiting", report.Status)
	require.Equal(t, reportTicket, report.Tickets[0].ID)
	require.Len(t, v.Notes, 2)
	require.Contains(t, v.Notes[1], "of thread thread-2 nothing is kept before revision")
}

// Ctrl-C ends the inspector, and that is no error.
func TestInspectServes(t *testing.T) {
	_, trace := traced(t)
	ctx, cancel := context.WithCancel(t.Context())
	out, to := io.Pipe()
	var errs bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(ctx, []string{"inspect", trace}, cli.IO{In: strings.NewReader(""), Out: to, Err: &errs})
		_ = to.Close()
	}()
	address := make([]byte, 200)
	n, err := out.Read(address)
	require.NoError(t, err)
	url, rest, _ := strings.Cut(string(address[:n]), "\n")
	require.Equal(t, "shows "+trace+"; Ctrl-C ends it\n", rest)
	got, err := http.Get(url + "view.json")
	require.NoError(t, err)
	var v recording.View
	require.NoError(t, json.NewDecoder(got.Body).Decode(&v))
	require.NoError(t, got.Body.Close())
	require.True(t, v.Live)
	require.Equal(t, "done", v.Runs[0].Status)
	http.DefaultClient.CloseIdleConnections()
	cancel()
	require.Equal(t, cli.ExitOK, <-ended)
	require.Empty(t, errs.String())
}
