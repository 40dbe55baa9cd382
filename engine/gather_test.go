package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

var (
	gatherCell  = state.NewCell[int]("gather.cell", state.Options[int]{})
	gatherOther = state.NewCell[int]("gather.other", state.Options[int]{})
	gatherCount = state.NewCounter("gather.count", state.Options[int64]{})
	gatherLog   = state.NewLog("gather.log", state.Options[string]{})
	gatherTen   = state.NewCounter("gather.ten", state.Options[int64]{Initial: func() int64 { return 10 }})
	gatherMap   = state.NewCell("gather.map", state.Options[map[string][]int]{
		Initial: func() map[string][]int { return map[string][]int{"a": {1}} },
		Clone: func(m map[string][]int) map[string][]int {
			out := map[string][]int{}
			for k, v := range m {
				out[k] = slices.Clone(v)
			}
			return out
		},
	})
	gatherShared = state.NewCell("gather.shared", state.Options[[]int]{Shared: true})
)

// Capability A3. Fault F04. Every hook of a phase runs while the others do, on one snapshot,
// and one commit holds what all of them wrote.
func TestGatherRunsHooksInParallelOnOneSnapshot(t *testing.T) {
	const hooks = 8
	var arrived sync.WaitGroup
	arrived.Add(hooks)
	var mu sync.Mutex
	snaps := map[*state.Snapshot]int{}
	plugins := []engine.Plugin{gaKeys(gatherCount, gatherLog)}
	for i := range hooks {
		plugins = append(plugins, gaOn(fmt.Sprintf("p%d", i), phase.StepStart, func(_ context.Context, pc *phase.Context) (phase.Command, error) {
			arrived.Done()
			arrived.Wait() // returns only when all hooks run at the same time
			mu.Lock()
			snaps[pc.Snapshot()]++
			mu.Unlock()
			return gaUpdates(gatherCount.With(1), gatherLog.Append(fmt.Sprint(i))), nil
		}))
	}
	th := gaPlugins(t, plugins...)
	before := th.Snapshot()
	rep := gaPhase(t, th, phase.StepStart)
	require.Equal(t, map[*state.Snapshot]int{before: hooks}, snaps)
	require.Equal(t, before.Revision()+1, rep.Revision, "one commit")
	require.Equal(t, 1, rep.Commits)
	require.Zero(t, rep.Retries)
	require.EqualValues(t, hooks, gatherCount.Get(th.Snapshot()))
	require.Equal(t, []string{"0", "1", "2", "3", "4", "5", "6", "7"}, gatherLog.Get(th.Snapshot()).Slice())
	require.Zero(t, gatherCount.Get(before), "the older snapshot is as it was")
}

// Capability A3. Limits.Concurrency bounds how many hooks run at the same time,
// and all of them run.
func TestGatherKeepsConcurrencyLimit(t *testing.T) {
	var now, most, ran atomic.Int64
	plugins := []engine.Plugin{gaKeys(gatherCount)}
	for i := range 32 {
		plugins = append(plugins, gaOn(fmt.Sprintf("p%d", i), phase.StepStart, func(context.Context, *phase.Context) (phase.Command, error) {
			n := now.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			for range 20 {
				runtime.Gosched()
			}
			now.Add(-1)
			ran.Add(1)
			return gaUpdates(gatherCount.With(1)), nil
		}))
	}
	th := gaThread(t, engine.Config{Plugins: plugins, Limits: engine.Limits{Concurrency: 3}})
	gaPhase(t, th, phase.StepStart)
	require.EqualValues(t, 32, ran.Load())
	require.LessOrEqual(t, most.Load(), int64(3))
	require.EqualValues(t, 32, gatherCount.Get(th.Snapshot()))
}

// Capability A3. A phase whose hooks have nothing to say makes no commit.
func TestGatherOfEmptyCommandsCommitsNothing(t *testing.T) {
	th := gaPlugins(t, gaOn("a", phase.StepEnd, gaDoes(phase.Command{})), gaOn("b", phase.StepEnd, gaDoes(phase.Command{})))
	rep := gaPhase(t, th, phase.StepEnd)
	require.Zero(t, rep.Revision)
	require.Zero(t, rep.Commits)
	require.Equal(t, []engine.HookStatus{engine.HookCommitted, engine.HookCommitted}, gaStatuses(rep))
}

// Capability A2. Hooks run in registration order of the plugins, whatever the
// order in which a filter lists them, and only those it lists.
func TestGatherFilterKeepsRegistrationOrder(t *testing.T) {
	plugins := []engine.Plugin{gaKeys(gatherLog)}
	for _, name := range []string{"a", "b", "c", "d"} {
		plugins = append(plugins, gaOn(name, phase.StepStart, gaWrites(gatherLog.Append(name))))
	}
	th := gaPlugins(t, plugins...)
	rep, err := th.RunPhase(t.Context(), engine.AgentSpec{ID: "x", ActiveHookFilter: []string{"d", "a", "c"}}, phase.StepStart)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "c", "d"}, gatherLog.Get(th.Snapshot()).Slice())
	require.Len(t, rep.Hooks, 3)
	require.Equal(t, "a/step_start/0", rep.Hooks[0].Hook)
	require.Equal(t, "d", rep.Hooks[2].Plugin)
}

// Fault B03. The first value of a key counts once and is no commit, input comes
// before it, and a list can be emptied and filled by one command.
func TestGatherInitialValueAndReset(t *testing.T) {
	add := gaOn("add", phase.StepStart, gaWrites(gatherTen.With(5)))
	th := gaPlugins(t, gaKeys(gatherTen, gatherLog), add)
	require.EqualValues(t, 10, gatherTen.Get(th.Snapshot()))
	require.Zero(t, th.Snapshot().Revision(), "reading commits nothing")
	gaPhase(t, th, phase.StepStart)
	require.EqualValues(t, 15, gatherTen.Get(th.Snapshot()))

	seeded := gaPlugins(t, gaKeys(gatherTen, gatherLog), add)
	_, err := seeded.Submit(t.Context(), "input", gaUpdates(gatherTen.Reset(), gatherTen.With(90)))
	require.NoError(t, err)
	require.EqualValues(t, 100, gatherTen.Get(seeded.Snapshot()))
	gaPhase(t, seeded, phase.StepStart)
	require.EqualValues(t, 105, gatherTen.Get(seeded.Snapshot()), "the initial 10 is not added again")

	empty := gaPlugins(t, gaKeys(gatherLog), gaOn("swap", phase.StepStart, gaWrites(gatherLog.Reset(), gatherLog.Append("b"))))
	_, err = empty.Submit(t.Context(), "input", gaUpdates(gatherLog.Append("a")))
	require.NoError(t, err)
	gaPhase(t, empty, phase.StepStart)
	require.Equal(t, []string{"b"}, gatherLog.Get(empty.Snapshot()).Slice())
}

// Fault B04. What parallel hooks write to keys of their own and to a Commutative
// one is all there, whichever finishes first.
func TestGatherLosesNoParallelUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var keys []state.Cell[int]
		plugins := []engine.Plugin{gaKeys(gatherCount)}
		for i := range 5 {
			key := state.NewCell[int](fmt.Sprintf("t%d", i), state.Options[int]{})
			keys = append(keys, key)
			plugins = append(plugins, gaPlugin(fmt.Sprintf("p%d", i), func(r *engine.Registrar) {
				r.Key(key)
				r.Hook(phase.AfterInference, phase.HookFunc(func(context.Context, *phase.Context) (phase.Command, error) {
					time.Sleep(time.Duration(5-i) * time.Millisecond) // the last one finishes first
					return gaUpdates(key.With(i+1), gatherCount.With(1)), nil
				}))
			}))
		}
		th := gaPlugins(t, plugins...)
		rep := gaPhase(t, th, phase.AfterInference)
		for i, key := range keys {
			require.Equal(t, i+1, key.Get(th.Snapshot()))
		}
		require.EqualValues(t, 5, gatherCount.Get(th.Snapshot()))
		require.Equal(t, 1, rep.Commits)
	})
}

// Fault B05. Order never depends on who finishes first: 200 runs of hooks with
// random delays give the same list, and the same events to the byte.
func TestGatherOrderIsRegistrationOrder(t *testing.T) {
	want := []string{"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"}
	first := ""
	for i := range 200 {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(uint64(i), 1))
			tape := &gaTape{}
			plugins := []engine.Plugin{gaKeys(gatherLog, gatherCell)}
			for _, name := range want {
				delay := time.Duration(rnd.IntN(1000)) * time.Microsecond
				plugins = append(plugins, gaOn(name, phase.StepStart, func(_ context.Context, pc *phase.Context) (phase.Command, error) {
					time.Sleep(delay)
					cmd := gaUpdates(gatherLog.Append(name))
					if name == "p2" || name == "p5" { // a conflict in the middle changes nothing
						cmd.Update(gatherCell.With(gatherCell.Get(pc.Snapshot()) + 1))
					}
					return cmd, nil
				}))
			}
			th := gaThread(t, engine.Config{Plugins: plugins, Observers: []engine.Observer{tape}, Now: gaClock, NewID: gaIDs()})
			gaRun(t, th)
			require.Equal(t, want, gatherLog.Get(th.Snapshot()).Slice())
			require.Equal(t, 2, gatherCell.Get(th.Snapshot()))
			lines := tape.lines(t)
			if first == "" {
				first = lines
			}
			require.Equal(t, first, lines, "run %d", i)
		})
	}
}

// Fault B05. Of two hooks that set one field of the override the later registered
// wins though it finished first, and a field that only one of them set stays.
func TestGatherOverrideOrderIsRegistrationOrder(t *testing.T) {
	for i := range 20 {
		synctest.Test(t, func(t *testing.T) {
			set := func(delay time.Duration, o inference.Override) phase.HookFunc {
				return func(context.Context, *phase.Context) (cmd phase.Command, err error) {
					time.Sleep(delay)
					cmd.Schedule(engine.SetOverride.New(engine.OverrideArgs{Override: o}))
					return cmd, nil
				}
			}
			model := gaSays("done")
			th := gaThread(t, engine.Config{Model: model, Plugins: []engine.Plugin{
				gaOn("slow", phase.BeforeInference, set(time.Duration(i)*time.Millisecond, inference.Override{
					Temperature: inference.Some(0.1), MaxTokens: inference.Some(7)})),
				gaOn("fast", phase.BeforeInference, set(0, inference.Override{Temperature: inference.Some(0.9)})),
			}})
			gaRun(t, th)
			params := model.asked()[0].Params
			require.Equal(t, inference.Some(0.9), params.Temperature)
			require.Equal(t, inference.Some(7), params.MaxTokens)
		})
	}
}

// Fault B06. What a hook does to a value that it read stays with that hook.
func TestGatherHookCannotChangeWhatOthersRead(t *testing.T) {
	changed := make(chan struct{})
	var seen map[string][]int
	th := gaPlugins(t, gaKeys(gatherMap),
		gaOn("vandal", phase.StepStart, func(_ context.Context, pc *phase.Context) (phase.Command, error) {
			m := gatherMap.Get(pc.Snapshot())
			m["a"][0] = 99
			delete(m, "a")
			close(changed)
			return phase.Command{}, nil
		}),
		gaOn("reader", phase.StepStart, func(_ context.Context, pc *phase.Context) (phase.Command, error) {
			<-changed
			seen = gatherMap.Get(pc.Snapshot())
			return phase.Command{}, nil
		}))
	_, err := th.Submit(t.Context(), "input", gaUpdates(gatherMap.With(map[string][]int{"a": {1}})))
	require.NoError(t, err)
	before := th.Snapshot()
	rep := gaPhase(t, th, phase.StepStart)
	want := map[string][]int{"a": {1}}
	require.Equal(t, want, seen)
	require.Equal(t, want, gatherMap.Get(before))
	require.Equal(t, want, gatherMap.Get(th.Snapshot()))
	require.Equal(t, before.Revision(), rep.Revision)
}

// Fault B06. Report 16. With CheckFreeze a hook that changes a shared value in place
// fails its phase, which names the key, and nothing of the tier is committed.
func TestGatherCheckFreezeNamesKeyAndPhase(t *testing.T) {
	th := gaThread(t, engine.Config{CheckFreeze: true, Plugins: []engine.Plugin{
		gaKeys(gatherShared, gatherCount),
		gaOn("vandal", phase.StepEnd, func(_ context.Context, pc *phase.Context) (phase.Command, error) {
			gatherShared.Get(pc.Snapshot())[0] = 99
			return gaUpdates(gatherCount.With(1)), nil
		}),
	}})
	_, err := th.Submit(t.Context(), "input", gaUpdates(gatherShared.With([]int{1})))
	require.NoError(t, err)
	rep, err := th.RunPhase(t.Context(), gaAgent, phase.StepEnd)
	require.ErrorIs(t, err, state.ErrMutated)
	require.ErrorContains(t, err, "gather.shared")
	require.ErrorContains(t, err, "step_end")
	require.Equal(t, []engine.HookStatus{engine.HookDropped}, gaStatuses(rep))
	require.Zero(t, gatherCount.Get(th.Snapshot()))
}

// Fault B07. Snapshots are consistent under commits: two keys written together are
// never seen apart.
func TestGatherSnapshotsAreConsistent(t *testing.T) {
	const readers, commits = 16, 2000
	th := gaPlugins(t, gaKeys(gatherCell, gatherOther))
	stop := make(chan struct{})
	var apart atomic.Int64
	var wg sync.WaitGroup
	for range readers {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				s := th.Snapshot()
				for k := range s.Keys() {
					s.Value(k)
				}
				if gatherCell.Get(s) != gatherOther.Get(s) {
					apart.Add(1)
				}
				runtime.Gosched() // else a writer that ever waits waits for sixteen time slices
			}
		})
	}
	for i := range commits {
		_, err := th.Submit(t.Context(), "writer", gaUpdates(gatherCell.With(i), gatherOther.With(i)))
		require.NoError(t, err)
	}
	close(stop)
	wg.Wait()
	require.Zero(t, apart.Load())
}

// Fault B14. A hook that changes its copy of the call, the request or the response
// changes nothing for the tool, for other hooks and for the history.
func TestGatherContextIsFrozen(t *testing.T) {
	vandal := func(_ context.Context, pc *phase.Context) (phase.Command, error) {
		call := pc.Call()
		call.Args, call.Name = `{"path":"/etc"}`, "other"
		if req, ok := pc.Request(); ok {
			for i := range req.Messages {
				req.Messages[i].Text = "changed"
			}
		}
		if resp, ok := pc.Response(); ok {
			for i := range resp.Message.ToolCalls {
				resp.Message.ToolCalls[i].Args = `{"path":"/etc"}`
			}
		}
		for _, m := range pc.Messages().All() {
			for i := range m.ToolCalls {
				m.ToolCalls[i].Args = `{"path":"/etc"}`
			}
		}
		return phase.Command{}, nil
	}
	var mu sync.Mutex
	var seen []inference.JSON
	look := func(_ context.Context, pc *phase.Context) (phase.Command, error) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, pc.Call().Args)
		if resp, ok := pc.Response(); ok {
			seen = append(seen, resp.Message.ToolCalls[0].Args)
		}
		return phase.Command{}, nil
	}
	var body inference.JSON
	model := gaCalls(inference.ToolCall{ID: "c1", Name: "read", Args: `{"path":"a"}`})
	th := gaThread(t, engine.Config{Model: model, Plugins: []engine.Plugin{
		gaTools(gaTool{"read", func(_ context.Context, pc *phase.Context) (engine.Output, error) {
			body = pc.Call().Args
			return engine.Text("ok"), nil
		}}),
		gaPlugin("vandal", func(r *engine.Registrar) {
			for _, p := range []phase.Phase{phase.AfterInference, phase.BeforeToolExecute, phase.AfterToolExecute} {
				r.Hook(p, phase.HookFunc(vandal))
			}
		}),
		gaOn("look", phase.BeforeToolExecute, look),
		gaOn("later", phase.BeforeToolExecute, look, engine.Tier(1)),
	}})
	gaRun(t, th)
	const args = `{"path":"a"}`
	require.EqualValues(t, args, body)
	require.Equal(t, []inference.JSON{args, args, args, args}, seen)
	for _, m := range engine.Transcript.Get(th.Snapshot()).All() {
		require.NotEqual(t, "changed", m.Text)
		for _, c := range m.ToolCalls {
			require.EqualValues(t, args, c.Args)
		}
	}
	require.EqualValues(t, args, model.asked()[1].Messages[1].ToolCalls[0].Args)
}

// Fault B14. A result is changed through a named edit only, and the trace says
// which plugin did it.
func TestGatherResultEditIsTraced(t *testing.T) {
	tape := &gaTape{}
	th := gaThread(t, engine.Config{
		Model:     gaCalls(inference.ToolCall{ID: "c1", Name: "read", Args: "{}"}),
		Observers: []engine.Observer{tape},
		Plugins: []engine.Plugin{
			gaTools(gaTool{name: "read"}),
			gaOn("redact", phase.AfterToolExecute, func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
				cmd.EditContent(pc.Call().ID, "[redacted]")
				return cmd, nil
			}),
		},
	})
	gaRun(t, th)
	require.Equal(t, "[redacted]", gaOf[engine.ToolFinished](tape)[0].Result.Content)
	found := false
	for _, c := range gaOf[engine.Committed](tape) {
		for _, w := range c.Writes {
			found = found || w.Plugin == "redact" && w.Key == "fixpoint.result.content" && w.Entry == "c1"
		}
	}
	require.True(t, found, "a commit names the plugin that edited the result")
}

// Capability H6. A hook is told what it needs and nothing of the engine: the
// context of each phase holds that phase's data.
func TestGatherContextOfEachPhase(t *testing.T) {
	type facts struct {
		Request, Response, Result bool
		Call                      string
		Step, Round               int
	}
	var mu sync.Mutex
	seen := map[phase.Phase]facts{}
	th := gaThread(t, engine.Config{
		Model: gaCalls(inference.ToolCall{ID: "c1", Name: "read", Args: "{}"}),
		Plugins: []engine.Plugin{gaTools(gaTool{name: "read"}), gaPlugin("look", func(r *engine.Registrar) {
			for p := range phase.All() {
				if p == phase.ToolGate {
					continue
				}
				r.Hook(p, phase.HookFunc(func(_ context.Context, pc *phase.Context) (phase.Command, error) {
					mu.Lock()
					defer mu.Unlock()
					if _, again := seen[p]; again {
						return phase.Command{}, nil
					}
					_, req := pc.Request()
					_, resp := pc.Response()
					seen[p] = facts{req, resp, pc.Result().CallID != "", pc.Call().ID, pc.Run().Step, pc.Round()}
					require.Equal(t, "agent", pc.Agent().ID)
					require.Equal(t, "thread", pc.Run().Thread)
					require.Equal(t, p, pc.Phase())
					return phase.Command{}, nil
				}))
			}
		})},
	})
	gaRun(t, th)
	require.Equal(t, map[phase.Phase]facts{
		phase.RunStart:          {},
		phase.StepStart:         {Step: 1},
		phase.BeforeInference:   {Step: 1},
		phase.AfterInference:    {Step: 1, Request: true, Response: true},
		phase.BeforeToolExecute: {Step: 1, Request: true, Response: true, Call: "c1"},
		phase.AfterToolExecute:  {Step: 1, Request: true, Response: true, Call: "c1", Result: true},
		phase.StepEnd:           {Step: 1, Request: true, Response: true},
		phase.RunEnd:            {Step: 2, Request: true, Response: true},
	}, seen)
}

// Capability A4. A command that names a key, an action or an effect that nobody
// registered is refused whole, and the error names the plugin that lied.
func TestGatherRefusesCommandsThatCannotBe(t *testing.T) {
	stranger := state.NewCell[int]("stranger", state.Options[int]{})
	action := phase.NewAction[int]("stranger", phase.StepEnd)
	effect := effects.NewSpec[int]("stranger")
	for name, bad := range map[string]phase.Command{
		"key":           gaUpdates(gatherCount.With(1), stranger.With(1)),
		"zero key":      gaUpdates(gatherCount.With(1), state.Cell[int]{}.With(1)),
		"read":          *new(phase.Command).Update(gatherCount.With(1)).Reads(stranger),
		"action":        *new(phase.Command).Update(gatherCount.With(1)).Schedule(action.New(1)),
		"zero action":   *new(phase.Command).Update(gatherCount.With(1)).Schedule(phase.Action{}),
		"effect":        *new(phase.Command).Update(gatherCount.With(1)).Emit(effect.New(1)),
		"zero effect":   *new(phase.Command).Update(gatherCount.With(1)).Emit(effects.Effect{}),
		"bad payload":   *new(phase.Command).Update(gatherCount.With(1)).Emit(effects.NewSpec[chan int]("chan").New(make(chan int))),
		"engine status": gaUpdates(gatherCount.With(1), phase.RunLifecycle.With(phase.LifecycleUpdate{Status: phase.Done})),
	} {
		for _, rule := range []engine.ErrorRule{engine.Fail, engine.Skip} {
			for _, alone := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s %s alone=%t", name, rule, alone), func(t *testing.T) {
					plugins := []engine.Plugin{gaKeys(gatherCount), gaOn("liar", phase.StepStart, gaDoes(bad), engine.OnError(rule))}
					if !alone {
						plugins = append(plugins, gaOn("honest", phase.StepStart, gaWrites(gatherCount.With(10))))
					}
					th := gaPlugins(t, plugins...)
					rep, err := th.RunPhase(t.Context(), gaAgent, phase.StepStart)
					require.Equal(t, "liar", rep.Hooks[0].Plugin)
					require.Error(t, rep.Hooks[0].Err)
					var he *engine.HookError
					require.ErrorAs(t, rep.Hooks[0].Err, &he)
					require.Equal(t, "liar", he.Plugin)
					if rule == engine.Fail {
						require.ErrorAs(t, err, &he)
						require.Zero(t, th.Snapshot().Revision())
						require.Equal(t, engine.HookFailed, rep.Hooks[0].Status)
						return
					}
					require.NoError(t, err)
					require.Equal(t, engine.HookSkipped, rep.Hooks[0].Status)
					if alone {
						require.Zero(t, th.Snapshot().Revision())
					} else {
						require.EqualValues(t, 10, gatherCount.Get(th.Snapshot()))
					}
				})
			}
		}
	}
}

// Capability A3. What a hook keeps of the command it returned cannot change what
// the engine commits, and a command may be returned again and again.
func TestGatherCommandIsTakenAsReturned(t *testing.T) {
	var kept phase.Command
	kept.Update(gatherCount.With(1))
	th := gaPlugins(t, gaKeys(gatherCount),
		gaOn("a", phase.StepStart, func(context.Context, *phase.Context) (phase.Command, error) {
			out := kept
			kept.Update(gatherCount.With(100)) // may reuse the memory of out
			kept = out
			return out, nil
		}, engine.Reads(gatherOther)), gaKeysNamed("more", gatherOther))
	for range 5 {
		gaPhase(t, th, phase.StepStart)
	}
	require.EqualValues(t, 5, gatherCount.Get(th.Snapshot()))
}

func gaKeysNamed(name string, keys ...state.AnyKey) engine.Plugin {
	return gaPlugin(name, func(r *engine.Registrar) { r.Key(keys...) })
}

// Capability G4. Each call of a hook leaves a span in the events, and a slow one a
// warning that names it.
func TestGatherSlowHookIsWarnedAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tape := &gaTape{}
		th := gaThread(t, engine.Config{
			Observers: []engine.Observer{tape},
			Limits:    engine.Limits{SlowHook: 10 * time.Millisecond},
			Plugins: []engine.Plugin{
				gaOn("quick", phase.StepStart, gaDoes(phase.Command{})),
				gaOn("slow", phase.StepStart, func(context.Context, *phase.Context) (phase.Command, error) {
					time.Sleep(11 * time.Millisecond)
					return phase.Command{}, nil
				}),
			},
		})
		rep := gaPhase(t, th, phase.StepStart)
		require.Equal(t, 11*time.Millisecond, rep.Hooks[1].Duration)
		spans := gaOf[engine.HookFinished](tape)
		require.Len(t, spans, 2)
		require.False(t, spans[0].Slow)
		require.True(t, spans[1].Slow)
		require.Equal(t, 11*time.Millisecond, spans[1].Duration)
		warnings := gaOf[engine.Warning](tape)
		require.Len(t, warnings, 1)
		require.Equal(t, "slow", warnings[0].Plugin)
		require.Contains(t, warnings[0].Message, "slow/step_start/0")
	})
}

// Capability A3. An unknown phase is an error and runs nothing.
func TestGatherUnknownPhase(t *testing.T) {
	th := gaPlugins(t)
	for _, p := range []phase.Phase{0, phase.RunEnd + 1, 200} {
		_, err := th.RunPhase(t.Context(), gaAgent, p)
		require.ErrorIs(t, err, phase.ErrUnknownPhase)
	}
}

// Capability A3. Reports and events marshal, so that a phase can be looked at from
// outside.
func TestGatherEventsMarshal(t *testing.T) {
	tape := &gaTape{}
	th := gaThread(t, engine.Config{Observers: []engine.Observer{tape}, Plugins: []engine.Plugin{
		gaKeys(gatherCell), gaOn("a", phase.StepStart, gaWrites(gatherCell.With(1))), gaOn("b", phase.StepStart, gaWrites(gatherCell.With(2))),
	}})
	gaPhase(t, th, phase.StepStart)
	for i, e := range tape.all() {
		text, err := json.Marshal(e)
		require.NoError(t, err)
		require.Contains(t, string(text), `"phase":"step_start"`)
		require.EqualValues(t, i+1, e.Head().Seq, "numbers have no gaps")
	}
}

// Hooks that hang until they are given up on are not taken for quick: those of the next
// phase begin at once, all of them.
func TestGatherLearnsNothingFromHooksThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var hangs atomic.Bool
		hangs.Store(true)
		hook := phase.HookFunc(func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			if hangs.Load() {
				<-release
			} else {
				time.Sleep(time.Second)
			}
			return cmd, nil
		})
		var th *engine.Thread
		th = gaThread(t, engine.Config{
			Plugins: []engine.Plugin{engine.NewPlugin("two", func(r *engine.Registrar) error {
				r.Hook(phase.StepEnd, hook)
				r.Hook(phase.StepEnd, hook)
				return nil
			})},
			Model: inference.ModelFunc(func(ctx context.Context, _ inference.Request) (inference.Response, error) {
				for range 50 {
					short, cancel := context.WithTimeout(ctx, time.Minute)
					_, err := th.RunPhase(short, gaAgent, phase.StepEnd)
					cancel()
					require.ErrorIs(t, err, context.DeadlineExceeded)
				}
				hangs.Store(false)
				start := time.Now()
				_, err := th.RunPhase(ctx, gaAgent, phase.StepEnd)
				require.Equal(t, time.Second, time.Since(start))
				return inference.Response{Message: inference.Assistant("done")}, err
			}),
		})
		gaRun(t, th)
		close(release)
	})
}
