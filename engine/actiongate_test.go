package engine_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// compactKind stands for an internal action that gates may look at.
var compactKind = phase.NewAction[[]string]("compact", phase.StepEnd)

// gaCompact is a plugin whose handler logs the payload.
func gaCompact() engine.Plugin {
	return gaAct(compactKind.Handle(func(_ context.Context, _ *phase.Context, args []string) (cmd phase.Command, err error) {
		for _, a := range args {
			cmd.Update(actionsLog.Append("compacted " + a))
		}
		return cmd, nil
	}))
}

type compactCheck = func(ctx context.Context, pc *phase.Context, args []string) (gate.Ruling, error)

func gaGuard(name string, check compactCheck, options ...engine.GateOption) engine.Plugin {
	return gaPlugin(name, func(r *engine.Registrar) { r.ActionGate(gate.OnAction(compactKind, check), options...) })
}

func gaRules(r gate.Ruling) compactCheck {
	return func(context.Context, *phase.Context, []string) (gate.Ruling, error) { return r, nil }
}

func gaLog(th *engine.Thread) []string { return actionsLog.Get(th.Snapshot()).Slice() }

// Capability M7. A gate cancels an internal action or puts something else in its place,
// which is committed in the name of the gate's plugin; the strictest ruling counts,
// whatever the order of the plugins.
func TestActionGates(t *testing.T) {
	var instead phase.Command
	instead.Update(actionsLog.Append("kept short"))
	cancel, replace := gate.Cancel("not now"), gate.Replace("has its own way", instead)
	for name, c := range map[string]struct {
		guards []engine.Plugin
		log    []string
		want   engine.ActionReport
	}{
		"no gate":      {nil, []string{"compacted a"}, engine.ActionReport{Status: engine.ActionDone}},
		"no objection": {[]engine.Plugin{gaGuard("g", gaRules(gate.Ruling{}))}, []string{"compacted a"}, engine.ActionReport{Status: engine.ActionDone}},
		"cancelled":    {[]engine.Plugin{gaGuard("g", gaRules(cancel))}, nil, engine.ActionReport{Status: engine.ActionCancelled, By: "g", Reason: "not now"}},
		"replaced":     {[]engine.Plugin{gaGuard("g", gaRules(replace))}, []string{"kept short"}, engine.ActionReport{Status: engine.ActionReplaced, By: "g", Reason: "has its own way"}},
		"cancel first": {[]engine.Plugin{gaGuard("g", gaRules(cancel)), gaGuard("h", gaRules(replace))}, nil, engine.ActionReport{Status: engine.ActionCancelled, By: "g", Reason: "not now"}},
		"cancel last":  {[]engine.Plugin{gaGuard("g", gaRules(replace)), gaGuard("h", gaRules(cancel))}, nil, engine.ActionReport{Status: engine.ActionCancelled, By: "h", Reason: "not now"}},
		"a tie":        {[]engine.Plugin{gaGuard("g", gaRules(replace)), gaGuard("h", gaRules(gate.Replace("x", phase.Command{})))}, []string{"kept short"}, engine.ActionReport{Status: engine.ActionReplaced, By: "g", Reason: "has its own way"}},
	} {
		t.Run(name, func(t *testing.T) {
			th := gaPlugins(t, append([]engine.Plugin{gaCompact()}, c.guards...)...)
			gaSchedule(t, th, compactKind.New([]string{"a"}))
			rep := gaPhase(t, th, phase.StepEnd)
			require.Len(t, rep.Actions, 1)
			got := rep.Actions[0]
			require.Equal(t, c.want, engine.ActionReport{Status: got.Status, By: got.By, Reason: got.Reason})
			require.Equal(t, "compact", got.Action)
			require.NoError(t, got.Err)
			require.Equal(t, append([]string{}, c.log...), gaLog(th))
			require.Empty(t, gaDead(th), "nothing failed")
			require.Empty(t, gaPhase(t, th, phase.StepEnd).Actions, "it left the queue")
		})
	}
}

// Capability M7. What happened is an event, and provenance names the gate's plugin as
// the writer.
func TestActionGateIsToldAndOwnsWhatItDoes(t *testing.T) {
	var instead phase.Command
	instead.Update(actionsCell.With(7))
	config, rec := enginetest.Config(t, gaCompact(), gaGuard("g", gaRules(gate.Replace("why", instead))),
		gaOn("asks", phase.StepEnd, gaDoes(scheduled(compactKind.New(nil)))))
	th := gaThread(t, config)
	res := gaRun(t, th)
	require.NoError(t, res.Err)
	fates := enginetest.Select[engine.ActionFinished](rec.Events())
	require.Len(t, fates, 1)
	require.Equal(t, engine.ActionReplaced, fates[0].Status)
	require.Equal(t, []string{"asks", "g", "why"}, []string{fates[0].Plugin, fates[0].By, fates[0].Reason})
	require.Zero(t, res.Stats.DeadLetters)
	require.Zero(t, res.Stats.Actions, "its handler did not run")
	wrote := false
	for _, c := range enginetest.Select[engine.Committed](rec.Events()) {
		for _, w := range c.Writes {
			wrote = wrote || w.Key == actionsCell.Name() && w.Plugin == "g"
		}
	}
	require.True(t, wrote)
}

func scheduled(actions ...phase.Action) (cmd phase.Command) {
	cmd.Schedule(actions...)
	return cmd
}

// An action is replaced by itself with other arguments: its gates are asked about those.
func TestActionGateChangesArguments(t *testing.T) {
	th := gaPlugins(t, gaCompact(), gaGuard("g", func(_ context.Context, _ *phase.Context, args []string) (gate.Ruling, error) {
		if len(args) < 2 {
			return gate.Ruling{}, nil
		}
		var cmd phase.Command
		cmd.Schedule(compactKind.New(args[1:]))
		args[0] = "changed in the gate's own copy"
		return gate.Replace("less", cmd), nil
	}))
	gaSchedule(t, th, compactKind.New([]string{"a", "b", "c"}))
	rep := gaPhase(t, th, phase.StepEnd)
	require.Equal(t, []string{"compacted c"}, gaLog(th))
	require.Equal(t, 3, rep.Rounds)

	// One that never gives in is stopped like any other actions that do not end.
	th = gaPlugins(t, gaCompact(), gaGuard("g", gaRules(gate.Replace("again", scheduled(compactKind.New(nil))))))
	gaSchedule(t, th, compactKind.New(nil))
	_, err := th.RunPhase(t.Context(), engine.AgentSpec{ID: "a"}, phase.StepEnd)
	require.ErrorIs(t, err, phase.ErrNotConverged)
}

// A gate that fails keeps the action from running, and the action is not lost: it can
// be requeued. With FailOpen it has no say.
func TestActionGateFailsClosed(t *testing.T) {
	boom := errors.New("boom")
	for name, check := range map[string]compactCheck{
		"error": func(context.Context, *phase.Context, []string) (gate.Ruling, error) { return gate.Ruling{}, boom },
		"panic": func(context.Context, *phase.Context, []string) (gate.Ruling, error) { panic(boom) },
		"goexit": func(context.Context, *phase.Context, []string) (gate.Ruling, error) {
			runtime.Goexit()
			return gate.Ruling{}, nil
		},
		"late": func(ctx context.Context, _ *phase.Context, _ []string) (gate.Ruling, error) {
			<-ctx.Done()
			return gate.Cancel("late"), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var healed atomic.Bool
				th := gaPlugins(t, gaCompact(), gaGuard("g", func(ctx context.Context, pc *phase.Context, args []string) (gate.Ruling, error) {
					if healed.Load() {
						return gate.Ruling{}, nil
					}
					return check(ctx, pc, args)
				}, engine.Timeout(time.Minute)))
				gaSchedule(t, th, compactKind.New([]string{"a"}))
				rep := gaPhase(t, th, phase.StepEnd)
				require.Equal(t, engine.ActionDead, rep.Actions[0].Status)
				require.Equal(t, "g", rep.Actions[0].By)
				require.ErrorIs(t, rep.Actions[0].Err, gate.ErrFailed)
				require.ErrorContains(t, rep.Actions[0].Err, "policy of g")
				require.Empty(t, gaLog(th))
				for id := range th.DeadLetters() {
					require.NoError(t, th.Requeue(t.Context(), id))
				}
				healed.Store(true)
				gaPhase(t, th, phase.StepEnd)
				require.Equal(t, []string{"compacted a"}, gaLog(th))
			})
		})
	}
	th := gaPlugins(t, gaCompact(), gaGuard("g", func(context.Context, *phase.Context, []string) (gate.Ruling, error) { panic(boom) }, engine.FailOpen()))
	gaSchedule(t, th, compactKind.New([]string{"a"}))
	require.Equal(t, engine.ActionDone, gaPhase(t, th, phase.StepEnd).Actions[0].Status)
}

// Gates that are not active have no say, a gate on an action that nobody handles is a
// mistake, and so is one without a check.
func TestActionGateRegistration(t *testing.T) {
	guard := gaGuard("g", gaRules(gate.Cancel("no")))
	th := gaPlugins(t, gaCompact(), guard)
	gaSchedule(t, th, compactKind.New([]string{"a"}))
	_, err := th.RunPhase(t.Context(), engine.AgentSpec{ID: "a", ActiveHookFilter: []string{"act"}}, phase.StepEnd)
	require.NoError(t, err)
	require.Equal(t, []string{"compacted a"}, gaLog(th))

	_, err = engine.New(engine.Config{Plugins: []engine.Plugin{guard, gaAct(phase.NewAction[int]("compakt", phase.StepEnd).Handle(gaNothing))}})
	require.ErrorIs(t, err, engine.ErrRegistration)
	require.ErrorContains(t, err, `plugin g: a gate on action "compact", which no plugin handles (nearest known: "compakt")`)
	_, err = engine.New(engine.Config{Plugins: []engine.Plugin{gaCompact(), gaGuard("g", nil)}})
	require.ErrorIs(t, err, engine.ErrRegistration)

	m := manifestOf(t, gaCompact(), guard)
	require.Equal(t, engine.GateManifest{ID: "g/compact/0", Phase: phase.StepEnd, Action: "compact"}, m.Plugins[1].Gates[0])
}

// The gates on an action decide about the state that it commits on: when that changes
// meanwhile they are asked again.
func TestActionGateIsAskedAgainAfterAConflict(t *testing.T) {
	var th *engine.Thread
	asked := 0
	th = gaPlugins(t, gaCompact(), gaGuard("g", func(ctx context.Context, pc *phase.Context, _ []string) (gate.Ruling, error) {
		asked++
		seen := actionsCell.Get(pc.Snapshot())
		if asked == 1 {
			_, err := th.Submit(ctx, "beside", gaUpdates(actionsCell.With(10)))
			if err != nil {
				return gate.Ruling{}, err
			}
		}
		return gate.Replace("counts on", gaUpdates(actionsCell.With(seen+1))), nil
	}))
	gaSchedule(t, th, compactKind.New(nil))
	rep := gaPhase(t, th, phase.StepEnd)
	require.Equal(t, engine.ActionReplaced, rep.Actions[0].Status)
	require.Equal(t, 2, asked)
	require.Equal(t, 11, actionsCell.Get(th.Snapshot()), "what was written beside is not lost")
}

// Report 8. A gate that hangs does not hold up a run that is cancelled, and the action
// stays.
func TestActionGateHangsInACancelledRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		release := make(chan struct{})
		th := gaPlugins(t, gaCompact(), gaGuard("g", func(context.Context, *phase.Context, []string) (gate.Ruling, error) {
			cancel()
			<-release
			return gate.Cancel("too late"), nil
		}))
		gaSchedule(t, th, compactKind.New([]string{"a"}))
		_, err := th.RunPhase(ctx, engine.AgentSpec{ID: "a"}, phase.StepEnd)
		require.ErrorIs(t, err, context.Canceled)
		close(release)
		require.Empty(t, gaDead(th))
	})
}

// Report 6. A delegated run is under the action gates of the run that delegated.
func TestActionGatesOfTheParent(t *testing.T) {
	config, rec := enginetest.Config(t, gaCompact(), gaGuard("g", func(_ context.Context, pc *phase.Context, _ []string) (gate.Ruling, error) {
		return gate.Cancel("not below " + pc.Agent().ID), nil
	}), gaOn("asks", phase.StepEnd, gaDoes(scheduled(compactKind.New([]string{"a"})))))
	parent := engine.AgentSpec{ID: "parent", ActiveHookFilter: []string{"g"}, Delegates: []string{"child"}}
	config.Agents = []engine.AgentSpec{parent, {ID: "child", ActiveHookFilter: []string{"asks"}}}
	config.Model = enginetest.NewScript(
		enginetest.Call("c1", engine.DelegatePrefix+"child", inference.JSON(`{"input": "go"}`)), enginetest.Say("child's"), enginetest.Say("done"))
	res, err := gaNew(t, config).Run(t.Context(), parent, engine.Prompt("go"))
	require.NoError(t, err)
	require.NoError(t, res.Err)
	fates := enginetest.Select[engine.ActionFinished](rec.Events())
	require.NotEmpty(t, fates)
	for _, f := range fates {
		require.Equal(t, engine.ActionCancelled, f.Status)
		require.Equal(t, "not below parent", f.Reason)
	}
}

// Capability M7. A handoff that was scheduled as an action is cancelled, or sent to
// another agent.
func TestActionGateOnHandOver(t *testing.T) {
	for name, c := range map[string]struct {
		ruling gate.Ruling
		agent  string
	}{
		"free":      {gate.Ruling{}, "b"},
		"cancelled": {gate.Cancel("stay"), "a"},
		"replaced":  {gate.Replace("c is better", gaUpdates(engine.HandOff("c"))), "c"},
	} {
		t.Run(name, func(t *testing.T) {
			config, _ := enginetest.Config(t,
				gaOn("leaves", phase.StepStart, func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
					if pc.Run().Step == 1 && pc.Agent().ID == "a" {
						cmd.Schedule(engine.HandOver.New("b"))
					}
					return cmd, nil
				}),
				gaPlugin("g", func(r *engine.Registrar) {
					r.ActionGate(gate.OnAction(engine.HandOver, func(_ context.Context, _ *phase.Context, to string) (gate.Ruling, error) {
						require.Equal(t, "b", to)
						return c.ruling, nil
					}))
				}),
				gaTools(engine.NewTool(inference.ToolSpec{Name: "noop"}, func(context.Context, *phase.Context, struct{}) (engine.Output, error) { return engine.Text("ok"), nil })))
			config.Agents = []engine.AgentSpec{{ID: "a"}, {ID: "b"}, {ID: "c"}}
			config.Model = enginetest.NewScript(enginetest.Call("c1", "noop", inference.JSON(`{}`)), enginetest.Say("done"))
			res, err := gaNew(t, config).Run(t.Context(), config.Agents[0], engine.Prompt("go"))
			require.NoError(t, err)
			require.NoError(t, res.Err)
			require.Equal(t, c.agent, res.Agent)
		})
	}
}
