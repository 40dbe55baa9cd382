package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/cli"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/trace"
)

var update = flag.Bool("update", false, "write the golden files")

// outcome is what a command did.
type outcome struct {
	code     int
	out, err string
}

func fixpoint(t *testing.T, in string, args ...string) outcome {
	t.Helper()
	return fixpointIn(t.Context(), in, args...)
}

func fixpointIn(ctx context.Context, in string, args ...string) outcome {
	var out, errs bytes.Buffer
	code := cli.Run(ctx, args, cli.IO{In: strings.NewReader(in), Out: &out, Err: &errs})
	return outcome{code, out.String(), errs.String()}
}

// garden copies the test directory, so that a run can write into it.
func garden(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "garden")
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "garden"))))
	return dir
}

const agent = "../../../../examples/steward/agent.yaml"

func events(t *testing.T, lines string) []engine.Event {
	t.Helper()
	var out []engine.Event
	for l, err := range trace.Read(strings.NewReader(lines)) {
		require.NoError(t, err)
		require.Zero(t, l.Dropped)
		if l.Event != nil {
			out = append(out, l.Event)
		}
	}
	return out
}

// Capability B8. The same command on the same content gives the same events, in
// another directory of the same name, and the second time in the first one.
func TestSameEvents(t *testing.T) {
	var all []string // events but commits, which are for the engine's tests
	first := garden(t)
	for _, dir := range []string{first, first, garden(t)} {
		got := fixpoint(t, "", "run", agent, "--dir", dir, "--yes", "--json")
		require.Equal(t, cli.ExitOK, got.code, got.err)
		require.Empty(t, got.err)
		seen := slices.DeleteFunc(events(t, got.out), func(e engine.Event) bool { return e.Type() == engine.Committed{}.Type() })
		lines := enginetest.Lines(seen)
		all = append(all, strings.Join(lines, "\n"))
	}
	require.True(t, all[0] == all[1], "a second run sees what the first one wrote")
	require.True(t, all[0] == all[2], "the place of the directory matters")
	golden(t, "events.txt", outline(t, all[0]))
}

// outline keeps of each event where it happened, its type, and the short fields
// that say what happened. Revisions and other numbers of the engine's own are for
// its own tests.
func outline(t *testing.T, lines string) string {
	t.Helper()
	var out strings.Builder
	for line := range strings.Lines(lines) {
		var e map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		if result, ok := e["result"].(map[string]any); ok {
			e["outcome"] = result["outcome"]
		}
		if call, ok := e["call"].(map[string]any); ok {
			e["call"] = call["id"]
		}
		fields := []any{e["step"]}
		for _, name := range []string{"phase", "type", "call", "key", "winner", "loser", "fate", "plugin", "hook", "action", "round", "effect",
			"handler", "status", "decision", "cause", "outcome", "approved", "rounds", "retries", "messages", "tools", "reason", "error"} {
			if v, ok := e[name]; ok {
				fields = append(fields, v)
			}
		}
		out.WriteString(fmt.Sprintln(fields...))
	}
	return out.String()
}

// Capability H5. A run shows what the engine does: a retried conflict, a cascade,
// an approval, a blocked call and effects.
func TestWhatARunShows(t *testing.T) {
	dir := garden(t)
	trace := filepath.Join(t.TempDir(), "trace.jsonl")
	got := fixpoint(t, "y\n", "run", agent, "--dir", dir, "--trace", trace)
	require.Equal(t, cli.ExitOK, got.code, got.err)
	text, err := os.ReadFile(trace)
	require.NoError(t, err)
	seen := events(t, string(text))

	retried := enginetest.Select[engine.Conflict](seen)
	require.NotEmpty(t, retried)
	require.Equal(t, "retried", retried[0].Fate)
	most := 0
	for _, e := range enginetest.Select[engine.PhaseFinished](seen) {
		most = max(most, e.Rounds)
	}
	require.GreaterOrEqual(t, most, 3)
	answers := enginetest.Select[engine.TicketAnswered](seen)
	require.Len(t, answers, 1)
	require.True(t, answers[0].Approved)
	audited := 0
	for _, e := range enginetest.Select[engine.EffectFinished](seen) {
		require.Empty(t, e.Error)
		audited++
	}
	log, err := os.ReadFile(filepath.Join(dir, ".fixpoint", "audit.jsonl"))
	require.NoError(t, err)
	require.Equal(t, audited, strings.Count(string(log), "\n"))

	golden(t, "run.txt", normal(got.out, dir))
}

var duration = regexp.MustCompile(`\b\d+(\.\d+)?(ns|µs|ms|s)\b`)

var inDir = regexp.MustCompile(`DIR\S*`)

func normal(text, dir string) string {
	text = duration.ReplaceAllString(strings.ReplaceAll(text, dir, "DIR"), "TIME")
	return inDir.ReplaceAllStringFunc(text, filepath.ToSlash)
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "run the test with -update")
	// Line by line, since an event is long and all of them are longer.
	wanted := strings.Split(strings.ReplaceAll(string(want), "\r\n", "\n"), "\n")
	for i, line := range strings.Split(got, "\n") {
		require.Less(t, i, len(wanted), "more lines than in %s", file)
		require.Equal(t, wanted[i], line, "%s:%d", file, i+1)
	}
	require.Len(t, strings.Split(got, "\n"), len(wanted), file)
}

// What the agent reads and reports depends on the directory.
func TestReportIsAboutTheDirectory(t *testing.T) {
	dir := garden(t)
	got := fixpoint(t, "", "run", "--dir", dir, "--yes", "-q")
	require.Equal(t, cli.ExitOK, got.code, got.err)
	report, err := os.ReadFile(filepath.Join(dir, ".fixpoint", "report.md"))
	require.NoError(t, err)
	golden(t, "report.md", string(report))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.md"), []byte("# New\n\nTO"+"DO water the roses\n"), 0o644))
	fixpoint(t, "", "run", "--dir", dir, "--yes", "-q")
	report, err = os.ReadFile(filepath.Join(dir, ".fixpoint", "report.md"))
	require.NoError(t, err)
	require.Contains(t, string(report), "`notes.md:3` TO"+"DO water the roses")
}

func TestEmptyDirectory(t *testing.T) {
	dir := t.TempDir()
	got := fixpoint(t, "", "run", "--dir", dir, "--yes")
	require.Equal(t, cli.ExitOK, got.code, got.err)
	require.FileExists(t, filepath.Join(dir, ".fixpoint", "report.md"))
}

// The prompt decides: without a yes nothing is written.
func TestAnswers(t *testing.T) {
	for typed, want := range map[string]struct {
		written bool
		says    string
	}{
		"y\n":       {true, "answer      yes, at the terminal"},
		"a\n":       {true, "for the whole run"},
		"n later\n": {false, "denied: later"},
		"":          {false, "nobody is there to answer; --yes approves"},
	} {
		dir := garden(t)
		got := fixpoint(t, typed, "run", "--dir", dir)
		require.Equal(t, cli.ExitOK, got.code, got.err)
		require.Contains(t, got.out, want.says)
		_, err := os.Stat(filepath.Join(dir, ".fixpoint", "report.md"))
		require.Equal(t, want.written, err == nil, "%q", typed)
	}
}

// Outputs inside the directory are not seen by the next run.
func TestOutputsAreHidden(t *testing.T) {
	dir := garden(t)
	args := []string{"run", "--dir", dir, "--yes", "--json", "--out", filepath.Join(dir, "survey.md"), "--trace", filepath.Join(dir, "trace.jsonl")}
	first := fixpoint(t, "", args...)
	require.Equal(t, cli.ExitOK, first.code, first.err)
	require.FileExists(t, filepath.Join(dir, "survey.md"))
	second := fixpoint(t, "", args...)
	require.Equal(t, enginetest.Lines(events(t, first.out)), enginetest.Lines(events(t, second.out)))

	elsewhere := filepath.Join(t.TempDir(), "report.md")
	require.Equal(t, cli.ExitOK, fixpoint(t, "", "run", "--dir", dir, "--yes", "-q", "--out", elsewhere).code)
	require.FileExists(t, elsewhere)
}

// A cancelled run ends with what it did, and says so.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := fixpointIn(ctx, "", "run", "--dir", garden(t), "--yes")
	require.Equal(t, cli.ExitCancelled, got.code)
	require.Contains(t, got.out, "ended  cancelled: before its end")
	require.Contains(t, got.out, "steps  0 in")
}

func specFile(t *testing.T, spec, script string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "script.json"), []byte(script), 0o644))
	file := filepath.Join(dir, "agent.yaml")
	require.NoError(t, os.WriteFile(file, []byte(spec), 0o644))
	return file
}

func TestExitCodes(t *testing.T) {
	dir := garden(t)
	fails := specFile(t, "id: x\nmodel_id: script:script.json\n", `{"answers": [{"error": "the model is away"}]}`)
	got := fixpoint(t, "", "run", fails, "--dir", dir)
	require.Equal(t, cli.ExitError, got.code)
	require.Contains(t, got.out, "the model is away")

	stops := specFile(t, "id: x\nmodel_id: script:script.json\nmax_rounds: 1\n", `{"answers": [{"tool_calls": [{"tool": "list_files"}]}]}`)
	got = fixpoint(t, "y\n", "run", stops, "--dir", dir)
	require.Equal(t, cli.ExitOK, got.code, got.out)
	require.Contains(t, got.out, string(phase.ReasonMaxRounds))

	for _, args := range [][]string{
		{"runn"}, {"run", "--dri", "x"}, {"run", "a", "b"}, {"run", "-q", "-v"}, {"describe", "--json", "--mermaid"}, {"describe", "--conflicts", "--svg"},
		{"run", "--dir", filepath.Join(dir, "nope")}, {"run", "--dir", filepath.Join(dir, "README.md")},
		{"run", "nope.yaml"}, {"check", "nope.yaml"}, {"run", "--dir", dir, "--trace", filepath.Join(dir, "no", "x")},
	} {
		got := fixpoint(t, "", args...)
		require.Equal(t, cli.ExitUsage, got.code, "%v: %s", args, got.err)
		require.True(t, strings.HasPrefix(got.err, "fixpoint: "), got.err)
		require.Empty(t, got.out, args)
	}
	require.Contains(t, fixpoint(t, "", "runn").err, "Did you mean this?\n\trun\n")
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"help", "run"}, {"run", "-h"}, {"chat", "--help"}} {
		got := fixpoint(t, "", args...)
		require.Equal(t, cli.ExitOK, got.code)
		require.Contains(t, got.out, "Usage:")
	}
}

// Capability A16. What is wrong with a spec is told with its place and the nearest
// known name, all at once.
func TestCheck(t *testing.T) {
	for spec, want := range map[string][]string{
		"id: x\nmodel_id: script:script.json\nmax_rouns: 3\n": {":3:1: max_rouns: no field \"max_rouns\"; did you mean \"max_rounds\"?"},
		"id: x\nmodel_id: script:script.json\nactive_hook_filter: [files, audti]\nexcluded_tools: [lst_files]\nsections:\n  budget:\n    tokns: 1\n  permision: {}\n": {
			":3:29: active_hook_filter[1]: no plugin \"audti\"; did you mean \"audit\"?",
			":4:18: excluded_tools[0]: no tool \"lst_files\"; did you mean \"list_files\"?",
			":7:5: sections.budget.tokns: no field \"tokns\"; did you mean \"tokens\"?",
			":8:3: sections.permision: no section \"permision\"; did you mean \"permission\"?",
		},
		"id: x\nmodel_id: gpt\n":               {":2:11: model_id: no model \"gpt\""},
		"id: x\n":                              {":1:1: model_id: name a model"},
		"id: x\nmodel_id: script:../up.json\n": {":2:11: model_id: \"../up.json\" is no path"},
		"id: x\nmodel_id: script:nope.json\n":  {":2:11: model_id: cannot read the script"},
		"id: x\nmodel_id: [\n":                 {":2:11: not YAML: "},
		"id: x\nmodel_id: 'script:script.json'\nsections: {census: {max_levels: 99}}\n": {":3:20: sections.census: census: max_levels is 99"},
	} {
		file := specFile(t, spec, `{"answers": [{"text": "hi"}]}`)
		for _, verb := range []string{"check", "run", "describe"} {
			got := fixpoint(t, "", verb, file)
			require.Equal(t, cli.ExitUsage, got.code)
			for _, w := range want {
				require.Contains(t, got.err, "fixpoint: "+file+w+"", spec)
			}
		}
	}
	got := fixpoint(t, "", "check", agent)
	require.Equal(t, outcome{out: agent + ": agent steward is fine\n"}, got)
	require.Equal(t, cli.ExitOK, fixpoint(t, "", "check").code)

	bad := specFile(t, "id: x\nmodel_id: script:script.json\n", `{"answers": [{"text": "{{ .Nope "}]}`)
	got = fixpoint(t, "", "check", bad)
	require.Equal(t, cli.ExitUsage, got.code)
	require.Contains(t, got.err, "script.json: answer 1: text:")
}

// Two agents in one file: the first runs, and hands work to the second.
func TestSeveralAgents(t *testing.T) {
	file := specFile(t, "id: boss\nmodel_id: script:script.json\ndelegates: [worker]\n---\nid: worker\nmodel_id: script:script.json\n",
		`{"answers": [{"text": "{{ .Input }}"}]}`)
	got := fixpoint(t, "", "run", file, "--dir", garden(t), "--prompt", "hello there")
	require.Equal(t, cli.ExitOK, got.code, got.err)
	require.Contains(t, got.out, "answer  hello there\n")
	require.Contains(t, fixpoint(t, "", "check", file).out, "agent worker is fine")
}
