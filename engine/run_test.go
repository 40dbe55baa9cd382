package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Capability A13. Capability H1. Report 7. A run passes through all nine phases in
// order, each step and each call through its own.
func TestPhasesOfARun(t *testing.T) {
	log := &gbLog{}
	w := gbNew(t, engine.Config{
		Model:   gbScript(gbAsk(gbCall("c1", "t", ""), gbCall("c2", "t", ""))),
		Plugins: []engine.Plugin{gbTools(gbToolOf("t", nil)), gbProbe(log)},
	})
	res := w.say("go")
	require.Equal(t, []string{
		"run_start",
		"step_start", "before_inference", "after_inference",
		"tool_gate c1", "before_tool_execute c1", "after_tool_execute c1 ok",
		"tool_gate c2", "before_tool_execute c2", "after_tool_execute c2 ok",
		"step_end",
		"step_start", "before_inference", "after_inference", "step_end",
		"run_end",
	}, log.all())
	require.Equal(t, phase.Done, res.Status)
	require.Equal(t, phase.ReasonNatural, res.Reason)
	require.Equal(t, "done", res.Text)
	require.Equal(t, 2, res.Steps)
	require.Equal(t, 2, res.Stats.ToolCalls)
	require.Equal(t, "thread", res.Thread)
	require.Equal(t, "agent", res.Agent)
}

// Capability H4. Without plugins and without an observer a run works the same.
func TestRunWithoutPlugins(t *testing.T) {
	eng, err := engine.New(engine.Config{Model: gbScript(gbAsk(gbCall("c1", "nothing", "")))})
	require.NoError(t, err)
	res, err := eng.Run(t.Context(), engine.AgentSpec{ID: "a"}, engine.Prompt("hi"))
	require.NoError(t, err)
	require.Equal(t, "done", res.Text)
	require.Equal(t, phase.ReasonNatural, res.Reason)
}

// Capability A13. Fault B18. Whatever ends a run, RunEnd fires once, may commit,
// has a live context, and can read the reason and the cause; the result, the
// state and the last event agree.
func TestRunEndAlwaysFires(t *testing.T) {
	boom := errors.New("boom")
	failing := func(p phase.Phase) engine.Plugin {
		return gbHook("broken", p, func(_ context.Context, pc *phase.Context) (phase.Command, error) {
			if pc.Run().Step == 2 || p == phase.RunStart {
				return phase.Command{}, boom
			}
			return phase.Command{}, nil
		})
	}
	ending := func(p phase.Phase) engine.Plugin {
		return gbHook("ender", p, func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			cmd.EndRun("done_early", "says the hook").EndRun("second", "too late")
			return cmd, nil
		})
	}
	type scenario struct {
		name   string
		plugin engine.Plugin
		reason phase.Reason
		fault  bool
		steps  int
	}
	scenarios := []scenario{{"natural", gbKeys(), phase.ReasonNatural, false, 3}}
	for p := range phase.All() {
		if p == phase.ToolGate || p == phase.RunEnd {
			continue
		}
		steps := 1
		if p == phase.RunStart {
			steps = 0
		}
		scenarios = append(scenarios, scenario{"end at " + p.String(), ending(p), "done_early", false, steps})
		if p == phase.RunStart {
			scenarios = append(scenarios, scenario{"fault at " + p.String(), failing(p), phase.ReasonError, true, 0})
		} else {
			scenarios = append(scenarios, scenario{"fault at " + p.String(), failing(p), phase.ReasonError, true, 2})
		}
	}
	ends := state.NewCounter("gb.ends", state.Options[int64]{Scope: state.ScopeThread})
	for _, c := range scenarios {
		t.Run(c.name, func(t *testing.T) {
			var reason phase.Reason
			var cause error
			var alive bool
			w := gbNew(t, engine.Config{
				Model: gbThreeSteps(),
				Plugins: []engine.Plugin{gbTools(gbToolOf("t", nil)), gbKeys2(ends), c.plugin, gbHook("witness", phase.RunEnd, func(ctx context.Context, pc *phase.Context) (cmd phase.Command, err error) {
					l := phase.RunLifecycle.Get(pc.Snapshot())
					reason, cause, alive = l.Reason, pc.Err(), ctx.Err() == nil
					cmd.Update(ends.With(1))
					return cmd, nil
				})},
			})
			res := w.say("go")
			require.Equal(t, c.reason, res.Reason)
			require.Equal(t, c.reason, reason)
			require.True(t, alive)
			require.Equal(t, c.steps, res.Steps)
			require.Equal(t, int64(1), ends.Get(w.thread.Snapshot()))
			if c.fault {
				require.ErrorIs(t, cause, boom)
				require.ErrorIs(t, res.Err, boom)
				require.ErrorContains(t, res.Err, "broken")
			} else {
				require.NoError(t, cause)
				require.NoError(t, res.Err)
			}
			require.Len(t, gbOf[engine.RunStarted](w.events), 1)
			require.Len(t, gbOf[engine.RunFinished](w.events), 1)
			require.Equal(t, c.reason, gbOf[engine.RunFinished](w.events)[0].Reason)
			l := phase.RunLifecycle.Get(w.thread.Snapshot())
			require.Equal(t, phase.Done, l.Status)
			require.True(t, l.Ended)
			require.Equal(t, c.reason, l.Reason)
			gbPaired(t, w.messages())
			require.Equal(t, phase.ReasonNatural, gbAgain(t, w).Reason)
		})
	}
}

// gbKeys2 is gbKeys under another name.
func gbKeys2(keys ...state.AnyKey) engine.Plugin {
	return engine.NewPlugin("keys2", func(r *engine.Registrar) error {
		r.Key(keys...)
		return nil
	})
}

// gbAgain runs on the same thread with none of the plugins active but the keys.
func gbAgain(t *testing.T, w *gbWorld) *engine.Result {
	t.Helper()
	spec := engine.AgentSpec{ID: "again", ActiveHookFilter: []string{"keys2"}}
	res, err := w.thread.Run(t.Context(), spec, engine.Prompt("again"))
	require.NoError(t, err)
	return res
}

// Of several ends the first committed counts, for the state and the result alike,
// also when something fails on the way out.
func TestFirstEndCounts(t *testing.T) {
	boom := errors.New("boom")
	w := gbNew(t, engine.Config{Model: gbScript(), Plugins: []engine.Plugin{
		gbHook("ender", phase.AfterInference, func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			cmd.EndRun("budget", "spent")
			return cmd, nil
		}),
		gbHook("broken", phase.StepEnd, func(context.Context, *phase.Context) (phase.Command, error) { return phase.Command{}, boom }),
	}})
	res := w.say("go")
	l := phase.RunLifecycle.Get(w.thread.Snapshot())
	require.Equal(t, phase.Reason("budget"), l.Reason)
	require.Equal(t, l.Reason, res.Reason)
	require.Equal(t, l.Detail, res.Detail)
	require.ErrorIs(t, res.Err, boom, "what went wrong is not lost")
	require.Equal(t, l.Reason, gbOf[engine.RunFinished](w.events)[0].Reason)
}

// A RunEnd hook that fails or hangs does not change why the run ended.
func TestFaultAtRunEnd(t *testing.T) {
	boom := errors.New("boom")
	w := gbNew(t, engine.Config{Model: gbScript(), Plugins: []engine.Plugin{
		gbHook("broken", phase.RunEnd, func(context.Context, *phase.Context) (phase.Command, error) { return phase.Command{}, boom }),
	}})
	res := w.say("go")
	require.Equal(t, phase.ReasonNatural, res.Reason)
	require.ErrorIs(t, res.Err, boom)
	require.Equal(t, phase.Done, res.Status)
}

// Capability A13. The moves of a run's status; all others are refused by the state.
func TestRunStatusMoves(t *testing.T) {
	all := []phase.RunStatus{phase.Created, phase.Running, phase.Waiting, phase.Done}
	allowed := map[phase.RunStatus][]phase.RunStatus{
		phase.Created: {phase.Running}, phase.Running: {phase.Waiting, phase.Done}, phase.Waiting: {phase.Running, phase.Done},
	}
	path := map[phase.RunStatus][]phase.RunStatus{
		phase.Running: {phase.Running}, phase.Waiting: {phase.Running, phase.Waiting}, phase.Done: {phase.Running, phase.Done},
	}
	for _, from := range all {
		for _, to := range all {
			store, err := state.NewStore(state.Config{Keys: phase.Keys()})
			require.NoError(t, err)
			move := func(s phase.RunStatus) error {
				_, err := store.Commit(state.Batch{Updates: []state.Update{phase.RunLifecycle.With(phase.LifecycleUpdate{Status: s})}})
				return err
			}
			for _, s := range path[from] {
				require.NoError(t, move(s))
			}
			ok := from == to
			for _, s := range allowed[from] {
				ok = ok || s == to
			}
			if err := move(to); ok {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, fmt.Sprintf("from %s to %s", from, to))
			}
		}
	}
}

// Input that cannot be used is refused before anything runs or changes.
func TestInputIsChecked(t *testing.T) {
	w := gbNew(t, engine.Config{Model: gbScript()})
	for name, m := range map[string]inference.Message{
		"tool result": inference.ToolMessage(inference.ToolResult{CallID: "c"}),
		"no role":     {Text: "x"},
		"tool calls":  inference.Assistant("", gbCall("c1", "t", "")),
	} {
		_, err := w.thread.Run(t.Context(), w.spec, engine.Input{Messages: []inference.Message{inference.User("ok"), m}})
		require.ErrorIs(t, err, engine.ErrInput, name)
		require.ErrorContains(t, err, "message 1")
	}
	_, err := w.thread.Run(t.Context(), engine.AgentSpec{}, engine.Prompt("hi"))
	require.ErrorIs(t, err, engine.ErrSpec)
	require.Zero(t, w.thread.Snapshot().Revision())
	require.Empty(t, w.events.all())
	// The zero input goes on with the thread as it is.
	require.Equal(t, phase.ReasonNatural, w.run(engine.Input{}).Reason)
	require.Len(t, w.messages(), 1)
}

// The caller keeps what it gave: changing the input or the spec later changes
// nothing.
func TestInputAndSpecAreCopied(t *testing.T) {
	in := engine.Input{Messages: []inference.Message{{Role: inference.RoleUser, Text: "hi", Parts: []inference.Part{{Kind: inference.PartText, Text: "part"}}}}}
	spec := engine.AgentSpec{ID: "agent", StopConditions: []engine.StopCondition{engine.StopAfterRounds(1)}}
	w := gbNew(t, engine.Config{Plugins: []engine.Plugin{gbTools(gbToolOf("t", nil))}, Model: inference.ModelFunc(func(context.Context, inference.Request) (inference.Response, error) {
		in.Messages[0].Text = "changed"
		in.Messages[0].Parts[0].Text = "changed"
		spec.StopConditions[0] = engine.StopAfterRounds(100)
		return inference.Response{Message: inference.Assistant("", gbCall("c", "t", ""))}, nil
	})})
	w.spec = spec
	res := w.run(in)
	require.Equal(t, 1, res.Steps)
	require.Equal(t, "hi", w.messages()[0].Text)
	require.Equal(t, "part", w.messages()[0].Parts[0].Text)
}

// A thread takes one run at a time; after the engine was closed it takes none.
func TestOneRunPerThread(t *testing.T) {
	inside, release := make(chan struct{}), make(chan struct{})
	w := gbNew(t, engine.Config{Model: gbScript(func(ctx context.Context, r inference.Request) (inference.Response, error) {
		close(inside)
		<-release
		return gbSay("done")(ctx, r)
	})})
	var wg sync.WaitGroup
	wg.Go(func() { w.say("first") })
	<-inside
	_, err := w.thread.Run(t.Context(), w.spec, engine.Prompt("second"))
	require.ErrorIs(t, err, engine.ErrBusy)
	close(release)
	wg.Wait()
	require.Equal(t, phase.ReasonNatural, w.say("third").Reason)
	require.NoError(t, w.engine.Close(t.Context()))
	_, err = w.thread.Run(t.Context(), w.spec, engine.Prompt("late"))
	require.ErrorIs(t, err, engine.ErrClosed)
}

// Keys of the run's scope start anew with each run, those of the thread's stay.
func TestScopesOverTwoRuns(t *testing.T) {
	run := state.NewCounter("gb.run", state.Options[int64]{})
	thread := state.NewCounter("gb.thread", state.Options[int64]{Scope: state.ScopeThread})
	w := gbNew(t, engine.Config{Model: gbScript(), Plugins: []engine.Plugin{gbKeys(run, thread), gbHook("count", phase.RunStart, func(context.Context, *phase.Context) (cmd phase.Command, err error) {
		cmd.Update(run.With(1), thread.With(1))
		return cmd, nil
	})}})
	w.say("one")
	w.say("two")
	require.Equal(t, int64(1), run.Get(w.thread.Snapshot()))
	require.Equal(t, int64(2), thread.Get(w.thread.Snapshot()))
	require.Equal(t, []string{"one", "done", "two", "done"}, gbTexts(w.messages()))
}

// Fault F27. Every phase has the same context: agent, run, thread and step.
func TestContextIsCompleteInEveryPhase(t *testing.T) {
	log := &gbLog{}
	w := gbNew(t, engine.Config{
		Model: gbScript(gbAsk(gbCall("c1", "t", `{"a":1}`))),
		Plugins: []engine.Plugin{gbTools(gbToolOf("t", nil)), engine.NewPlugin("probe", func(r *engine.Registrar) error {
			for p := range phase.All() {
				if p == phase.ToolGate {
					continue
				}
				r.Hook(p, phase.HookFunc(func(_ context.Context, pc *phase.Context) (phase.Command, error) {
					_, req := pc.Request()
					_, resp := pc.Response()
					log.add("%s agent=%s/%s run=%s thread=%s mode=%s step=%d request=%v response=%v call=%s tool=%s messages=%d",
						pc.Phase(), pc.Agent().ID, pc.Agent().Model, pc.Run().ID, pc.Run().Thread, pc.Run().Mode, pc.Run().Step, req, resp, pc.Call().ID, pc.Tool().Name, pc.Messages().Len())
					return phase.Command{}, nil
				}))
			}
			return nil
		})},
	})
	w.spec.ModelID = "m"
	in := engine.Prompt("hi")
	in.RunID, in.Mode = "r1", "batch"
	w.run(in)
	const head = " agent=agent/m run=r1 thread=thread mode=batch "
	require.Equal(t, []string{
		"run_start" + head + "step=0 request=false response=false call= tool= messages=1",
		"step_start" + head + "step=1 request=false response=false call= tool= messages=1",
		"before_inference" + head + "step=1 request=false response=false call= tool= messages=1",
		"after_inference" + head + "step=1 request=true response=true call= tool= messages=2",
		"before_tool_execute" + head + "step=1 request=true response=true call=c1 tool=t messages=2",
		"after_tool_execute" + head + "step=1 request=true response=true call=c1 tool=t messages=2",
		"step_end" + head + "step=1 request=true response=true call= tool= messages=3",
		"step_start" + head + "step=2 request=false response=false call= tool= messages=3",
		"before_inference" + head + "step=2 request=false response=false call= tool= messages=3",
		"after_inference" + head + "step=2 request=true response=true call= tool= messages=4",
		"step_end" + head + "step=2 request=true response=true call= tool= messages=4",
		"run_end" + head + "step=2 request=true response=true call= tool= messages=4",
	}, log.all())
}

// Capability G9. 1,000 runs at the same time on one engine: none sees another's
// state, messages, tools or results.
func TestThousandRunsDoNotMix(t *testing.T) {
	gbNoLeaks(t)
	mine := state.NewCell[string]("gb.mine", state.Options[string]{})
	tool := gbToolOf("t", func(_ context.Context, pc *phase.Context) (engine.Output, error) {
		return engine.Text(mine.Get(pc.Snapshot()) + string(pc.Call().Args)), nil
	})
	model := inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
		name := r.Messages[0].Text
		if len(r.Messages) == 1 {
			return inference.Response{Message: inference.Assistant("", gbCall("c1", "t", inference.JSON(`"`+name+`"`)))}, nil
		}
		return inference.Response{Message: inference.Assistant(name + " got " + r.Messages[2].Text)}, nil
	})
	w := gbNew(t, engine.Config{Model: model, NewID: nil, Plugins: []engine.Plugin{
		gbTools(tool), gbKeys(mine),
		gbHook("own", phase.RunStart, func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
			if mine.Get(pc.Snapshot()) != "" {
				return cmd, errors.New("somebody else's state")
			}
			cmd.Update(mine.With(pc.Messages().At(0).Text))
			return cmd, nil
		}),
	}})
	const n = 1000
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			name := fmt.Sprintf("run%d", i)
			res, err := w.engine.Run(t.Context(), w.spec, engine.Prompt(name))
			switch want := fmt.Sprintf("%s got %s%q", name, name, name); {
			case err != nil:
				errs[i] = err
			case res.Err != nil:
				errs[i] = res.Err
			case res.Text != want:
				errs[i] = fmt.Errorf("got %q, want %q", res.Text, want)
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	// Events of one run are numbered by themselves, without gaps.
	last := map[string]uint64{}
	for _, e := range w.events.all() {
		h := e.Head()
		require.Equal(t, last[h.Run]+1, h.Seq)
		last[h.Run] = h.Seq
	}
	require.Len(t, last, n)
}
