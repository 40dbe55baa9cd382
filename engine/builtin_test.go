package engine_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// gbSchedule is a plugin that schedules actions at a phase of one step, 0 for each.
func gbSchedule(name string, p phase.Phase, step int, actions ...phase.Action) engine.Plugin {
	return gbHook(name, p, func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
		if step == 0 || pc.Run().Step == step {
			cmd.Schedule(actions...)
		}
		return cmd, nil
	})
}

// gbSet is a SetOverride action.
func gbSet(wholeRun bool, o inference.Override) phase.Action {
	return engine.SetOverride.New(engine.OverrideArgs{Override: o, WholeRun: wholeRun})
}

// gbThreeSteps is a model that takes three steps.
func gbThreeSteps() *gbModel {
	return gbScript(gbAsk(gbCall("c1", "t", "")), gbAsk(gbCall("c2", "t", "")))
}

// Capability A9. Capability A17. Fault F31. Overrides merge per field in the order
// in which they were scheduled: the last writer wins, unset erases nothing, zero is
// a value, and the trace says which plugin set which field.
func TestOverridesMergeFieldByField(t *testing.T) {
	model := gbScript()
	w := gbNew(t, engine.Config{Model: model, Plugins: []engine.Plugin{
		gbSchedule("a", phase.BeforeInference, 0, gbSet(false, inference.Override{
			Temperature: inference.Some(0.1), MaxTokens: inference.Some(100), UpstreamModel: inference.Some("big"),
			Extra: inference.Extra{}.With("seed", "1").With("safe", "true"),
		})),
		gbSchedule("b", phase.BeforeInference, 0, gbSet(false, inference.Override{
			Temperature: inference.Some(0.0), ReasoningEffort: inference.Some(inference.EffortHigh), Extra: inference.Extra{}.With("seed", "2"),
		})),
		gbSchedule("c", phase.BeforeInference, 0, gbSet(false, inference.Override{}), gbSet(false, inference.Override{}.Without(inference.FieldMaxTokens))),
	}})
	w.spec.ModelID = "small"
	w.spec.Params = inference.Params{Temperature: inference.Some(0.7), MaxTokens: inference.Some(50), TopP: inference.Some(0.9)}
	before := w.spec.Clone()
	w.say("hi")
	req := model.sent()[0]
	require.Equal(t, "big", req.Model)
	require.Equal(t, inference.Params{
		Temperature: inference.Some(0.0), MaxTokens: inference.Some(50), TopP: inference.Some(0.9),
		ReasoningEffort: inference.Some(inference.EffortHigh), Extra: inference.Extra{}.With("safe", "true").With("seed", "2"),
	}, req.Params)
	require.Equal(t, before, w.spec)
	applied := gbOf[engine.OverrideApplied](w.events)
	require.Len(t, applied, 1)
	require.Equal(t, []engine.FieldOrigin{
		{Field: "extra.safe", Plugin: "a", Value: "true"},
		{Field: "extra.seed", Plugin: "b", Value: "2"},
		{Field: "max_tokens", Plugin: "c"},
		{Field: "reasoning_effort", Plugin: "b", Value: `"high"`},
		{Field: "temperature", Plugin: "b", Value: "0"},
		{Field: "upstream_model", Plugin: "a", Value: `"big"`},
	}, applied[0].Fields)
}

// Capability A9. Precedence is spec < run < step, whatever was scheduled first; a
// step's override is gone with the next model call, the run's stays until the run
// ends, and neither reaches the next run.
func TestOverridePrecedence(t *testing.T) {
	model := gbThreeSteps()
	w := gbNew(t, engine.Config{Model: model, Plugins: []engine.Plugin{
		gbTools(gbToolOf("t", nil)),
		gbSchedule("step", phase.StepStart, 2, gbSet(false, inference.Override{Temperature: inference.Some(0.3)})),
		gbSchedule("run", phase.StepStart, 2, gbSet(true, inference.Override{Temperature: inference.Some(0.2), TopP: inference.Some(0.5)})),
	}})
	w.spec.Params.Temperature = inference.Some(0.1)
	w.say("hi")
	type params struct{ temperature, topP float64 }
	var seen []params
	for _, r := range model.sent() {
		seen = append(seen, params{r.Params.Temperature.Or(-1), r.Params.TopP.Or(-1)})
	}
	require.Equal(t, []params{{0.1, -1}, {0.3, 0.5}, {0.2, 0.5}}, seen)
	w.say("again")
	last := model.sent()[3]
	require.Equal(t, inference.Some(0.1), last.Params.Temperature)
	require.False(t, last.Params.TopP.IsSet())
}

// An override that no model could accept is dead-lettered with its scheduler's
// name and changes nothing.
func TestBadOverrideIsADeadLetter(t *testing.T) {
	model := gbScript()
	w := gbNew(t, engine.Config{Model: model, Plugins: []engine.Plugin{
		gbSchedule("bad", phase.BeforeInference, 0, gbSet(false, inference.Override{Temperature: inference.Some(math.NaN())})),
		gbSchedule("good", phase.BeforeInference, 0, gbSet(false, inference.Override{TopP: inference.Some(0.5)})),
	}})
	res := w.say("hi")
	require.Equal(t, phase.ReasonNatural, res.Reason)
	require.False(t, model.sent()[0].Params.Temperature.IsSet())
	require.Equal(t, inference.Some(0.5), model.sent()[0].Params.TopP)
	n := 0
	for _, d := range w.thread.DeadLetters() {
		require.Equal(t, "bad", d.Plugin)
		n++
	}
	require.Equal(t, 1, n)
	_, err := w.thread.Export()
	require.NoError(t, err, "a dead letter must not keep the thread from being saved")
}

// Fault B39. 50 runs at the same time on one agent: run i sets max_tokens to i in
// its first step only, and sees the spec's value in the second.
func TestOverridesStayInTheirRun(t *testing.T) {
	var mu sync.Mutex
	seen := map[string][]int{}
	model := inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
		mu.Lock()
		seen[r.Messages[0].Text] = append(seen[r.Messages[0].Text], r.Params.MaxTokens.Or(-1))
		mu.Unlock()
		if len(r.Messages) == 1 {
			return inference.Response{Message: inference.Assistant("", gbCall("c1", "t", ""))}, nil
		}
		return inference.Response{Message: inference.Assistant("done")}, nil
	})
	w := gbNew(t, engine.Config{Model: model, Plugins: []engine.Plugin{
		gbTools(gbToolOf("t", nil)),
		gbHook("own", phase.StepStart, func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
			var i int
			if _, err := fmt.Sscanf(pc.Messages().At(0).Text, "run %d", &i); err != nil {
				return cmd, err
			}
			if pc.Run().Step == 1 {
				cmd.Schedule(gbSet(false, inference.Override{MaxTokens: inference.Some(i)}))
			}
			return cmd, nil
		}),
	}})
	w.spec.Params.MaxTokens = inference.Some(999)
	before := w.spec.Clone()
	var wg sync.WaitGroup
	errs := make([]error, 50)
	for i := range 50 {
		wg.Go(func() {
			res, err := w.engine.Run(t.Context(), w.spec, engine.Prompt(fmt.Sprintf("run %d", i)))
			if err == nil {
				err = res.Err
			}
			errs[i] = err
		})
	}
	wg.Wait()
	for i, err := range errs {
		require.NoError(t, err)
		require.Equal(t, []int{i, 999}, seen[fmt.Sprintf("run %d", i)], "zero is a value too")
	}
	require.Equal(t, before, w.spec)
}

// Capability A17. Persistent context becomes history; one-shot context is seen by
// the next call only; throttled context comes at most every so many steps, per key.
func TestAddContext(t *testing.T) {
	add := func(text string, mode engine.ContextMode, key string, every int) phase.Action {
		return engine.AddContext.New(engine.ContextArgs{Message: inference.User(text), Mode: mode, Key: key, Every: every})
	}
	model := gbScript(gbAsk(gbCall("c1", "t", "")), gbAsk(gbCall("c2", "t", "")), gbAsk(gbCall("c3", "t", "")), gbAsk(gbCall("c4", "t", "")))
	w := gbNew(t, engine.Config{Model: model, Plugins: []engine.Plugin{
		gbTools(gbToolOf("t", nil)),
		gbSchedule("persist", phase.BeforeInference, 1, add("kept", engine.Persistent, "", 0)),
		gbSchedule("once", phase.BeforeInference, 2, add("once", engine.OneShot, "", 0)),
		gbSchedule("every2", phase.BeforeInference, 0, add("every2", engine.Throttled, "k2", 2)),
		gbSchedule("every4", phase.BeforeInference, 0, add("every4", engine.Throttled, "k4", 4)),
		gbSchedule("bad", phase.BeforeInference, 1, add("no key", engine.Throttled, "", 1), add("no mode", "sometimes", "", 0)),
	}})
	w.say("hi")
	count := func(messages []inference.Message, text string) (n int) {
		for _, m := range messages {
			if m.Text == text {
				n++
			}
		}
		return n
	}
	var got [][4]int
	for _, r := range model.sent() {
		got = append(got, [4]int{count(r.Messages, "kept"), count(r.Messages, "once"), count(r.Messages, "every2"), count(r.Messages, "every4")})
		require.Zero(t, count(r.Messages, "no key")+count(r.Messages, "no mode"))
	}
	require.Equal(t, [][4]int{{1, 0, 1, 1}, {1, 1, 0, 0}, {1, 0, 1, 0}, {1, 0, 0, 0}, {1, 0, 1, 1}}, got)
	require.Equal(t, 1, count(w.messages(), "kept"))
	require.Zero(t, count(w.messages(), "once")+count(w.messages(), "every2"))
	n := 0
	for range w.thread.DeadLetters() {
		n++
	}
	require.Equal(t, 2, n, "bad context is a dead letter")
}

// Context that is added at the step's start, before its BeforeInference, is there
// for the same step.
func TestContextFromAnEarlierPhase(t *testing.T) {
	for _, p := range []phase.Phase{phase.RunStart, phase.StepStart, phase.BeforeInference} {
		model := gbScript()
		w := gbNew(t, engine.Config{Model: model, Plugins: []engine.Plugin{
			gbSchedule("ctx", p, 0, engine.AddContext.New(engine.ContextArgs{Message: inference.System("note"), Mode: engine.OneShot})),
		}})
		w.say("hi")
		require.Equal(t, []inference.Message{inference.User("hi"), inference.System("note")}, model.sent()[0].Messages, p)
	}
}

// Capability A17. A tool that is excluded, or not among the only ones included, is
// not offered in this step, and a call of it gets an error; the next step has it
// again.
func TestExcludeAndInclude(t *testing.T) {
	names := func(r inference.Request) (out []string) {
		for _, s := range r.Tools {
			out = append(out, s.Name)
		}
		return out
	}
	for _, c := range []struct {
		name    string
		actions []phase.Action
		offered []string
	}{
		{"exclude", []phase.Action{engine.ExcludeTool.New("a"), engine.ExcludeTool.New("zzz")}, []string{"b", "c"}},
		{"include only", []phase.Action{engine.IncludeOnlyTools.New([]string{"a", "b"})}, []string{"a", "b"}},
		{"several includes intersect", []phase.Action{engine.IncludeOnlyTools.New([]string{"a", "b"}), engine.IncludeOnlyTools.New([]string{"b", "c"})}, []string{"b"}},
		{"both", []phase.Action{engine.IncludeOnlyTools.New([]string{"a", "b"}), engine.ExcludeTool.New("b")}, []string{"a"}},
		{"include none", []phase.Action{engine.IncludeOnlyTools.New(nil)}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b, cc := gbToolOf("a", nil), gbToolOf("b", nil), gbToolOf("c", nil)
			calls := []inference.ToolCall{gbCall("c1", "a", ""), gbCall("c2", "b", ""), gbCall("c3", "c", "")}
			model := gbScript(gbAsk(calls...), gbAsk(calls...))
			w := gbNew(t, engine.Config{Model: model, Plugins: []engine.Plugin{
				gbTools(a, b), gbSchedule("picky", phase.BeforeInference, 1, c.actions...),
			}})
			in := engine.Prompt("go")
			in.Tools = []engine.Tool{cc}
			w.run(in)
			require.Equal(t, c.offered, names(model.sent()[0]))
			require.Equal(t, []string{"a", "b", "c"}, names(model.sent()[1]))
			results := w.results()
			for i, name := range []string{"a", "b", "c"} {
				want := inference.OutcomeError
				for _, o := range c.offered {
					if o == name {
						want = inference.OutcomeOK
					}
				}
				require.Equal(t, want, results[i].Outcome, name)
				require.Equal(t, inference.OutcomeOK, results[3+i].Outcome)
			}
		})
	}
}

// A handler can tell which plugin scheduled the action it runs.
func TestSchedulerIsKnownToTheHandler(t *testing.T) {
	note := phase.NewAction[int]("gb.who", phase.StepEnd)
	log := &gbLog{}
	w := gbNew(t, engine.Config{Model: gbScript(), Plugins: []engine.Plugin{
		engine.NewPlugin("handler", func(r *engine.Registrar) error {
			r.Action(note.Handle(func(ctx context.Context, _ *phase.Context, n int) (phase.Command, error) {
				log.add("%d by %s", n, engine.Scheduler(ctx))
				return phase.Command{}, nil
			}))
			return nil
		}),
		gbSchedule("a", phase.StepStart, 0, note.New(1)),
		gbSchedule("b", phase.StepStart, 0, note.New(2)),
	}})
	w.say("hi")
	require.Equal(t, []string{"1 by a", "2 by b"}, log.all())
	require.Empty(t, engine.Scheduler(t.Context()))
}
