//go:build unix

package cli_test

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/cli"
)

// stuck starts a worker on the steward and waits until it is in mid-run: an effect of a tool
// call does not return, because the pipe that it writes to is full. Reading lets it go on.
func stuck(t *testing.T, dir, store string, args ...string) (*workerProcess, *os.File) {
	t.Helper()
	audit := filepath.Join(dir, ".fixpoint", "audit.jsonl")
	require.NoError(t, os.Mkdir(filepath.Dir(audit), 0o755))
	require.NoError(t, syscall.Mkfifo(audit, 0o600))
	fd, err := syscall.Open(audit, syscall.O_RDWR|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	require.NoError(t, err)
	pipe := os.NewFile(uintptr(fd), audit)
	t.Cleanup(func() { _ = pipe.Close() })
	for _, size := range []int{4096, 1} {
		for err = nil; err == nil; {
			_, err = syscall.Write(fd, make([]byte, size))
		}
		require.ErrorIs(t, err, syscall.EAGAIN)
	}
	submit(t, store, "thread-1", gardenPrompt, "--agent", "steward")
	w := startWorker(t, append(args, "--store", store, "--dir", dir, "--verbose")...)
	// The first call has run, and its line is committed but does not get out.
	w.until(t, "tool_started")
	w.until(t, "after_tool_execute")
	w.until(t, "committed")
	return w, pipe
}

// finished has others do what is left of the steward's run, and checks that it was done
// once, but for calls that were cut off.
func finished(t *testing.T, dir, store string, cutOff ...string) {
	t.Helper()
	untilIdle(t, store, "--dir", dir, "--lease", "2s")
	require.Equal(t, "waiting step 5 steward 1 open ticket", threads(t, store)["thread-1"])
	require.Equal(t, cli.ExitOK, fixpoint(t, "", "approve", "thread-1", "--store", store).code)
	untilIdle(t, store, "--dir", dir)
	require.Equal(t, "done step 6 steward natural", threads(t, store)["thread-1"])
	report, err := os.ReadFile(filepath.Join(dir, ".fixpoint", "report.md"))
	require.NoError(t, err)
	golden(t, "report.md", string(report))
	// A line may be there twice, with the same id, where its writer died before it said so.
	// Under two ids there may be that of a call whose AfterToolExecute was cut off: the phase
	// begins again, and its hooks emit again, while the call does not run again.
	lines := map[string]int{}
	for _, call := range lineIDs(t, dir) {
		if call != "" {
			lines[call]++
		}
	}
	for call, n := range lines {
		most := 1
		if slices.Contains(cutOff, call) {
			most = 2
		}
		require.LessOrEqual(t, n, most, "lines of %q", call)
	}
}

// Capability A18. A worker is killed in the middle of a step, and another one goes on with
// the run once its lease has run out.
func TestKilledWorker(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store string) {
		dir := garden(t)
		w, pipe := stuck(t, dir, store, "--lease", "2s")
		require.Equal(t, -1, w.end(t, syscall.SIGKILL))
		require.NoError(t, pipe.Close())
		require.NoError(t, os.Remove(filepath.Join(dir, ".fixpoint", "audit.jsonl")))
		require.Contains(t, threads(t, store)["thread-1"], "running ")
		finished(t, dir, store, "list")
	})
}

// A worker that is told to end leaves what it is at after its last commit, or ends it, and
// loses nothing.
func TestDrained(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store string) {
		dir := garden(t)
		w, pipe := stuck(t, dir, store)
		require.NoError(t, w.cmd.Process.Signal(syscall.SIGTERM))
		w.until(t, "msg=ending")
		go func() { _, _ = io.Copy(io.Discard, pipe) }() // until it is closed
		for range w.lines {
		}
		_ = w.cmd.Wait()
		require.Equal(t, cli.ExitOK, w.cmd.ProcessState.ExitCode(), w.text())
		require.Contains(t, w.text(), "msg=ended")
		require.NoError(t, os.Remove(filepath.Join(dir, ".fixpoint", "audit.jsonl")))
		finished(t, dir, store)
	})
}

// The second signal ends a worker that waits for a run.
func TestEndedAtOnce(t *testing.T) {
	t.Parallel()
	dir, store := garden(t), filepath.Join(t.TempDir(), "store")
	w, _ := stuck(t, dir, store)
	require.NoError(t, w.cmd.Process.Signal(syscall.SIGTERM))
	w.until(t, "msg=ending")
	require.Equal(t, -1, w.end(t, syscall.SIGTERM), "it ended by the signal")
}
