package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/cli"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/slash"
)

// echo is a spec of two agents that repeat what they are told.
func echo(t *testing.T) string {
	return specFile(t, "id: echo\nmodel_id: script:script.json\n---\nid: other\ndescription: says the same\nmodel_id: script:script.json\nactive_hook_filter: [files]\nexcluded_tools: [write_file]\n",
		`{"answers": [{"text": "first: {{ .Input }}"}, {"text": "second: {{ .Input }}"}]}`)
}

// A chat without a terminal reads prompts, commands and answers from standard input, shows
// no prompts of its own, and ends with the input.
func TestChatFromAPipe(t *testing.T) {
	dir := garden(t)
	trace := filepath.Join(t.TempDir(), "trace.jsonl")
	got := fixpoint(t, "Survey: one\ne\n{\"content\": 1\n{\"content\":\"mine\"}\n/thraeds\n/ x\n\n/threads\n", "chat", agent, "--dir", dir, "--trace", trace)
	require.Equal(t, cli.ExitOK, got.code, got.err)
	require.Empty(t, got.err)
	require.NotContains(t, got.out, "›")
	require.NotContains(t, got.out, "\x1b")
	require.Contains(t, got.out, "    again      that is not JSON: unexpected end of JSON input")
	require.Contains(t, got.out, "yes, at the terminal, with other arguments")
	require.Contains(t, got.out, "    fault  slash: unknown command /thraeds; there is /threads, /tools\n")
	require.Contains(t, got.out, "    fault  a slash is followed by the name of a command")
	require.Contains(t, got.out, "           thread-1  done  step 6  steward  natural\n")
	report, err := os.ReadFile(filepath.Join(dir, ".fixpoint", "report.md"))
	require.NoError(t, err)
	require.Equal(t, "mine\n", string(report))
	text, err := os.ReadFile(trace)
	require.NoError(t, err)
	edits := enginetest.Select[engine.CallEdited](events(t, string(text)))
	require.Len(t, edits, 1)
	require.Equal(t, inference.JSON(`{"content":"mine"}`), edits[0].After)
}

// The end of the input leaves a question open; the next session on the thread asks it
// again, and so may another command.
func TestChatEndsAtAQuestion(t *testing.T) {
	dir := garden(t)
	store := filepath.Join(dir, ".fixpoint", "chat")
	got := fixpoint(t, "Survey: one\n", "chat", "--dir", dir, "-q")
	require.Equal(t, cli.ExitWaiting, got.code, got.out+got.err)
	require.Contains(t, got.out, "ticket  thread-1.run-1/5/report/1\n")
	got = fixpoint(t, "", "chat", "--dir", dir, "--thread", "thread-1")
	require.Equal(t, cli.ExitWaiting, got.code, got.out+got.err)
	got = fixpoint(t, "y\nSurvey: two\n", "chat", "--dir", dir, "--thread", "thread-1")
	require.Equal(t, cli.ExitWaiting, got.code, got.out+got.err)
	require.Contains(t, got.out, "answer  The report is in .fixpoint/report.md")
	got = fixpoint(t, "", "approve", "thread-1", "--store", store)
	require.Equal(t, cli.ExitOK, got.code, got.out+got.err)
	report, err := os.ReadFile(filepath.Join(dir, ".fixpoint", "report.md"))
	require.NoError(t, err)
	require.Contains(t, string(report), "# Survey of two\n", "the script began anew for the second prompt")
	got = fixpoint(t, "Survey: three\n", "chat", "--dir", dir, "--thread", "thread-1", "--yes", "-q")
	require.Equal(t, cli.ExitOK, got.code, got.out+got.err)
}

// The commands of the session itself.
func TestChatCommands(t *testing.T) {
	dir := garden(t)
	got := fixpoint(t, strings.Join([]string{
		"/retry", "/fork 1", "/resume", "/threads", "/history",
		"one", "/retry", "//three",
		"/agent nobody", "/agent other", "/tools", "/plugins", "four",
		"/history 1", "/history x", "/diff", "/diff 1 x", "/diff 2 3",
		"/new", "five", "/switch thread-9", "/switch thread-1", "/fork 0", "/fork 999", "/fork 1", "/threads", "/resume",
		"/help me", "/help", "/quit", "never",
	}, "\n"), "chat", echo(t), "--dir", dir)
	require.Equal(t, cli.ExitOK, got.code, got.err)
	said := regexp.MustCompile(`\n +answer  (.*)\n`).FindAllStringSubmatch(got.out, -1)
	var answers []string
	for _, m := range said {
		answers = append(answers, m[1])
	}
	// Each thread plays the script from its start, and anew at its end. The fork is of a
	// run that had not begun.
	require.Equal(t, []string{"first: one", "second: one", "first: /three", "first: four", "first: five", "first: one"}, answers)
	at := 0
	for _, want := range []string{
		"   thread  thread-1, a new one\n",
		"    fault  there was no prompt yet\n",
		"    fault  ", "does not hold that revision",
		"    fault  no run of this thread is interrupted or waits; there is nothing to go on with\n",
		"none yet; the first prompt makes one\n", "nothing yet\n",
		"of echo: one\n", "of echo: one\n", "of echo: /three\n",
		`    fault  there is no such agent: "nobody"; there is echo, other` + "\n",
		"           other: says the same\n",
		"list_files   read   List the files", "search_text",
		"files       active  ", "5 tools", "report      -       1 tool", "chat        active  ", "commands\n",
		"of other: four\n",
		"  thread-1.run-4  step 1  done  ", "… and ", " before; /history ",
		"slash: unusable arguments: /history: ",
		"    fault  /diff takes one revision or two; /history lists them\n", `    fault  "x" is no revision; /history lists them` + "\n", "fixpoint.",
		"   thread  thread-2, a new one\n", "of other: five\n",
		`    fault  there is no thread "thread-9"; /threads lists them` + "\n",
		"   thread  thread-1, with 4 prompts so far\n",
		"    fault  at revision 0 there is nothing yet", "    fault  ",
		"           thread-3 begins as thread-1 was at revision 1\n",
		"   thread  thread-3, whose last run has not ended; /resume goes on with it, and a prompt begins another one\n",
		"           thread-1  done", "           thread-2  done", "           thread-3  running",
		"of echo: one\n",
		"    fault  slash: unusable arguments: /help: ",
		"           /agent id=... ",
	} {
		n := strings.Index(got.out[at:], want)
		require.GreaterOrEqual(t, n, 0, "%q comes not behind\n%s", want, got.out[:at])
		at += n + len(want)
	}
	require.NotContains(t, got.out, "write_file ", "it is excluded")
	require.NotContains(t, got.out, "never")
}

// What a session cannot begin with is said before anything else happens.
func TestChatFaults(t *testing.T) {
	dir, spec := garden(t), echo(t)
	require.Equal(t, cli.ExitOK, fixpoint(t, "hello\n", "chat", spec, "--dir", dir, "--agent", "other").code)
	got := fixpoint(t, "hello\n", "chat", spec, "--dir", dir, "--thread", "thread-1")
	require.Contains(t, got.out, "of other: hello", "the thread has its agent")
	store := filepath.Join(dir, ".fixpoint", "chat")
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{spec, "--dir", dir, "--agent", "nobody"}, `there is no such agent: "nobody"; there is echo, other`},
		{[]string{spec, "--dir", dir, "--thread", "a b"}, "a thread id is made of"},
		{[]string{"--dir", dir, "--thread", "thread-1"}, "thread-1 has its agents from " + spec},
		{[]string{spec, "--dir", t.TempDir(), "--store", store, "--thread", "thread-1"}, "thread-1 works in " + dir},
		{[]string{spec, "--dir", filepath.Join(dir, "nope")}, "nope"},
		{[]string{"nope.yaml"}, "nope.yaml"}, {[]string{"-q", "-v"}, "quiet"}, {[]string{"a", "b"}, "chat takes one spec"},
	} {
		got := fixpoint(t, "hello\n", append([]string{"chat"}, c.args...)...)
		require.Equal(t, cli.ExitUsage, got.code, "%v: %s", c.args, got.err)
		require.Contains(t, got.err, c.says)
		require.NotContains(t, got.out, "hello")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, cli.ExitCancelled, fixpointIn(ctx, "hello\n", "chat", spec, "--dir", dir).code)
}

// Capability M6. A plugin's commands are there beside those of the session, and one of
// the same name is an error that names both.
func TestChatPluginCommands(t *testing.T) {
	chat := func(name, in string) outcome {
		var out, errs bytes.Buffer
		code := cli.Run(t.Context(), []string{"chat", echo(t), "--dir", garden(t)}, cli.IO{In: strings.NewReader(in), Out: &out, Err: &errs, Plugins: func() []engine.Plugin {
			return []engine.Plugin{engine.NewPlugin("desk", func(r *engine.Registrar) error {
				r.Extra(slash.New(name, "counts", "", func(_ context.Context, pc *phase.Context, _ struct{}) (slash.Reply, error) {
					return slash.Reply{Text: strings.Repeat("#", pc.Messages().Len())}, nil
				}), slash.NewSteering(name+"-again", "asks again", "", func(_ context.Context, s slash.Session, _ struct{}) (slash.Reply, error) {
					s.Prompt("again")
					return slash.Reply{}, nil
				}))
				return nil
			})}
		}})
		return outcome{code, out.String(), errs.String()}
	}
	got := chat("count", "/count-again\n/count\n/help\n")
	require.Equal(t, cli.ExitOK, got.code, got.err)
	require.Contains(t, got.out, "first: again\n")
	require.Contains(t, got.out, "           ##")
	require.Regexp(t, `/count-again +asks again \(desk\)\n`, got.out)

	got = chat("help", "")
	require.Equal(t, cli.ExitError, got.code)
	require.Contains(t, got.err, `plugin chat: slash command "help" is already registered by plugin desk`)
}
