package trace_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/trace"
	"github.com/ddd26017/fixpoint/state"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares a text with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(filepath.Join("testdata", name), []byte(got), 0o644))
	}
	require.Equal(t, kept(t, name), got)
}

func kept(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err, "run the test with -update")
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

// lengths are times and shares as the text has them, with the space before.
var lengths = regexp.MustCompile(`(?m)^ *[0-9]+\.[0-9]{4}| *\(?[0-9.]+(?:h[0-9]+m[0-9]+s|ns|µs|ms|s\b|%)\)?`)

// timeless is a text without its times and without marks, which replays do not have.
func timeless(text string) string { return lengths.ReplaceAllString(without("mark", text), " #") }

// check compares a trace with golden files. The engine may take a moment more or
// less, so what it shows to the letter is what it makes of the events of one run, which
// were kept; that of this run is the same but for the times.
func check(t *testing.T, name string, tr outputs) {
	t.Helper()
	checkChrome(t, tr.chrome.Bytes())
	if *update {
		golden(t, name+".jsonl", tr.lines.String())
	}
	again := replay(t, kept(t, name+".jsonl"))
	golden(t, name+".txt", again.text.String())
	golden(t, name+".json", again.chrome.String())
	checkChrome(t, again.chrome.Bytes())
	require.Equal(t, timeless(again.text.String()), timeless(tr.text.String()))
	require.NotContains(t, tr.text.String(), "\x1b", "what comes from outside steers no terminal")
}

// replay is a trace of events that were kept.
func replay(t *testing.T, lines string) outputs {
	t.Helper()
	tr := newTrace()
	for l, err := range trace.Read(strings.NewReader(lines)) {
		require.NoError(t, err)
		if l.Event != nil {
			tr.Observe(l.Event)
		}
	}
	require.NoError(t, tr.Close(t.Context()))
	return tr
}

var (
	board  = state.NewCell("board", state.Options[string]{})
	report = phase.NewAction[int]("report", phase.StepEnd)
	mail   = effects.NewSpec[string]("mail")
)

// sleepy is a hook that takes its time and then does what fn says.
func sleepy(d time.Duration, fn func(pc *phase.Context, cmd *phase.Command) error) phase.Hook {
	return phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
		time.Sleep(d)
		if fn != nil {
			err = fn(pc, &cmd)
		}
		return cmd, err
	})
}

// busy has a part of each kind, of which each takes a time of its own.
func busy() engine.Plugin {
	return engine.NewPlugin("busy", func(r *engine.Registrar) error {
		r.Key(board)
		r.Hook(phase.BeforeInference, sleepy(30*time.Millisecond, nil))
		r.Hook(phase.BeforeInference, sleepy(10*time.Millisecond, nil))
		r.Hook(phase.BeforeInference, sleepy(5*time.Millisecond, nil), engine.Tier(1))
		for _, who := range []string{"a", "b"} {
			r.Hook(phase.StepStart, sleepy(4*time.Millisecond, func(_ *phase.Context, cmd *phase.Command) error {
				cmd.Update(board.With(who))
				return nil
			}), engine.Writes(board))
		}
		r.Hook(phase.StepEnd, sleepy(time.Millisecond, func(pc *phase.Context, cmd *phase.Command) error {
			if pc.Run().Step == 1 {
				cmd.Schedule(report.New(2)).Emit(mail.New("a"), trace.Mark.New("half way\x1b[31m"))
				return nil
			}
			return errors.New("no paper")
		}), engine.OnError(engine.Skip))
		r.Action(report.Handle(func(_ context.Context, _ *phase.Context, n int) (cmd phase.Command, err error) {
			time.Sleep(7 * time.Millisecond)
			if n > 1 {
				cmd.Schedule(report.New(n - 1))
			}
			return cmd, nil
		}))
		r.Effect(mail.Handle(func(context.Context, *state.Snapshot, string) error {
			time.Sleep(20 * time.Millisecond)
			return errors.New("no network")
		}))
		r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			time.Sleep(2 * time.Millisecond)
			if pc.Call().Name == "pay" {
				return gate.Ask(gate.Ticket{Message: "pay the bill?"}), nil
			}
			return gate.Abstain(), nil
		}))
		r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			time.Sleep(6 * time.Millisecond)
			if pc.Call().Name == "wipe" {
				return gate.Block("never"), nil
			}
			return gate.Abstain(), nil
		}))
		return nil
	})
}

// tools take 40 and 15 ms.
func tools() []engine.Tool {
	of := func(name string, d time.Duration) engine.Tool {
		return engine.NewTool(inference.ToolSpec{Name: name}, func(ctx context.Context, _ *phase.Context, _ map[string]any) (engine.Output, error) {
			select {
			case <-time.After(d):
			case <-ctx.Done():
				return engine.Output{}, ctx.Err()
			}
			return engine.Text(name + " done"), nil
		})
	}
	return []engine.Tool{of("pay", 40*time.Millisecond), of("look", 15*time.Millisecond), of("wipe", 0)}
}

// slow has the model think before it answers.
func slow(d time.Duration, a enginetest.Answer) enginetest.Answer {
	a.Wait = func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return a
}

func yes(after time.Duration) gate.Resolver {
	return gate.ResolverFunc(func(context.Context, gate.Ticket) (phase.Answer, error) {
		time.Sleep(after)
		return phase.Answer{Approved: true}, nil
	})
}

// outputs are a trace and what it wrote.
type outputs struct {
	*trace.Trace
	text, lines, chrome *bytes.Buffer
}

func newTrace() outputs { return newTraceWith(trace.Rules{}) }

func newTraceWith(r trace.Rules) outputs {
	o := outputs{text: &bytes.Buffer{}, lines: &bytes.Buffer{}, chrome: &bytes.Buffer{}}
	o.Trace = trace.New(trace.Options{Text: o.text, Lines: o.lines, Chrome: o.chrome, Rules: r})
	return o
}

// config is an engine's whose clock is that of the bubble.
func config(t *testing.T, tr outputs, answers ...enginetest.Answer) engine.Config {
	c, _ := enginetest.Config(t, tr.Trace, busy())
	c.Now, c.Observers, c.Stream = nil, []engine.Observer{tr.Trace}, true
	c.Model = enginetest.NewScript(answers...)
	return c
}

func run(t *testing.T, c engine.Config, ctx context.Context, spec engine.AgentSpec) *engine.Result {
	t.Helper()
	eng, err := engine.New(c)
	require.NoError(t, err)
	in := engine.Prompt("go")
	in.Tools = tools()
	res, err := eng.Run(ctx, spec, in)
	require.NoError(t, err)
	return res
}

// Capability H5. A run with something of each kind: what the trace shows of it to the
// millisecond, while it goes on and summed up, and as a file for a viewer.
func TestWholeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTrace()
		c := config(t, tr,
			slow(300*time.Millisecond, enginetest.Say("I pay.").And(enginetest.Call("c1", "pay", nil), enginetest.Call("c2", "wipe", nil)).
				Costing(inference.Usage{InputTokens: 120, OutputTokens: 18})),
			slow(100*time.Millisecond, enginetest.Say("done")))
		c.Resolver = yes(time.Second)
		res := run(t, c, t.Context(), engine.AgentSpec{ID: "clerk"})
		require.NoError(t, res.Err)
		require.NoError(t, tr.Close(t.Context()))
		check(t, "whole", tr)
		require.Contains(t, tr.text.String(), "       mark of busy: half way\uFFFD[31m\n")
	})
}

// Calls that run at the same time, and an agent that is delegated to: each has its
// place below what it is part of.
func TestDelegatesAndParallelCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTrace()
		c := config(t, tr, enginetest.Call("c1", "delegate_to_helper", map[string]any{"input": "look"}).
			And(enginetest.Call("c2", "look", nil), enginetest.Call("c3", "delegate_to_helper", map[string]any{"input": "look"})),
			enginetest.Say("done"))
		c.Agents = []engine.AgentSpec{{ID: "helper", ModelID: "small"}}
		c.Models = map[string]inference.Model{"small": enginetest.NewScript(slow(50*time.Millisecond, enginetest.Say("seen")))}
		res := run(t, c, t.Context(), engine.AgentSpec{ID: "boss", Delegates: []string{"helper"}, ToolExecution: engine.ToolsParallel})
		require.NoError(t, res.Err)
		require.NoError(t, tr.Close(t.Context()))
		check(t, "delegates", tr)
		spans := checkChrome(t, tr.chrome.Bytes())
		tids, pids := map[uint32]bool{}, map[uint32]bool{}
		for _, s := range spans {
			pids[s.Pid] = true
			if s.Cat == "run" {
				tids[s.Tid] = true
			}
		}
		require.Len(t, pids, 1, "a run and those that it delegates to are one process")
		require.Len(t, tids, 3, "each of them is a thread")
	})
}

// A run that waits for a person and goes on later, in another process too: its
// pictures fit together, and the time it waited counts apart.
func TestSuspendedAndResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, elsewhere := range []bool{false, true} {
			tr := newTrace()
			answers := []enginetest.Answer{enginetest.Call("c1", "pay", nil), enginetest.Say("done")}
			eng, err := engine.New(config(t, tr, answers...))
			require.NoError(t, err)
			th, err := eng.NewThread("")
			require.NoError(t, err)
			in := engine.Prompt("go")
			in.Tools = tools()
			res, err := th.Run(t.Context(), engine.AgentSpec{ID: "clerk"}, in)
			require.NoError(t, err)
			require.Equal(t, phase.Waiting, res.Status)
			later := tr
			if elsewhere {
				require.NoError(t, tr.Close(t.Context()))
				dump, err := th.Export()
				require.NoError(t, err)
				later = newTrace()
				eng, err = engine.New(config(t, later, answers...))
				require.NoError(t, err)
				th, err = eng.NewThread("again")
				require.NoError(t, err)
				require.NoError(t, th.Import(dump, state.KeepUnknown))
			}
			time.Sleep(time.Hour)
			res, err = th.Resume(t.Context(), engine.AgentSpec{ID: "clerk"}, engine.Input{Tools: tools()}, engine.Decision{Answer: phase.Answer{Approved: true}})
			require.NoError(t, err)
			require.NoError(t, res.Err)
			require.NoError(t, later.Close(t.Context()))
			spans := checkChrome(t, later.chrome.Bytes())
			if !elsewhere {
				check(t, "resumed", tr)
				continue
			}
			require.Equal(t, checkChrome(t, tr.chrome.Bytes())[0].Pid, spans[0].Pid, "a run is the same process in every file")
			require.Contains(t, later.text.String(), "goes on\n")
			require.Contains(t, later.text.String(), "call pay c1: ok in ")
		}
	})
}

// While a call waits for an answer that comes later others run, and their time is no
// waiting.
func TestOthersRunWhileOneWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTrace()
		res := run(t, config(t, tr, enginetest.Call("c1", "pay", nil).And(enginetest.Call("c2", "look", nil))), t.Context(), engine.AgentSpec{ID: "clerk"})
		require.Equal(t, phase.Waiting, res.Status)
		require.NoError(t, tr.Close(t.Context()))
		text := tr.text.String()
		require.Regexp(t, `call look c2: ok in [0-9]+ms, its body 15ms\n`, text)
		require.Contains(t, text, "busy asks: pay the bill?")
		require.Contains(t, text, "run waits for 1 answer")
		require.NotContains(t, text, "waiting", "nobody has waited yet")
		checkChrome(t, tr.chrome.Bytes())
	})
}

// A run that is cancelled in the middle of a tool shows how far it came.
func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTrace()
		ctx, cancel := context.WithTimeoutCause(t.Context(), 60*time.Millisecond, errors.New("never mind"))
		defer cancel()
		res := run(t, config(t, tr, enginetest.Call("c1", "look", nil).And(enginetest.Call("c2", "look", nil)), enginetest.Say("done")), ctx, engine.AgentSpec{ID: "clerk"})
		require.Equal(t, phase.ReasonCancelled, res.Reason)
		require.NoError(t, tr.Close(t.Context()))
		checkChrome(t, tr.chrome.Bytes())
		text := timeless(tr.text.String())
		require.Contains(t, text, "call look c1: cancelled in #, its body #\n")
		require.Contains(t, text, "call look c2: not_run in #, its body did not run\n")
		require.Contains(t, text, "run ended: cancelled, never mind, after #\n")
	})
}

// A trace that is closed while a run goes on is complete, with what is open marked.
func TestClosedEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTrace()
		c := config(t, tr, slow(time.Second, enginetest.Say("done")))
		over := make(chan struct{})
		go func() {
			defer close(over)
			run(t, c, t.Context(), engine.AgentSpec{ID: "clerk"})
		}()
		time.Sleep(500 * time.Millisecond)
		require.NoError(t, tr.Close(t.Context()))
		text := tr.text.String()
		<-over
		require.Equal(t, text, tr.text.String(), "what comes later is ignored")
		spans := checkChrome(t, tr.chrome.Bytes())
		require.Equal(t, "run", spans[len(spans)-1].Cat)
		require.Equal(t, true, spans[len(spans)-1].Args["open"])
		require.Contains(t, text, "the trace was closed before the run's end")
		require.NoError(t, tr.Close(t.Context()))
	})
}

// The lines are the detailed events, to the letter, and events that were read back give the
// same pictures.
func TestLinesAndReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTrace()
		c := config(t, tr, slow(30*time.Millisecond, enginetest.Call("c1", "pay", nil)), enginetest.Say("done"))
		c.Resolver = yes(time.Minute)
		rec := &enginetest.Recorder{}
		c.Observers = append(c.Observers, rec)
		require.NoError(t, run(t, c, t.Context(), engine.AgentSpec{ID: "clerk"}).Err)
		require.NoError(t, tr.Close(t.Context()))
		lines := slices.Collect(strings.Lines(tr.lines.String()))
		require.Equal(t, `{"type":"trace","version":1,"time":"2000-01-01T00:00:00Z"}`+"\n", lines[0])
		for i, e := range rec.Events() {
			line, err := engine.MarshalEvent(trace.Detailed(e, trace.Rules{}))
			require.NoError(t, err)
			require.Equal(t, string(line)+"\n", lines[i+1])
		}
		require.Len(t, lines, len(rec.Events())+1)

		again := replay(t, tr.lines.String())
		// The text of a mark is in no event.
		require.Equal(t, without("mark", tr.chrome.String()), without("mark", again.chrome.String()))
		require.Equal(t, without("mark", tr.text.String()), without("mark", again.text.String()))
	})
}

// without returns a text without the lines that have the word in them.
func without(word, text string) (out string) {
	for line := range strings.Lines(text) {
		if !strings.Contains(line, word) {
			out += line
		}
	}
	return out
}

// With a fake clock and hooks in turn, two runs of the same thing give the same bytes.
func TestDeterminism(t *testing.T) {
	once := func() string {
		tr := newTrace()
		c, _ := enginetest.Config(t, tr.Trace)
		c.Observers = append(c.Observers, tr.Trace)
		c.Model = enginetest.NewScript(enginetest.Call("c1", "delegate_to_b", map[string]any{"input": "x"}), enginetest.Say("done"))
		c.Agents = []engine.AgentSpec{{ID: "b"}}
		require.NoError(t, run(t, c, t.Context(), engine.AgentSpec{ID: "a", Delegates: []string{"b"}}).Err)
		require.NoError(t, tr.Close(t.Context()))
		return tr.text.String() + tr.chrome.String() + tr.lines.String()
	}
	first := once()
	for _, procs := range []int{1, 2, 8} {
		before := runtime.GOMAXPROCS(procs)
		got := once()
		runtime.GOMAXPROCS(before)
		require.Equal(t, first, got)
	}
}

// Capability G9. Runs that go on at the same time on one engine have pictures of
// their own.
func TestParallelRuns(t *testing.T) {
	tr := newTrace()
	c, _ := enginetest.Config(t, tr.Trace, busy())
	c.Observers, c.Now = append(c.Observers, tr.Trace), nil
	c.Model = enginetest.NewScript(enginetest.Call("c1", "look", nil), enginetest.Say("done"))
	eng := enginetest.Engine(t, c)
	const n = 8
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			in := engine.Prompt("go")
			in.Tools, in.RunID = tools(), fmt.Sprintf("run-%d", i)
			_, err := eng.Run(t.Context(), engine.AgentSpec{ID: "clerk"}, in)
			require.NoError(t, err)
		})
	}
	wg.Wait()
	require.NoError(t, tr.Close(t.Context()))
	pids := map[uint32]int{}
	for _, s := range checkChrome(t, tr.chrome.Bytes()) {
		pids[s.Pid]++
	}
	require.Len(t, pids, n)
	for _, spans := range pids {
		require.Equal(t, slices.Max(slices.Collect(maps.Values(pids))), spans, "each run has the same spans")
	}
	require.Equal(t, n, strings.Count(tr.text.String(), "summary of run run-"))
}

// Only one of the two texts is written, if only that is wanted; phases and commands
// outside a run are told of and leave nothing open.
func TestShow(t *testing.T) {
	var timeline, summary bytes.Buffer
	a := trace.New(trace.Options{Text: &timeline, Show: trace.TimelineOnly})
	b := trace.New(trace.Options{Text: &summary, Show: trace.SummaryOnly})
	c, _ := enginetest.Config(t)
	c.Observers = append(c.Observers, a, b)
	c.Plugins = []engine.Plugin{engine.NewPlugin("p", func(r *engine.Registrar) error {
		r.Hook(phase.StepStart, sleepy(0, nil))
		return nil
	})}
	c.Model = enginetest.NewScript(enginetest.Say("done"))
	th, err := enginetest.Engine(t, c).NewThread("")
	require.NoError(t, err)
	_, err = th.RunPhase(t.Context(), engine.AgentSpec{ID: "x"}, phase.StepStart)
	require.NoError(t, err)
	_, err = th.Run(t.Context(), engine.AgentSpec{ID: "x"}, engine.Prompt("go"))
	require.NoError(t, err)
	require.NoError(t, a.Close(t.Context()))
	require.NoError(t, b.Close(t.Context()))
	require.True(t, strings.HasPrefix(timeline.String(), "    0.0000 outside a run\n    0.0000   step_start: 1 hook\n"), timeline.String())
	require.NotContains(t, timeline.String(), "summary")
	require.True(t, strings.HasPrefix(summary.String(), "summary of run "), summary.String())
	require.Equal(t, 1, strings.Count(summary.String(), "summary"))
}

// Without a trace that observes, marks do not pile up.
func TestMarksThatNobodyTellsOf(t *testing.T) {
	tr := newTrace()
	c, _ := enginetest.Config(t, tr.Trace, engine.NewPlugin("p", func(r *engine.Registrar) error {
		r.Hook(phase.StepStart, sleepy(0, func(_ *phase.Context, cmd *phase.Command) error {
			for range 5000 {
				cmd.Emit(trace.Mark.New("x"))
			}
			return nil
		}))
		return nil
	}))
	c.Model = enginetest.NewScript(enginetest.Say("done"))
	res, err := enginetest.Engine(t, c).Run(t.Context(), engine.AgentSpec{ID: "a"}, engine.Prompt("go"))
	require.NoError(t, err)
	require.NoError(t, res.Err)
	require.Equal(t, 4096, res.Stats.EffectsDelivered)
	require.Equal(t, 5000-4096, res.Stats.EffectsFailed)
}
