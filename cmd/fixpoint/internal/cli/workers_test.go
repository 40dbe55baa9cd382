package cli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/cli"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/store/nats/natstest"
)

// servers start what stores that processes share are on, and return what --store is given.
var servers = map[string]func(t *testing.T) string{
	"nats": func(t *testing.T) string {
		s := natstest.Start(t, 1)
		return s.URL() + "?replicas=1&monitor=" + s.Monitors()[0]
	},
}

// onServers runs a test on each store that processes share.
func onServers(t *testing.T, test func(t *testing.T, store string)) {
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t))
		})
	}
}

// onStores runs a test on each store. One in a folder is open in one process at a time.
func onStores(t *testing.T, test func(t *testing.T, store string)) {
	t.Run("bolt", func(t *testing.T) {
		t.Parallel()
		test(t, "bolt:"+filepath.Join(t.TempDir(), "store"))
	})
	onServers(t, test)
}

// workerProcess is a worker in a process of its own.
type workerProcess struct {
	cmd   *exec.Cmd
	mu    sync.Mutex
	log   bytes.Buffer
	lines chan string
}

func startWorker(t *testing.T, args ...string) *workerProcess {
	t.Helper()
	s := &workerProcess{cmd: child(t, "", append([]string{"worker"}, args...)...), lines: make(chan string, 10_000)}
	pipe, err := s.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	t.Cleanup(func() {
		if s.cmd.ProcessState == nil {
			_, _ = s.cmd.Process.Kill(), s.cmd.Wait()
		}
	})
	go func() {
		defer close(s.lines)
		scan := bufio.NewScanner(pipe)
		scan.Buffer(nil, 16<<20) // a line of an event may be long
		for scan.Scan() {
			s.mu.Lock()
			s.log.WriteString(scan.Text() + "\n")
			s.mu.Unlock()
			s.lines <- scan.Text()
		}
	}()
	return s
}

func (s *workerProcess) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// until waits for a line that has a text, and returns it.
func (s *workerProcess) until(t *testing.T, text string) string {
	t.Helper()
	for line := range s.lines {
		if strings.Contains(line, text) {
			return line
		}
	}
	t.Fatalf("the worker ended without %q:\n%s", text, s.text())
	return ""
}

// end sends a signal and returns the exit code.
func (s *workerProcess) end(t *testing.T, signal os.Signal) int {
	t.Helper()
	require.NoError(t, s.cmd.Process.Signal(signal))
	for range s.lines { // Wait closes the pipe
	}
	_ = s.cmd.Wait()
	return s.cmd.ProcessState.ExitCode()
}

// gardenPrompt is the prompt that run gives the steward in a garden.
const gardenPrompt = "Survey this directory and hand in a report: garden"

// submit gives a thread something to do, and returns the number of the activation.
func submit(t *testing.T, store string, args ...string) uint64 {
	t.Helper()
	got := fixpoint(t, "", append([]string{"submit", "--store", store, "--json"}, args...)...)
	require.Equal(t, cli.ExitOK, got.code, got.err)
	var line struct {
		Type       string
		Activation uint64
	}
	require.NoError(t, json.Unmarshal([]byte(got.out), &line), got.out)
	require.Equal(t, "submitted", line.Type)
	return line.Activation
}

// threads returns what is listed, by thread.
func threads(t *testing.T, store string) map[string]string {
	t.Helper()
	got := fixpoint(t, "", "threads", "--store", store)
	require.Equal(t, cli.ExitOK, got.code, got.err)
	all := map[string]string{}
	for line := range strings.Lines(got.out) {
		id, rest, _ := strings.Cut(line, " ")
		all[id] = strings.Join(strings.Fields(rest), " ")
	}
	return all
}

// untilIdle has a worker in a process of its own do all that is to be done.
func untilIdle(t *testing.T, store string, args ...string) outcome {
	t.Helper()
	got := process(t, append([]string{"worker", "--store", store, "--until-idle"}, args...)...)
	require.Equal(t, cli.ExitOK, got.code, got.err)
	return got
}

// small writes the spec of an agent that says one thing.
func small(t *testing.T, id string) string {
	t.Helper()
	return smallWith(t, id, id+".json")
}

func smallWith(t *testing.T, id, script string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, script), []byte(`{"answers": [{"text": "It is done."}]}`), 0o600))
	spec := filepath.Join(dir, "agent.yaml")
	require.NoError(t, os.WriteFile(spec, []byte("id: "+id+"\nmodel_id: script:"+script+"\nactive_hook_filter: [loopguard]\n"), 0o600))
	return spec
}

// Capability A14. Capability A18. The steward is paused for an approval by a worker,
// approved through another process, and finished by a third, on each store.
func TestApprovedThroughAnotherProcess(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store string) {
		dir := garden(t)
		submit(t, store, "thread-1", gardenPrompt, "--agent", "steward")
		require.Equal(t, "created step 0 - 1 in the queue", threads(t, store)["thread-1"])
		untilIdle(t, store, "--dir", dir)
		require.Equal(t, "waiting step 5 steward 1 open ticket", threads(t, store)["thread-1"])
		require.NoFileExists(t, filepath.Join(dir, ".fixpoint", "report.md"))

		for _, refused := range [][]string{{"resume", "thread-1"}, {"run", "--thread", "thread-1"}, {"approve", "thread-1", "--trace", "x"}} {
			got := fixpoint(t, "", append(refused, "--store", store)...)
			require.Equal(t, cli.ExitUsage, got.code, refused)
			require.Regexp(t, "worker", got.err)
		}
		got := process(t, "approve", "thread-1", "--store", store)
		require.Equal(t, cli.ExitOK, got.code, got.err)
		require.Contains(t, got.out, "; a worker goes on with run ")
		require.NoFileExists(t, filepath.Join(dir, ".fixpoint", "report.md"))

		got = untilIdle(t, store, "--dir", dir)
		require.Contains(t, got.err, "kind=decide fate=applied")
		require.Equal(t, map[string]string{"thread-1": "done step 6 steward natural"}, threads(t, store))
		report, err := os.ReadFile(filepath.Join(dir, ".fixpoint", "report.md"))
		require.NoError(t, err)
		golden(t, "report.md", string(report))
		for id, n := range audited(t, dir) {
			require.Equal(t, 1, n, "%s ran more than once", id)
		}
		late := fixpoint(t, "", "submit", "thread-1", "--decide", "report=yes", "--store", store)
		require.Equal(t, cli.ExitUsage, late.code)
		require.Contains(t, late.err, `"report" stands for 0 open tickets of thread thread-1`)

		got = fixpoint(t, "", "delete", "thread-1", "--store", store)
		require.Equal(t, cli.ExitOK, got.code, got.err)
		require.Empty(t, threads(t, store))
	})
}

// The same while workers run, with somebody who looks on from elsewhere.
func TestFollow(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, store string) {
		dir := garden(t)
		one := startWorker(t, "--store", store, "--dir", dir)
		one.until(t, "msg=serving")
		got := process(t, "submit", "t1", gardenPrompt, "--agent", "steward", "--store", store, "--follow")
		require.Equal(t, cli.ExitWaiting, got.code, got.err)
		require.Contains(t, got.out, "submitted  activation 1 of thread t1\n")
		require.Contains(t, got.out, "list_files")
		require.Contains(t, got.out, " continue  fixpoint approve ")
		require.Equal(t, cli.ExitOK, one.end(t, syscall.SIGTERM), one.text())

		other := startWorker(t, "--store", store, "--dir", dir)
		got = process(t, "submit", "t1", "--decide", "report=yes", "--store", store, "--follow", "--json")
		require.Equal(t, cli.ExitOK, got.code, got.err)
		lines := strings.SplitAfter(strings.TrimSpace(got.out), "\n")
		require.Contains(t, lines[0], `"type":"submitted"`)
		require.Contains(t, lines[len(lines)-1], `"type":"outcome"`)
		require.Contains(t, lines[len(lines)-1], `"status":"done"`)
		seen := events(t, strings.Join(lines[1:len(lines)-1], ""))
		require.Len(t, enginetest.Select[engine.ToolFinished](seen), 1, "the report")
		require.Len(t, enginetest.Select[engine.RunFinished](seen), 1)

		got = process(t, "submit", "t1", "Once more.", "--store", store, "--wait", "-q")
		require.Contains(t, []int{cli.ExitOK, cli.ExitWaiting}, got.code, got.err)
		require.NotContains(t, got.out, "list_files")
		require.Equal(t, cli.ExitOK, other.end(t, os.Interrupt), other.text())
	})
}

// Two workers share fifty threads, each of which is given its prompt twice.
func TestTwoWorkers(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, store string) {
		const n = 50
		spec, dir := small(t, "clerk"), t.TempDir()
		workers := []*workerProcess{startWorker(t, spec, "--store", store, "--dir", dir), startWorker(t, spec, "--store", store, "--dir", dir, "--tenant-weight", "a=3")}
		for i := range n {
			id := "t" + strconv.Itoa(i)
			args := []string{id, "Do it.", "--agent", "clerk", "--key", "once", "--tenant", string(rune('a' + i%3)), "--priority", []string{"high", "normal", "low"}[i%3]}
			require.Equal(t, submit(t, store, args...), submit(t, store, args...))
		}
		last := fixpoint(t, "", "submit", "t0", "Again.", "--agent", "clerk", "--store", store, "--wait", "--priority", "low")
		require.Equal(t, cli.ExitOK, last.code, last.err)
		for all := threads(t, store); ; all = threads(t, store) {
			require.Len(t, all, n)
			done := 0
			for _, line := range all {
				if line == "done step 1 clerk natural" {
					done++
				}
			}
			if done == n {
				break
			}
		}
		over := map[string]int{}
		for _, w := range workers {
			require.Equal(t, cli.ExitOK, w.end(t, syscall.SIGTERM), w.text())
			for _, m := range regexp.MustCompile(`msg=over thread=(\S+) .* kind=input fate=applied`).FindAllStringSubmatch(w.text(), -1) {
				over[m[1]]++
			}
		}
		require.Len(t, over, n)
		for id, times := range over {
			want := 1
			if id == "t0" {
				want = 2
			}
			require.Equal(t, want, times, id)
		}
	})
}

// What cannot be begun is a dead letter after some attempts, and can be submitted again.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store string) {
		seq := submit(t, store, "t1", "Do it.", "--agent", "clerk")
		got := untilIdle(t, store, small(t, "other"), "--attempts", "1")
		require.Contains(t, got.err, `this worker has no agent \"clerk\"; it has other`)
		require.Contains(t, threads(t, store)["t1"], "1 given up")
		dead := fixpoint(t, "", "threads", "--dead", "--store", store)
		require.Equal(t, cli.ExitOK, dead.code, dead.err)
		require.Contains(t, dead.out, fmt.Sprintf("t1  activation %d  ", seq))
		require.Contains(t, dead.out, `clerk: "Do it."`)

		again := fixpoint(t, "", "threads", "requeue", "t1", fmt.Sprint(seq), "--store", store)
		require.Equal(t, cli.ExitOK, again.code, again.err)
		require.Contains(t, again.out, "t1: activation 1 is submitted again, as activation ")
		lanes := fixpoint(t, "", "threads", "--lanes", "--store", store)
		require.Equal(t, cli.ExitOK, lanes.code, lanes.err)
		require.Regexp(t, `^normal  -  1 due  0 put off  0 taken  0 given up  oldest `, lanes.out)
		twice := fixpoint(t, "", "threads", "requeue", "t1", fmt.Sprint(seq), "--store", store)
		require.Equal(t, cli.ExitUsage, twice.code)
		require.Contains(t, twice.err, "was not given up")

		untilIdle(t, store, small(t, "clerk"), small(t, "other"))
		require.Equal(t, "done step 1 clerk natural", threads(t, store)["t1"])
		require.Empty(t, fixpoint(t, "", "threads", "--dead", "--store", store).out)
	})
}

// What is put off waits, also when what was to be done at once is cancelled.
func TestPutOffAndCancelled(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store string) {
		submit(t, store, "t1", "Do it.", "--agent", "clerk", "--not-before", "10h")
		require.Contains(t, threads(t, store)["t1"], "1 put off until ")
		submit(t, store, "t2", "Do it.", "--agent", "clerk")
		for _, id := range []string{"t1", "t2"} {
			submit(t, store, id, "--cancel", "--reason", "not needed")
		}
		got := untilIdle(t, store, small(t, "clerk"), "--lease", "1s")
		require.Contains(t, got.err, "thread=t2 activation=1 kind=input fate=dropped")
		require.Contains(t, got.err, "kind=cancel fate=applied")
		require.Regexp(t, "^created step 0 - 1 put off until [^;]*$", threads(t, store)["t1"])
		require.Equal(t, "created step 0 -", threads(t, store)["t2"])
	})
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	submit(t, store, "t1", "Do it.", "--agent", "clerk", "--tenant", "acme")
	submit(t, store, "t2", "Do it.", "--agent", "clerk", "--tenant", "acme", "--priority", "low", "--not-before", "10h")
	w := startWorker(t, small(t, "clerk"), "--store", store, "--metrics", ":0")
	line := w.until(t, "msg=metrics")
	address := line[strings.Index(line, "http://"):]
	require.Contains(t, address, "http://127.0.0.1:")
	w.until(t, "msg=over")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	var page bytes.Buffer
	_, err = page.ReadFrom(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	for _, want := range []string{
		`fixpoint_activations_total{fate="applied",kind="input",reason="natural",status="done"} 1`,
		`fixpoint_queue_depth{priority="low",state="waiting",tenant="acme"} 1`,
		`fixpoint_queue_oldest_seconds{priority="low",tenant="acme"} 0`,
		"fixpoint_worker_lease_losses_total 0", "fixpoint_worker_retries_total 0", "fixpoint_worker_running ",
		`fixpoint_activation_seconds_count{priority="normal"} 1`, "go_goroutines ",
	} {
		require.Contains(t, page.String(), want)
	}
	require.Equal(t, cli.ExitOK, w.end(t, os.Interrupt), w.text())
	require.Contains(t, w.text(), "msg=ended")
}

func TestWorkerUsage(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	for want, args := range map[string][]string{
		"--store is missing; name what was given to run: a folder, bolt:FOLDER, postgres://": {"worker"},
		"nothing is known of mysql":                       {"threads", "--store", "mysql://h/db"},
		"--concurrency is 0":                              {"worker", "--store", store, "--concurrency", "0"},
		"--tenant-weight \"a\": write TENANT=N":           {"worker", "--store", store, "--tenant-weight", "a"},
		"--lease 1s or more":                              {"worker", "--store", store, "--lease", "1ms"},
		"another spec file already":                       {"worker", "--store", store, small(t, "a"), small(t, "a")},
		"another spec file names the script":              {"worker", "--store", store, smallWith(t, "a", "s.json"), smallWith(t, "b", "s.json")},
		"--metrics":                                       {"worker", "--store", store, "--metrics", "nowhere"},
		"there is nothing to submit":                      {"submit", "t1", "--store", store},
		"thread t1 is new, so --agent":                    {"submit", "t1", "Do it.", "--store", store},
		"the prompt is empty":                             {"submit", "t1", "-", "--agent", "a", "--store", store},
		"a thread id is made of":                          {"submit", "a/b", "Do it.", "--agent", "a", "--store", store},
		"priority \"urgent\"; use high":                   {"submit", "t1", "Do it.", "--agent", "a", "--priority", "urgent", "--store", store},
		"--not-before \"soon\"":                           {"submit", "t1", "Do it.", "--agent", "a", "--not-before", "soon", "--store", store},
		"--wait and --follow need a store on a server":    {"submit", "t1", "Do it.", "--agent", "a", "--wait", "--store", store},
		"a prompt comes alone":                            {"submit", "t1", "Do it.", "--cancel", "--store", store},
		"--agent goes with a prompt":                      {"submit", "t1", "--cancel", "--agent", "a", "--store", store},
		"--decide \"x\": write TICKET=VALUE":              {"submit", "t1", "--decide", "x", "--store", store},
		"verify takes a store in a folder, not nats://h":  {"verify", "--store", "nats://h"},
		"inspect takes a store in a folder, not nats://h": {"inspect", "--store", "nats://h"},
		"is no number of an activation":                   {"threads", "requeue", "t1", "x", "--store", store},
	} {
		got := fixpoint(t, "", args...)
		require.Equal(t, cli.ExitUsage, got.code, "%q %s", args, got.err)
		require.Contains(t, got.err, want)
	}
	// A run of another command is not for workers.
	dir := garden(t)
	paused(t, dir, store, "-q")
	got := fixpoint(t, "", "submit", "thread-1", "More.", "--agent", "steward", "--store", store)
	require.Equal(t, cli.ExitUsage, got.code)
	require.Contains(t, got.err, "has a run of \"fixpoint run\" that has not ended")
	require.Equal(t, cli.ExitOK, fixpoint(t, "", "approve", "thread-1", "--store", store, "-q").code)
	// Once it is through, workers may have the thread.
	submit(t, store, "thread-1", gardenPrompt)
	untilIdle(t, store, "--dir", dir)
	require.Equal(t, "waiting step 5 steward 1 open ticket", threads(t, store)["thread-1"])
}

// Runs of this process on a server need no worker.
func TestRunOnAServer(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, store string) {
		dir := garden(t)
		got := fixpoint(t, "", "run", "--dir", dir, "--store", store, "--thread", "t1", "-q")
		require.Equal(t, cli.ExitWaiting, got.code, got.err)
		require.Contains(t, got.out, "fixpoint approve t1.run-1/5/report/1 --store '"+store+"'")
		require.Equal(t, cli.ExitOK, fixpoint(t, "", "approve", "t1", "--store", store, "-q").code)
		require.Equal(t, "done step 6 steward natural", threads(t, store)["t1"])
		history := fixpoint(t, "", "history", "t1", "--store", store)
		require.Equal(t, cli.ExitOK, history.code, history.err)
		require.Greater(t, strings.Count(history.out, "\n"), 20)
		require.Equal(t, cli.ExitOK, fixpoint(t, "", "fork", "t1", "12", "--id", "t2", "--store", store).code)
		require.Equal(t, cli.ExitOK, fixpoint(t, "", "diff", "t1", "3", "12", "--store", store).code)
		require.Equal(t, cli.ExitOK, fixpoint(t, "", "prune", "t1", "--keep", "1", "--store", store).code)
		require.Equal(t, cli.ExitOK, fixpoint(t, "", "delete", "t2", "--store", store).code)
		chat := fixpoint(t, gardenPrompt+"\n", "chat", "--dir", dir, "--store", store, "-y", "-q")
		require.Equal(t, cli.ExitOK, chat.code, chat.err)
		require.Len(t, threads(t, store), 2)
		require.FileExists(t, filepath.Join(dir, ".fixpoint", "lines"))
	})
}
