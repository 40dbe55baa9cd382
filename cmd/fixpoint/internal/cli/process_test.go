package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/cli"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/plugins/audit"
	"github.com/ddd26017/fixpoint/state"
)

// With childEnv set the test binary is the command. It stops for good once it has
// written what childStop names, if that is set, so that a test can kill it there.
const (
	childEnv  = "FIXPOINT_CLI_CHILD"
	childStop = "FIXPOINT_CLI_STOP"
)

func TestMain(m *testing.M) {
	if os.Getenv(notesEnv) != "" {
		os.Exit(notesServer())
	}
	if os.Getenv(childEnv) == "" {
		os.Exit(m.Run())
	}
	out := io.Writer(os.Stdout)
	if text := os.Getenv(childStop); text != "" {
		out = &stopper{to: out, text: text}
	}
	os.Exit(cli.Run(cli.UntilSignal(context.Background()), os.Args[1:], cli.IO{In: os.Stdin, Out: out, Err: os.Stderr}))
}

// stopper blocks for ever once text was written, or that many lines where it is a
// number.
type stopper struct {
	to   io.Writer
	text string
	n    int
}

func (s *stopper) Write(p []byte) (int, error) {
	n, err := s.to.Write(p)
	s.n += bytes.Count(p, []byte("\n"))
	most, notNumber := strconv.Atoi(s.text)
	if notNumber != nil && bytes.Contains(p, []byte(s.text)) || notNumber == nil && s.n >= most {
		select {}
	}
	return n, err
}

// child is the command in a process of its own. Without a terminal nobody answers.
func child(t *testing.T, stop string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	c := exec.Command(self, args...)
	c.Env = append(os.Environ(), childEnv+"=1", childStop+"="+stop)
	return c
}

// process runs the command in a process of its own until it ends.
func process(t *testing.T, args ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	c := child(t, "", args...)
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	if c.ProcessState == nil {
		require.NoError(t, err)
	}
	return outcome{c.ProcessState.ExitCode(), out.String(), errs.String()}
}

// killed runs the command in a process of its own and kills it when it has written
// what stop names.
func killed(t *testing.T, stop string, args ...string) {
	t.Helper()
	c := child(t, stop, args...)
	pipe, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	seen := 0
	most, notNumber := strconv.Atoi(stop)
	for scan := bufio.NewScanner(pipe); scan.Scan(); {
		seen++
		if notNumber != nil && strings.Contains(scan.Text(), stop) || notNumber == nil && seen >= most {
			break
		}
	}
	require.NoError(t, c.Process.Kill(), "it must not have ended")
	require.Error(t, c.Wait())
	require.Equal(t, -1, c.ProcessState.ExitCode(), "it ended by the signal")
}

// settled returns the ids of the calls of a thread whose results are in the store.
func settled(t *testing.T, store string) map[string]bool {
	t.Helper()
	st, err := kept.Open(store)
	require.NoError(t, err)
	defer func() { require.NoError(t, st.Close()) }()
	eng, err := engine.New(engine.Config{Journal: st.Journal})
	require.NoError(t, err)
	th, err := eng.OpenThread(t.Context(), "thread-1")
	require.NoError(t, err)
	calls := map[string]bool{}
	for _, m := range engine.Transcript.Get(th.Snapshot()).All() {
		if m.Result.CallID != "" {
			calls[m.Result.CallID] = true
		}
	}
	for _, c := range engine.ToolCalls.All(th.Snapshot()) {
		if c.Ended {
			calls[c.Call.ID] = true
		}
	}
	return calls
}

// started returns the ids of the calls whose tools ran, by a trace.
func started(t *testing.T, file string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	calls := map[string]int{}
	for _, e := range enginetest.Select[engine.ToolStarted](events(t, string(text))) {
		calls[e.Call.ID]++
	}
	return calls
}

// finish goes on with a killed run in processes of their own, until the report is
// there, and checks that no tool whose result was kept runs again.
func finish(t *testing.T, dir, store string) {
	t.Helper()
	kept, owed := settled(t, store), undelivered(t, store)
	traces := t.TempDir()
	var ran []map[string]int
	goOn := func(name string, args ...string) outcome {
		trace := filepath.Join(traces, name)
		got := process(t, append(args, "--store", store, "--trace", trace)...)
		ran = append(ran, started(t, trace))
		return got
	}
	got := goOn("resume", "resume", "thread-1")
	require.Equal(t, cli.ExitWaiting, got.code, "%s%s", got.out, got.err)
	require.Contains(t, got.out, "fixpoint approve "+reportTicket)
	require.NoFileExists(t, filepath.Join(dir, ".fixpoint", "report.md"))
	got = goOn("approve", "approve", reportTicket)
	require.Equal(t, cli.ExitOK, got.code, "%s%s", got.out, got.err)

	report, err := os.ReadFile(filepath.Join(dir, ".fixpoint", "report.md"))
	require.NoError(t, err)
	golden(t, "report.md", string(report))
	all := map[string]int{} // by the processes after the kill
	for _, calls := range ran {
		for id, n := range calls {
			require.False(t, kept[id], "%s ran again though its result was kept", id)
			require.Equal(t, 1, n, id)
			all[id] += n
		}
	}
	require.Equal(t, 1, all["report"], "%v", all)
	written := lineIDs(t, dir)
	for id, call := range owed {
		require.Equal(t, call, written[id], "the effect %s was committed before the kill and is lost", id)
	}
	require.Empty(t, undelivered(t, store))
	require.Equal(t, cli.ExitOK, process(t, "verify", "--store", store).code)
}

// undelivered returns the audit effects in the outbox of a store: the ids, and the calls
// that they are about. It looks at a copy, and leaves the store as it is.
func undelivered(t *testing.T, store string) map[string]string {
	t.Helper()
	copied := t.TempDir()
	require.NoError(t, os.CopyFS(copied, os.DirFS(store)))
	st, err := kept.Open(copied)
	require.NoError(t, err)
	defer func() { require.NoError(t, st.Close()) }()
	owed := map[string]string{}
	eng, err := engine.New(engine.Config{Journal: st.Journal, Plugins: []engine.Plugin{engine.NewPlugin("look", func(r *engine.Registrar) error {
		r.Effect(audit.Record.Handle(func(ctx context.Context, _ *state.Snapshot, e audit.Entry) error {
			id, _ := effects.IDFrom(ctx)
			owed[id.String()] = e.Call
			return nil
		}))
		return nil
	})}})
	require.NoError(t, err)
	_, err = eng.DeliverOutbox(t.Context())
	require.NoError(t, err)
	return owed
}

// lineIDs returns the ids in the audit file, and the calls that they are about.
func lineIDs(t *testing.T, dir string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, ".fixpoint", "audit.jsonl"))
	require.NoError(t, err)
	ids := map[string]string{}
	for line := range strings.Lines(string(text)) {
		var e struct{ ID, Call string }
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		ids[e.ID] = e.Call
	}
	return ids
}

// Capability B7. Effects that were committed before a kill -9 are delivered by the
// second process, under the ids that they had, and only those that were not before.
func TestEffectsOfAKilledProcess(t *testing.T) {
	t.Parallel()
	dir, store := garden(t), t.TempDir()
	file := filepath.Join(dir, ".fixpoint", "audit.jsonl")
	require.NoError(t, os.MkdirAll(file, 0o755)) // a folder, so that no line can be written
	trace := filepath.Join(t.TempDir(), "trace")
	killed(t, "continue  fixpoint approve", "run", "--dir", dir, "--store", store, "--trace", trace)
	text, err := os.ReadFile(trace)
	require.NoError(t, err)
	failed := map[string]bool{}
	for _, e := range enginetest.Select[engine.EffectFinished](events(t, string(text))) {
		require.NotEmpty(t, e.Error)
		failed[e.ID.String()] = true
	}
	require.Len(t, failed, 10)
	require.Len(t, undelivered(t, store), 10)

	require.NoError(t, os.Remove(file))
	got := process(t, "approve", reportTicket, "--store", store)
	require.Equal(t, cli.ExitOK, got.code, "%s%s", got.out, got.err)
	require.Contains(t, got.out, "   outbox  10 delivered that an earlier process left behind\n")
	written := lineIDs(t, dir)
	for id := range failed {
		require.Contains(t, written, id)
	}
	require.Len(t, written, 12, "those, and the report and the end of the run")
	lines, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, 12, bytes.Count(lines, []byte("\n")), "none is there twice")
	require.Empty(t, undelivered(t, store))
}

// What one thread left behind is written where that thread works, whichever run it is
// delivered by.
func TestEffectsOfAnotherThread(t *testing.T) {
	t.Parallel()
	dir, other, store := garden(t), garden(t), t.TempDir()
	file := filepath.Join(dir, ".fixpoint", "audit.jsonl")
	require.NoError(t, os.MkdirAll(file, 0o755))
	paused(t, dir, store, "-q")
	require.NoError(t, os.Remove(file))
	got := fixpoint(t, "", "run", "--dir", other, "--store", store, "--yes")
	require.Equal(t, cli.ExitOK, got.code, got.err)
	require.Contains(t, got.out, "outbox  10 delivered")
	require.Len(t, lineIDs(t, dir), 10)
	require.Len(t, lineIDs(t, other), 12)

	// Where they cannot be delivered they are told, and wait.
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.MkdirAll(file, 0o755))
	got = fixpoint(t, "", "approve", "thread-1", "--store", store, "-q")
	require.Equal(t, cli.ExitOK, got.code, got.err)
	got = fixpoint(t, "", "run", "--dir", other, "--store", store, "--yes", "-q")
	require.Equal(t, cli.ExitOK, got.code, got.err)
	require.Contains(t, got.out, "   outbox  2 could not be delivered; a later start tries again\n")
}

// Capability A14. Capability A18. The steward is stopped by kill -9 while it waits
// at its approval, and approved and finished by a second process.
func TestKilledAtItsApproval(t *testing.T) {
	t.Parallel()
	dir, store := garden(t), t.TempDir()
	killed(t, "continue  fixpoint approve", "run", "--dir", dir, "--store", store)
	require.Len(t, settled(t, store), 10)
	trace := filepath.Join(t.TempDir(), "trace")
	got := process(t, "approve", reportTicket, "--store", store, "--trace", trace)
	require.Equal(t, cli.ExitOK, got.code, "%s%s", got.out, got.err)
	require.Equal(t, map[string]int{"report": 1}, started(t, trace))
	report, err := os.ReadFile(filepath.Join(dir, ".fixpoint", "report.md"))
	require.NoError(t, err)
	golden(t, "report.md", string(report))
	for id, n := range audited(t, dir) {
		require.Equal(t, 1, n, "%s ran more than once", id)
	}
	require.Len(t, lineIDs(t, dir), 12, "11 calls and the end of the run")
	require.Empty(t, undelivered(t, store))
}

// Without a kill the exit codes are 3 and 0.
func TestApprovedByAnotherProcess(t *testing.T) {
	t.Parallel()
	dir, store := garden(t), t.TempDir()
	got := process(t, "run", "--dir", dir, "--store", store)
	require.Equal(t, cli.ExitWaiting, got.code, "%s%s", got.out, got.err)
	got = process(t, "approve", reportTicket, "--store", store)
	require.Equal(t, cli.ExitOK, got.code, "%s%s", got.out, got.err)
	require.FileExists(t, filepath.Join(dir, ".fixpoint", "report.md"))
}

// Capability A18. The steward is stopped by kill -9 while it works, wherever that
// may be, and gone on with by a second process.
func TestKilledAtWork(t *testing.T) {
	t.Parallel()
	for _, lines := range []int{6, 8, 14, 25, 41, 55, 70, 85} {
		dir, store := garden(t), t.TempDir()
		killed(t, strconv.Itoa(lines), "run", "--dir", dir, "--store", store)
		finish(t, dir, store)
	}
}
