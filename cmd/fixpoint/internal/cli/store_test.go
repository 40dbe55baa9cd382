package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/cli"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/store/bolt"
)

// reportTicket is the question of the steward's run on the garden.
const reportTicket = "thread-1.run-1/5/report/1"

// paused runs the steward in a store until it waits.
func paused(t *testing.T, dir, store string, args ...string) {
	t.Helper()
	got := fixpoint(t, "", append([]string{"run", "--dir", dir, "--store", store}, args...)...)
	require.Equal(t, cli.ExitWaiting, got.code, got.err)
	require.Contains(t, got.out, "   ticket  "+reportTicket+"\n")
	require.Contains(t, got.out, " continue  fixpoint approve "+reportTicket+" --store "+store+"\n")
	require.NoFileExists(t, filepath.Join(dir, ".fixpoint", "report.md"))
}

// Capability A14. A run that waits for an approval stops, says how to go on, and is
// gone on with by commands of their own.
func TestApprove(t *testing.T) {
	dir, store := garden(t), t.TempDir()
	paused(t, dir, store)

	pending := fixpoint(t, "", "pending", "--store", store)
	require.Equal(t, cli.ExitOK, pending.code, pending.err)
	golden(t, "pending.txt", strings.ReplaceAll(pending.out, store, "STORE"))
	pending = fixpoint(t, "", "pending", "--json", "--store", store)
	require.Equal(t, cli.ExitOK, pending.code, pending.err)
	golden(t, "pending.json", pending.out)
	require.Equal(t, "thread-1  waiting  step 5  steward  1 open ticket\n", fixpoint(t, "", "threads", "--store", store).out)

	resumed := fixpoint(t, "", "resume", "thread-1", "--store", store)
	require.Equal(t, cli.ExitWaiting, resumed.code, "a decision is needed")
	require.Contains(t, resumed.out, reportTicket)

	got := fixpoint(t, "", "approve", reportTicket, "--store", store, "--reason", "as agreed")
	require.Equal(t, cli.ExitOK, got.code, got.err)
	golden(t, "approve.txt", normal(got.out, dir))
	report, err := os.ReadFile(filepath.Join(dir, ".fixpoint", "report.md"))
	require.NoError(t, err)
	golden(t, "report.md", string(report))

	require.Equal(t, "thread-1  done  step 6  steward  natural\n", fixpoint(t, "", "threads", "--store", store).out)
	require.Equal(t, "  pending  nothing: no run waits for an answer\n", fixpoint(t, "", "pending", "--store", store).out)
	require.Equal(t, "[]\n", fixpoint(t, "", "pending", "--store", store, "--json").out)
	sound := fixpoint(t, "", "verify", "--store", store)
	require.Equal(t, cli.ExitOK, sound.code, sound.err)
	require.Contains(t, sound.out, "is sound: 1 threads")
}

// A decision that comes again is known, and changes nothing.
func TestApproveTwice(t *testing.T) {
	dir, store := garden(t), t.TempDir()
	paused(t, dir, store, "-q")
	require.Equal(t, cli.ExitOK, fixpoint(t, "", "approve", reportTicket, "--store", store).code)
	audit, err := os.ReadFile(filepath.Join(dir, ".fixpoint", "audit.jsonl"))
	require.NoError(t, err)
	before := revisionOf(t, store)

	again := fixpoint(t, "", "approve", reportTicket, "--store", store)
	require.Equal(t, cli.ExitOK, again.code, again.err)
	require.Equal(t, " approved  already: ticket "+reportTicket+"; nothing was changed\n      run  thread-1.run-1 is done\n", again.out)
	require.Equal(t, before, revisionOf(t, store))
	same, err := os.ReadFile(filepath.Join(dir, ".fixpoint", "audit.jsonl"))
	require.NoError(t, err)
	require.Equal(t, string(audit), string(same))

	for _, late := range [][]string{{"deny", reportTicket}, {"answer", reportTicket, "1"}} {
		got := fixpoint(t, "", append(late, "--store", store)...)
		require.Equal(t, cli.ExitUsage, got.code)
		require.Contains(t, got.err, "is not open any more")
		require.Empty(t, got.out)
	}
	require.Equal(t, before, revisionOf(t, store))
}

// revisionOf returns the revision at which the journal has the first thread.
func revisionOf(t *testing.T, store string) uint64 {
	t.Helper()
	st, err := kept.Open(store)
	require.NoError(t, err)
	image, err := st.Journal.Load(t.Context(), "thread-1", 0)
	require.NoError(t, err)
	require.NoError(t, st.Close())
	return image.Revision
}

// Who denies is heard by the model, and the run has its end.
func TestDeny(t *testing.T) {
	dir, store := garden(t), t.TempDir()
	paused(t, dir, store, "-q")
	got := fixpoint(t, "", "deny", "report", "--store", store, "--reason", "not today")
	require.Equal(t, cli.ExitOK, got.code, got.err)
	require.Contains(t, got.out, "answer  I have a report, but it was not written: denied: not today")
	require.NoFileExists(t, filepath.Join(dir, ".fixpoint", "report.md"))
}

func TestAnswer(t *testing.T) {
	dir, store := garden(t), t.TempDir()
	paused(t, dir, store, "-q")
	for value, says := range map[string]string{"sometimes": "is not JSON", "": "is not JSON", `"sometimes"`: `"sometimes" is not among the choices ["once" "always"]; ticket ` + reportTicket + " is still open"} {
		got := fixpoint(t, "", "answer", "thread-1", value, "--store", store)
		require.Equal(t, cli.ExitUsage, got.code)
		require.Contains(t, got.err, says)
	}
	got := fixpoint(t, "", "answer", "thread-1", "always", "--store", store)
	require.Equal(t, cli.ExitOK, got.code, got.err)
	require.FileExists(t, filepath.Join(dir, ".fixpoint", "report.md"))
	got = fixpoint(t, "", "answer", reportTicket, `"always"`, "--store", store)
	require.Contains(t, got.out, "answered  already")
}

// twoReports is an agent with two questions in one step.
func twoReports(t *testing.T) string {
	return specFile(t, "id: twin\nmodel_id: script:script.json\nsections:\n  permission: {ask: ['kind:write']}\n", `{"answers": [
		{"tool_calls": [{"id": "one", "tool": "write_report", "args": {"content": "1"}}, {"id": "two", "tool": "write_report", "args": {"content": "2"}}]},
		{"text": "both are in"}]}`)
}

// A run with several questions waits until all are answered, and a decision has to
// say which it is about.
func TestSeveralTickets(t *testing.T) {
	store := t.TempDir()
	got := fixpoint(t, "", "run", twoReports(t), "--dir", garden(t), "--store", store, "--thread", "twins")
	require.Equal(t, cli.ExitWaiting, got.code, got.err)
	require.Equal(t, 2, strings.Count(got.out, " continue  fixpoint approve "))

	got = fixpoint(t, "", "approve", "twins", "--store", store)
	require.Equal(t, cli.ExitUsage, got.code)
	require.Contains(t, got.err, `several tickets are meant by "twins"; name one of twins.run-1/1/one/1, twins.run-1/1/two/1`)
	got = fixpoint(t, "", "approve", "one", "--store", store)
	require.Equal(t, cli.ExitWaiting, got.code, got.err)
	require.Contains(t, got.out, "ticket  twins.run-1/1/two/1")
	again := fixpoint(t, "", "approve", "twins.run-1/1/one/1", "--store", store)
	require.Equal(t, cli.ExitWaiting, again.code, again.err)
	require.Contains(t, again.out, "approved  already")
	got = fixpoint(t, "", "deny", "twins.run-1/1/one/1", "--store", store)
	require.Equal(t, cli.ExitUsage, got.code)
	require.Contains(t, got.err, "is not open any more")
	got = fixpoint(t, "", "approve", "twins", "--store", store, "-q")
	require.Equal(t, cli.ExitOK, got.code, got.err)
	require.Contains(t, got.out, "answer  both are in")
}

// Ids of runs and tickets differ between the runs of a store, whichever process
// they are of.
func TestIDsAreUnique(t *testing.T) {
	spec := specFile(t, "id: boss\nmodel_id: script:script.json\ndelegates: [worker]\nsections:\n  permission: {ask: [write_report], default: allow}\n---\nid: worker\nmodel_id: script:work.json\n",
		`{"answers": [{"tool_calls": [{"id": "a", "tool": "write_report", "args": {"content": "1"}}, {"id": "b", "tool": "delegate_to_worker", "args": {"input": "x"}}]},
		{"tool_calls": [{"id": "c", "tool": "delegate_to_worker", "args": {"input": "y"}}]}, {"text": "done"}, {"text": "and again"}]}`)
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(spec), "work.json"), []byte(`{"answers": [{"text": "worked"}]}`), 0o644))
	dir, store := garden(t), t.TempDir()
	seen := map[string]int{}
	for n, args := range [][]string{
		{"run", spec, "--dir", dir, "--store", store}, {"approve", "a", "--store", store},
		{"run", spec, "--dir", dir, "--store", store, "--thread", "thread-1"}, {"run", spec, "--dir", dir, "--store", store},
	} {
		got := fixpoint(t, "", append(args, "--json")...)
		require.Contains(t, []int{cli.ExitOK, cli.ExitWaiting}, got.code, got.err)
		for _, e := range enginetest.Select[engine.RunStarted](events(t, got.out)) {
			require.NotContains(t, seen, e.Run)
			seen[e.Run] = n
		}
	}
	require.Contains(t, seen, "thread-1.run-1")
	require.Contains(t, seen, "thread-1.run-2")
	require.Contains(t, seen, "thread-2.run-1")
	require.Greater(t, len(seen), 4, "delegated runs: %v", seen)
}

// The record is in the store before the run starts, so that one whose process ended
// in between is started by resume.
func TestResumeStartsWhatWasRecorded(t *testing.T) {
	dir, store := garden(t), t.TempDir()
	st, err := kept.Create(store)
	require.NoError(t, err)
	eng, err := engine.New(engine.Config{Plugins: []engine.Plugin{kept.Plugin()}, Journal: st.Journal})
	require.NoError(t, err)
	th, err := eng.OpenThread(t.Context(), "early")
	require.NoError(t, err)
	var cmd phase.Command
	cmd.Update(kept.Key.With(kept.Record{Run: kept.RunID("early", 1), Runs: 1, Agent: "steward", Dir: dir,
		Report: filepath.Join(dir, ".fixpoint", "report.md"), Prompt: "survey"}))
	_, err = th.Submit(t.Context(), kept.Name, cmd)
	require.NoError(t, err)
	require.NoError(t, st.Close())

	require.Equal(t, "early  running  step 0  steward  its process ended; resume goes on with it\n", fixpoint(t, "", "threads", "--store", store).out)
	got := fixpoint(t, "", "run", "--dir", dir, "--store", store, "--thread", "early")
	require.Equal(t, cli.ExitUsage, got.code)
	require.Contains(t, got.err, `"fixpoint resume early" goes on with it`)
	got = fixpoint(t, "", "resume", "early", "--store", store, "--yes", "-q")
	require.Equal(t, cli.ExitOK, got.code, got.err)
	require.FileExists(t, filepath.Join(dir, ".fixpoint", "report.md"))
}

// What the store is asked for in vain is a fault of the arguments.
func TestStoreUsage(t *testing.T) {
	dir, store, empty := garden(t), t.TempDir(), t.TempDir()
	paused(t, dir, store, "-q")
	for want, args := range map[string][]string{
		"--thread needs --store":                                                        {"run", "--thread", "x"},
		"--pause needs --store":                                                         {"run", "--pause"},
		"--thread: a thread id is made of":                                              {"run", "--store", store, "--dir", dir, "--thread", "a/b"},
		"thread thread-1 waits for an answer":                                           {"run", "--store", store, "--dir", dir, "--thread", "thread-1"},
		"--store is missing":                                                            {"pending"},
		"--store is missing; name":                                                      {"verify"},
		"there is no store in " + empty:                                                 {"approve", "x", "--store", empty},
		"fixpoint: there is no store in " + empty:                                       {"verify", "--store", empty},
		`there is no such ticket: "nope"`:                                               {"approve", "nope", "--store", store},
		`there is no such ticket: "thread-1.run-7/5/report/1"`:                          {"deny", "thread-1.run-7/5/report/1", "--store", store},
		"decision 0 (ticket \"thread-1.run-1/5/report/9\"): engine: there is":           {"deny", "thread-1.run-1/5/report/9", "--store", store},
		`there is no thread "nope"`:                                                     {"resume", "nope", "--store", store},
		"approve takes TICKET, got 0 arguments":                                         {"approve", "--store", store},
		"answer takes TICKET and perhaps a VALUE":                                       {"answer", "--store", store},
		"\"12x\" is no revision":                                                        {"diff", "thread-1", "3", "12x", "--store", store},
		"diff takes THREAD A B, got 2 arguments":                                        {"diff", "thread-1", "3", "--store", store},
		"the thread does not hold that revision":                                        {"diff", "thread-1", "3", "1000", "--store", store},
		"the thread does not hold that revision; its history lists those it does: 1000": {"fork", "thread-1", "1000", "--store", store},
		"at revision 0 there is nothing yet":                                            {"fork", "thread-1", "0", "--store", store},
		"there is a thread of that id: thread-1":                                        {"fork", "thread-1", "3", "--id", "thread-1", "--store", store},
		"--id: a thread id is made of":                                                  {"fork", "thread-1", "3", "--id", "a/b", "--store", store},
		"say what to drop":                                                              {"prune", "thread-1", "--store", store},
		"at least one snapshot stays":                                                   {"prune", "thread-1", "--keep", "0", "--store", store},
		"use a positive duration":                                                       {"prune", "thread-1", "--older", "-1h", "--store", store},
		`there is no thread "nobody"`:                                                   {"delete", "nobody", "--store", store},
		`there is no thread "nobody" in`:                                                {"history", "nobody", "--store", store},
		"pending takes no arguments, got 1 arguments":                                   {"pending", "x", "--store", store},
	} {
		got := fixpoint(t, "", args...)
		require.Equal(t, cli.ExitUsage, got.code, "%v: %s", args, got.err)
		require.Contains(t, got.err, want)
		require.Empty(t, got.out, args)
	}
	require.NoFileExists(t, kept.File(empty), "looking makes no store")
	require.NoError(t, os.RemoveAll(dir))
	got := fixpoint(t, "", "approve", "report", "--store", store)
	require.Equal(t, cli.ExitUsage, got.code)
	require.Contains(t, got.err, "--dir: ", "the directory of the run is gone")
}

// A store inside the directory is not seen by the tools.
func TestStoreIsHidden(t *testing.T) {
	plain, dir := garden(t), garden(t)
	require.Equal(t, cli.ExitOK, fixpoint(t, "", "run", "--dir", plain, "--yes", "-q").code)
	require.Equal(t, cli.ExitOK, fixpoint(t, "", "run", "--dir", dir, "--store", filepath.Join(dir, "runs"), "--yes", "-q").code)
	for _, d := range []string{plain, dir} {
		report, err := os.ReadFile(filepath.Join(d, ".fixpoint", "report.md"))
		require.NoError(t, err)
		golden(t, "report.md", string(report))
	}
}

// While one process has the store, others say so.
func TestStoreInUse(t *testing.T) {
	dir, store := garden(t), t.TempDir()
	paused(t, dir, store, "-q")
	j, err := bolt.Open(kept.File(store), bolt.Options{})
	require.NoError(t, err)
	var wg sync.WaitGroup
	for _, args := range [][]string{{"approve", "report"}, {"pending"}, {"verify"}, {"run", "--dir", dir}} {
		wg.Go(func() {
			got := fixpoint(t, "", append(args, "--store", store)...)
			if got.code != cli.ExitError || !strings.Contains(got.err, "the store is in use by another process") || got.out != "" {
				t.Errorf("%v: %+v", args, got)
			}
		})
	}
	wg.Wait()
	require.NoError(t, j.Close())
}

// A decision that is made twice at the same time goes on with the run once.
func TestConcurrentApproves(t *testing.T) {
	dir, store := garden(t), t.TempDir()
	paused(t, dir, store, "-q")
	got := make([]outcome, 4)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() { got[i] = fixpoint(t, "", "approve", reportTicket, "--store", store) })
	}
	wg.Wait()
	ran := 0
	for _, g := range got {
		switch {
		case strings.Contains(g.out, "goes on"):
			ran++
			require.Equal(t, cli.ExitOK, g.code, g.err)
		case g.code == cli.ExitOK:
			require.Contains(t, g.out, "approved  already")
		default:
			require.Equal(t, cli.ExitError, g.code)
			require.Contains(t, g.err, "the store is in use by another process")
		}
	}
	require.Equal(t, 1, ran)
	require.Equal(t, 1, audited(t, dir)["report"])
}

// audited counts the calls in the audit file that ran, by their ids.
func audited(t *testing.T, dir string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, ".fixpoint", "audit.jsonl"))
	require.NoError(t, err)
	calls := map[string]int{}
	for line := range strings.Lines(string(text)) {
		var e struct {
			Call    string            `json:"call"`
			Outcome inference.Outcome `json:"outcome"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		if e.Outcome == inference.OutcomeOK {
			calls[e.Call]++
		}
	}
	return calls
}

// Damage is found.
func TestVerifyDamage(t *testing.T) {
	dir, store := garden(t), t.TempDir()
	paused(t, dir, store, "-q")
	info, err := os.Stat(kept.File(store))
	require.NoError(t, err)
	require.NoError(t, os.Truncate(kept.File(store), info.Size()/2))
	for _, verb := range []string{"verify", "pending", "threads", "history thread-1", "delete thread-1"} {
		got := fixpoint(t, "", append(strings.Fields(verb), "--store", store)...)
		require.Equal(t, cli.ExitError, got.code)
		require.Contains(t, got.err, "is damaged")
	}
}
