package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/cli"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/engine"
)

// history returns the commits of a thread, newest first.
func history(t *testing.T, store, thread string) []engine.Revision {
	t.Helper()
	got := fixpoint(t, "", "history", thread, "--json", "--store", store)
	require.Equal(t, cli.ExitOK, got.code, got.err)
	var all []engine.Revision
	require.NoError(t, json.Unmarshal([]byte(got.out), &all))
	return all
}

var when = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`)

// Capability B3. The past of a thread is listed, also of what an earlier process did.
func TestHistory(t *testing.T) {
	dir, store := garden(t), t.TempDir()
	paused(t, dir, store, "-q")
	got := fixpoint(t, "", "history", "thread-1", "--store", store)
	require.Equal(t, cli.ExitOK, got.code, got.err)
	golden(t, "history.txt", when.ReplaceAllString(got.out, "WHEN"))
	all := history(t, store, "thread-1")
	require.Len(t, all, strings.Count(got.out, "\n"))
	for i, r := range all {
		require.Equal(t, uint64(len(all)-i), r.Revision)
		require.WithinDuration(t, time.Now(), r.Time, time.Hour)
	}
	require.Equal(t, cli.ExitOK, fixpoint(t, "", "approve", "report", "--store", store).code)
	later := history(t, store, "thread-1")
	require.Equal(t, all, later[len(later)-len(all):], "what was stays")
}

// Capability B3. Two revisions are compared value by value.
func TestDiff(t *testing.T) {
	dir, store := garden(t), t.TempDir()
	paused(t, dir, store, "-q")
	newest := history(t, store, "thread-1")[0].Revision
	got := fixpoint(t, "", "diff", "thread-1", "3", fmt.Sprint(newest), "--store", store)
	require.Equal(t, cli.ExitOK, got.code, got.err)
	golden(t, "diff.txt", strings.ReplaceAll(got.out, dir, "DIR"))
	for line := range strings.Lines(got.out) {
		require.Less(t, len([]rune(line)), 180)
	}
	back := fixpoint(t, "", "diff", "thread-1", fmt.Sprint(newest), "3", "--store", store)
	require.Equal(t, strings.Count(got.out, "\n"), strings.Count(back.out, "\n"))
	require.Equal(t, "nothing differs\n", fixpoint(t, "", "diff", "thread-1", "5", "5", "--store", store).out)
	require.Equal(t, "[]\n", fixpoint(t, "", "diff", "thread-1", "5", "5", "--json", "--store", store).out)

	got = fixpoint(t, "", "diff", "thread-1", "0", "1", "--json", "--store", store)
	require.Equal(t, cli.ExitOK, got.code, got.err)
	var all []engine.KeyDiff
	require.NoError(t, json.Unmarshal([]byte(got.out), &all))
	require.Len(t, all, 1)
	require.Equal(t, kept.Key.Name(), all[0].Key)
}

// Capability B3. A fork goes on by itself and asks again, and the thread that it comes
// from stays as it was.
func TestFork(t *testing.T) {
	dir, store := garden(t), t.TempDir()
	paused(t, dir, store, "-q")
	all := history(t, store, "thread-1")
	middle := ""
	for _, r := range all {
		if r.Step == 3 && middle == "" { // the end of step 3
			middle = strconv.FormatUint(r.Revision, 10)
		}
	}
	newest := strconv.FormatUint(all[0].Revision, 10)
	for id, at := range map[string]string{"start": "1", "middle": middle, "newest": newest} {
		got := fixpoint(t, "", "fork", "thread-1", at, "--id", id, "--store", store)
		require.Equal(t, cli.ExitOK, got.code, got.err)
		require.Equal(t, id+" begins as thread-1 was at revision "+at+": running\ncontinue with: fixpoint resume "+id+" --store "+store+"\n", got.out)
		require.Contains(t, fixpoint(t, "", "threads", "--store", store).out, "steward  forked; resume goes on with it\n")
		got = fixpoint(t, "", "run", "--dir", dir, "--store", store, "--thread", id)
		require.Equal(t, cli.ExitUsage, got.code, "its run has not ended")

		got = fixpoint(t, "", "resume", id, "--store", store, "-q")
		require.Equal(t, cli.ExitWaiting, got.code, got.out+got.err)
		own := id + ".run-1/5/report/1"
		require.Contains(t, got.out, "   ticket  "+own+"\n", "it asks again, by its own name")
		got = fixpoint(t, "", "approve", own, "--store", store, "-q")
		require.Equal(t, cli.ExitOK, got.code, got.out+got.err)
		report, err := os.ReadFile(filepath.Join(dir, ".fixpoint", "report.md"))
		require.NoError(t, err)
		golden(t, "report.md", string(report))
		require.NoError(t, os.Remove(filepath.Join(dir, ".fixpoint", "report.md")))
	}
	require.Equal(t, all, history(t, store, "thread-1"), "the original is only read")
	require.Contains(t, fixpoint(t, "", "pending", "--store", store).out, reportTicket)
	got := fixpoint(t, "", "approve", reportTicket, "--store", store, "-q")
	require.Equal(t, cli.ExitOK, got.code, got.err)

	// One of a run that has ended waits for the next run.
	newest = strconv.FormatUint(history(t, store, "thread-1")[0].Revision, 10)
	got = fixpoint(t, "", "fork", "thread-1", newest, "--store", store)
	require.Equal(t, "thread-2 begins as thread-1 was at revision "+newest+": done\n", got.out, got.err)
	got = fixpoint(t, "", "run", "--dir", dir, "--store", store, "--thread", "thread-2", "-q", "--yes")
	require.Equal(t, cli.ExitOK, got.code, got.out+got.err)
	require.Equal(t, 2, strings.Count(got.out, "   report  "), "it has what the first run did, and the script began anew")
	require.Contains(t, fixpoint(t, "", "history", "thread-2", "--store", store).out, "thread-2.run-2")
	require.Equal(t, cli.ExitOK, fixpoint(t, "", "verify", "--store", store).code)
}

// What was pruned is gone, and the thread goes on all the same.
func TestPrune(t *testing.T) {
	dir, store := garden(t), t.TempDir()
	paused(t, dir, store, "-q")
	all := history(t, store, "thread-1")
	got := fixpoint(t, "", "prune", "thread-1", "--older", "1h", "--store", store)
	require.Equal(t, cli.ExitOK, got.code, got.err)
	require.Equal(t, fmt.Sprintf("thread-1: 0 of %d revisions dropped\n", len(all)), got.out)
	got = fixpoint(t, "", "prune", "thread-1", "--keep", "2", "--store", store)
	require.Equal(t, cli.ExitOK, got.code, got.err)
	left := history(t, store, "thread-1")
	require.Equal(t, fmt.Sprintf("thread-1: %d of %d revisions dropped\n", len(all)-len(left), len(all)), got.out)
	require.Less(t, len(left), len(all))
	require.Equal(t, all[0], left[0])
	got = fixpoint(t, "", "fork", "thread-1", "3", "--store", store)
	require.Equal(t, cli.ExitUsage, got.code)
	require.Contains(t, got.err, "does not hold that revision")
	got = fixpoint(t, "", "approve", "report", "--store", store)
	require.Equal(t, cli.ExitOK, got.code, got.err)
	got = fixpoint(t, "", "prune", "thread-1", "--older", "0s", "--store", store)
	require.Equal(t, cli.ExitOK, got.code, got.err)
	require.Len(t, history(t, store, "thread-1"), 1)
	require.Equal(t, "thread-1  done  step 6  steward  natural\n", fixpoint(t, "", "threads", "--store", store).out)
}

// A deleted thread leaves nothing in the store, and the others alone.
func TestDelete(t *testing.T) {
	store := asking(t, `{"kind":"secret"}`)
	st, err := kept.Open(store)
	require.NoError(t, err)
	mine, err := st.Vault.Keep(t.Context(), "thread-1", "hunter2")
	require.NoError(t, err)
	other, err := st.Vault.Keep(t.Context(), "thread-2", "swordfish")
	require.NoError(t, err)
	require.NoError(t, st.Close())
	paused2 := fixpoint(t, "", "run", "--dir", garden(t), "--store", store)
	require.Equal(t, cli.ExitWaiting, paused2.code, paused2.err)

	got := fixpoint(t, "", "delete", "thread-1", "--store", store)
	require.Equal(t, cli.ExitOK, got.code, got.err)
	require.Equal(t, "thread-1 is deleted; it was waiting\n", got.out)
	require.Equal(t, "thread-2  waiting  step 5  steward  1 open ticket\n", fixpoint(t, "", "threads", "--store", store).out)
	require.NoFileExists(t, filepath.Join(kept.VaultFolder(store), mine))
	require.FileExists(t, filepath.Join(kept.VaultFolder(store), other))
	require.Equal(t, cli.ExitUsage, fixpoint(t, "", "delete", "thread-1", "--store", store).code)
	require.Contains(t, fixpoint(t, "", "verify", "--store", store).out, "is sound: 1 threads")

	// Its id is not used again, so that no old ticket is a new one.
	require.Equal(t, cli.ExitOK, fixpoint(t, "", "delete", "thread-2", "--store", store).code)
	next := fixpoint(t, "", "run", "--dir", garden(t), "--store", store)
	require.Contains(t, next.out, "   thread  thread-3\n")
}
