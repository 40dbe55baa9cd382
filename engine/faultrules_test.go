package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
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
	faultCount = state.NewCounter("fault.count", state.Options[int64]{})
	faultCell  = state.NewCell[int]("fault.cell", state.Options[int]{})
	faultLog   = state.NewLog("fault.log", state.Options[string]{})
)

var (
	errFaultB = errors.New("b failed")
	errFaultD = errors.New("d failed")
)

// Fault B10. Of hooks A (ok), B (error), C (ok), D (error) all run, the error
// wraps both causes and names B and D, and nothing of the gather is committed or
// delivered.
func TestFaultFailingHooksFailThePhase(t *testing.T) {
	for _, rule := range []engine.ErrorRule{engine.Fail, engine.Skip} {
		t.Run(rule.String(), func(t *testing.T) {
			var ran atomic.Int64
			told := 0
			effect := effects.NewSpec[int]("tell")
			ok := func(context.Context, *phase.Context) (cmd phase.Command, err error) {
				ran.Add(1)
				cmd.Update(faultCount.With(1)).Emit(effect.New(1))
				return cmd, nil
			}
			fails := func(err error) phase.HookFunc {
				return func(context.Context, *phase.Context) (cmd phase.Command, _ error) {
					ran.Add(1)
					cmd.Update(faultCount.With(100)).Emit(effect.New(100))
					return cmd, err
				}
			}
			tape := &gaTape{}
			th := gaThread(t, engine.Config{Observers: []engine.Observer{tape}, Plugins: []engine.Plugin{
				gaKeys(faultCount),
				gaPlugin("handler", func(r *engine.Registrar) {
					r.Effect(effect.Handle(func(_ context.Context, _ *state.Snapshot, n int) error { told += n; return nil }))
				}),
				gaOn("A", phase.StepStart, ok),
				gaOn("B", phase.StepStart, fails(errFaultB), engine.OnError(rule)),
				gaOn("C", phase.StepStart, ok),
				gaOn("D", phase.StepStart, fails(errFaultD), engine.OnError(rule)),
			}})
			rep, err := th.RunPhase(t.Context(), gaAgent, phase.StepStart)
			require.EqualValues(t, 4, ran.Load())
			require.Equal(t, []string{"A", "B", "C", "D"}, []string{rep.Hooks[0].Plugin, rep.Hooks[1].Plugin, rep.Hooks[2].Plugin, rep.Hooks[3].Plugin})
			require.ErrorIs(t, rep.Hooks[1].Err, errFaultB)
			require.ErrorIs(t, rep.Hooks[3].Err, errFaultD)
			if rule == engine.Fail {
				require.ErrorIs(t, err, errFaultB)
				require.ErrorIs(t, err, errFaultD)
				var pe *engine.PhaseError
				require.ErrorAs(t, err, &pe)
				require.Equal(t, phase.StepStart, pe.Phase)
				require.Len(t, pe.Errs, 2)
				for i, name := range []string{"B", "D"} {
					var he *engine.HookError
					require.ErrorAs(t, pe.Errs[i], &he)
					require.Equal(t, name, he.Plugin)
					require.Equal(t, phase.StepStart, he.Phase)
				}
				require.Zero(t, th.Snapshot().Revision())
				require.Zero(t, told)
				require.Equal(t, []engine.HookStatus{engine.HookDropped, engine.HookFailed, engine.HookDropped, engine.HookFailed}, gaStatuses(rep))
				return
			}
			require.NoError(t, err)
			require.EqualValues(t, 2, faultCount.Get(th.Snapshot()))
			require.Equal(t, 2, told)
			warned := gaOf[engine.Warning](tape)
			require.Len(t, warned, 2)
			require.Equal(t, []string{"B", "D"}, []string{warned[0].Plugin, warned[1].Plugin})
			require.Contains(t, warned[0].Message, errFaultB.Error())
		})
	}
}

// Fault B10. One hook that fails by the Fail rule takes the tier down also when
// others are of the Skip rule, and a phase in which every hook is skipped goes on.
func TestFaultRulesMix(t *testing.T) {
	fails := func(context.Context, *phase.Context) (phase.Command, error) { return phase.Command{}, errFaultB }
	th := gaPlugins(t, gaKeys(faultCount),
		gaOn("a", phase.StepStart, gaWrites(faultCount.With(1))),
		gaOn("skip", phase.StepStart, fails, engine.OnError(engine.Skip)),
		gaOn("fail", phase.StepStart, fails),
		gaOn("only", phase.StepEnd, fails, engine.OnError(engine.Skip)),
		gaOn("after", phase.StepEnd, gaWrites(faultCount.With(10)), engine.Tier(1)))
	rep, err := th.RunPhase(t.Context(), gaAgent, phase.StepStart)
	require.Error(t, err)
	require.Equal(t, []engine.HookStatus{engine.HookDropped, engine.HookSkipped, engine.HookFailed}, gaStatuses(rep))
	require.Zero(t, faultCount.Get(th.Snapshot()))
	rep = gaPhase(t, th, phase.StepEnd)
	require.Equal(t, []engine.HookStatus{engine.HookSkipped, engine.HookCommitted}, gaStatuses(rep))
	require.EqualValues(t, 10, faultCount.Get(th.Snapshot()))
}

// Capability G4. A panic is the hook's fault alone: it is named with its value and
// stack, siblings are as for any other error, and an error value can be found with
// errors.Is.
func TestFaultPanicIsRecovered(t *testing.T) {
	for _, c := range []struct {
		name  string
		value any
	}{{"text", "kaboom"}, {"error", errFaultB}, {"nil", nil}, {"number", 42}} {
		for _, alone := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s alone=%t", c.name, alone), func(t *testing.T) {
				plugins := []engine.Plugin{gaKeys(faultCount), gaOn("bad", phase.AfterInference, func(context.Context, *phase.Context) (phase.Command, error) {
					panic(c.value)
				}, engine.OnError(engine.Skip))}
				if !alone {
					plugins = append(plugins, gaOn("good", phase.AfterInference, gaWrites(faultCount.With(1))))
				}
				th := gaPlugins(t, plugins...)
				rep := gaPhase(t, th, phase.AfterInference)
				var pe *engine.PanicError
				require.ErrorAs(t, rep.Hooks[0].Err, &pe)
				require.Equal(t, "bad", pe.Plugin)
				require.Equal(t, phase.AfterInference, pe.Phase)
				require.Contains(t, string(pe.Stack), "faultrules_test.go")
				if c.value != nil {
					require.Equal(t, c.value, pe.Value)
				}
				if err, ok := c.value.(error); ok {
					require.ErrorIs(t, rep.Hooks[0].Err, err)
				}
				if !alone {
					require.EqualValues(t, 1, faultCount.Get(th.Snapshot()))
				}
			})
		}
	}
}

// Capability G4. A hook that ends its goroutine is a failed hook like any other.
func TestFaultGoexitIsAFailure(t *testing.T) {
	exits := func(context.Context, *phase.Context) (phase.Command, error) {
		runtime.Goexit()
		return phase.Command{}, nil
	}
	for name, plugins := range map[string][]engine.Plugin{
		"beside others": {gaOn("bad", phase.StepStart, exits, engine.OnError(engine.Skip)), gaOn("good", phase.StepStart, gaWrites(faultCount.With(1)))},
		"with timeout":  {gaOn("bad", phase.StepStart, exits, engine.OnError(engine.Skip), engine.Timeout(time.Hour)), gaOn("good", phase.StepStart, gaWrites(faultCount.With(1)), engine.Tier(1))},
	} {
		t.Run(name, func(t *testing.T) {
			th := gaPlugins(t, append([]engine.Plugin{gaKeys(faultCount)}, plugins...)...)
			done := make(chan struct{})
			var rep *engine.Report
			var err error
			go func() {
				defer close(done)
				rep, err = th.RunPhase(t.Context(), gaAgent, phase.StepStart)
			}()
			<-done
			require.NoError(t, err)
			require.NotNil(t, rep, "RunPhase returned")
			require.ErrorIs(t, rep.Hooks[0].Err, engine.ErrGoexit)
			require.EqualValues(t, 1, faultCount.Get(th.Snapshot()))
		})
	}
}

// Capability G4. A deferred hook that ends its goroutine on its second call is a
// failed hook too.
func TestFaultGoexitOnRetry(t *testing.T) {
	var calls atomic.Int64
	th := gaPlugins(t, gaKeys(faultCell),
		gaOn("a", phase.StepStart, gaWrites(faultCell.With(1))),
		gaOn("b", phase.StepStart, func(context.Context, *phase.Context) (phase.Command, error) {
			if calls.Add(1) > 1 {
				runtime.Goexit()
			}
			return gaUpdates(faultCell.With(2)), nil
		}, engine.OnError(engine.Skip)))
	done := make(chan struct{})
	var rep *engine.Report
	go func() {
		defer close(done)
		rep, _ = th.RunPhase(t.Context(), gaAgent, phase.StepStart)
	}()
	<-done
	require.NotNil(t, rep, "RunPhase returned")
	require.ErrorIs(t, rep.Hooks[1].Err, engine.ErrGoexit)
	require.Equal(t, 1, faultCell.Get(th.Snapshot()))
}

// Fault B18. A lone hook runs on the run's own goroutine and may end that. The run
// still comes to its end then: RunEnd runs once, the stored reason is an error, and
// observers hear of it.
func TestFaultGoexitOfLoneHookStillEndsTheRun(t *testing.T) {
	ends := 0
	var told error
	tape := &gaTape{}
	th := gaThread(t, engine.Config{Observers: []engine.Observer{tape}, Plugins: []engine.Plugin{
		gaOn("bad", phase.StepStart, func(context.Context, *phase.Context) (phase.Command, error) {
			runtime.Goexit()
			return phase.Command{}, nil
		}),
		gaOn("end", phase.RunEnd, func(_ context.Context, pc *phase.Context) (phase.Command, error) {
			ends++
			told = pc.Err()
			return phase.Command{}, nil
		}),
	}})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = th.Run(t.Context(), gaAgent, engine.Prompt("x"))
	}()
	<-done
	require.Equal(t, 1, ends)
	require.ErrorIs(t, told, engine.ErrGoexit)
	life := phase.RunLifecycle.Get(th.Snapshot())
	require.Equal(t, phase.Done, life.Status)
	require.Equal(t, phase.ReasonError, life.Reason)
	require.Len(t, gaOf[engine.RunFinished](tape), 1)
}

// Capability G4. A thread on which a hook ended the goroutine of the run can be
// used again.
func TestFaultGoexitLeavesThreadUsable(t *testing.T) {
	var bad atomic.Bool
	bad.Store(true)
	th := gaPlugins(t, gaKeys(faultCount), gaOn("bad", phase.StepStart, func(context.Context, *phase.Context) (phase.Command, error) {
		if bad.Load() {
			runtime.Goexit()
		}
		return gaUpdates(faultCount.With(1)), nil
	}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = th.Run(t.Context(), gaAgent, engine.Prompt("x"))
	}()
	<-done
	bad.Store(false)
	res := gaRun(t, th)
	require.Equal(t, phase.ReasonNatural, res.Reason)
	require.EqualValues(t, 1, faultCount.Get(th.Snapshot()))
}

// Fault B13. Case 1: a hook that waits for its context is ended by its limit, and
// the error names the plugin.
func TestFaultTimeoutOfHookThatListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := gaPlugins(t, gaOn("slow", phase.StepStart, func(ctx context.Context, _ *phase.Context) (phase.Command, error) {
			<-ctx.Done()
			return phase.Command{}, ctx.Err()
		}, engine.Timeout(50*time.Millisecond)))
		start := time.Now()
		rep, err := th.RunPhase(t.Context(), gaAgent, phase.StepStart)
		require.Equal(t, 50*time.Millisecond, time.Since(start))
		require.ErrorIs(t, err, engine.ErrTimeout)
		var te *engine.TimeoutError
		require.ErrorAs(t, err, &te)
		require.Equal(t, engine.TimeoutError{Plugin: "slow", Phase: phase.StepStart, Limit: 50 * time.Millisecond}, *te)
		require.Equal(t, engine.HookFailed, rep.Hooks[0].Status)
		require.Equal(t, 50*time.Millisecond, rep.Hooks[0].Duration)
	})
}

// Fault B13. Report 10. Cases 2 and 3: a hook that ignores its context does not hold the
// phase up, its late result is thrown away, with its actions and effects, and its next
// call counts again.
func TestFaultTimeoutOfHookThatDoesNotListen(t *testing.T) {
	for _, alone := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var calls, acted, told atomic.Int64
			act := phase.NewAction[int]("fault.act", phase.StepStart)
			tell := effects.NewSpec[int]("fault.tell")
			handlers := gaPlugin("handlers", func(r *engine.Registrar) {
				r.Action(act.Handle(func(context.Context, *phase.Context, int) (cmd phase.Command, err error) {
					acted.Add(1)
					return cmd, nil
				}))
				r.Effect(tell.Handle(func(context.Context, *state.Snapshot, int) error { told.Add(1); return nil }))
			})
			plugins := []engine.Plugin{gaKeys(faultCount, faultLog), handlers, gaOn("slow", phase.StepStart, func(context.Context, *phase.Context) (phase.Command, error) {
				if calls.Add(1) == 1 {
					time.Sleep(5 * time.Second)
					cmd := gaUpdates(faultCount.With(1000))
					cmd.Schedule(act.New(1)).Emit(tell.New(1))
					return cmd, nil
				}
				return gaUpdates(faultCount.With(1)), nil
			}, engine.Timeout(50*time.Millisecond), engine.OnError(engine.Skip))}
			if !alone {
				plugins = append(plugins, gaOn("quick", phase.StepStart, gaWrites(faultLog.Append("quick"))))
			}
			th := gaPlugins(t, plugins...)
			start := time.Now()
			rep := gaPhase(t, th, phase.StepStart)
			require.Equal(t, 50*time.Millisecond, time.Since(start))
			require.ErrorIs(t, rep.Hooks[0].Err, engine.ErrTimeout)
			require.Equal(t, engine.HookSkipped, rep.Hooks[0].Status)
			rep = gaPhase(t, th, phase.StepStart)
			require.Equal(t, engine.HookCommitted, rep.Hooks[0].Status)
			require.EqualValues(t, 1, faultCount.Get(th.Snapshot()))
			revision := th.Snapshot().Revision()
			time.Sleep(10 * time.Second) // the first call has come to its end by now
			require.Equal(t, revision, th.Snapshot().Revision())
			rep = gaPhase(t, th, phase.StepStart)
			require.Empty(t, rep.Actions)
			require.EqualValues(t, 2, faultCount.Get(th.Snapshot()))
			require.Zero(t, acted.Load())
			require.Zero(t, told.Load())
			require.EqualValues(t, 3, calls.Load())
			if !alone {
				require.Equal(t, []string{"quick", "quick", "quick"}, faultLog.Get(th.Snapshot()).Slice())
			}
		})
	}
}

// Fault B13. Limits.HookTimeout bounds hooks without a limit of their own, in a
// deferred hook's second call too, and a hook's own limit takes its place.
func TestFaultTimeoutDefaultAndRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		th := gaThread(t, engine.Config{Limits: engine.Limits{HookTimeout: time.Second}, Plugins: []engine.Plugin{
			gaKeys(faultCell),
			gaOn("a", phase.StepStart, gaWrites(faultCell.With(1))),
			gaOn("b", phase.StepStart, func(context.Context, *phase.Context) (phase.Command, error) {
				if calls.Add(1) == 2 {
					time.Sleep(time.Minute)
				}
				return gaUpdates(faultCell.With(2)), nil
			}, engine.OnError(engine.Skip)),
			gaOn("own", phase.StepEnd, func(context.Context, *phase.Context) (phase.Command, error) {
				time.Sleep(2 * time.Second)
				return gaUpdates(faultCell.With(3)), nil
			}, engine.Timeout(3*time.Second)),
		}})
		start := time.Now()
		rep := gaPhase(t, th, phase.StepStart)
		require.Equal(t, time.Second, time.Since(start))
		require.ErrorIs(t, rep.Hooks[1].Err, engine.ErrTimeout)
		require.Equal(t, 1, faultCell.Get(th.Snapshot()))
		gaPhase(t, th, phase.StepEnd)
		require.Equal(t, 3, faultCell.Get(th.Snapshot()))
		time.Sleep(2 * time.Minute)
	})
}

// Fault F22. A cancelled context ends the wait for hooks that do not listen; the
// cause is in the error, and nothing of the tier commits.
func TestFaultCancelEndsTheWaitForHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("user went away")
		release := make(chan struct{})
		hang := func(context.Context, *phase.Context) (phase.Command, error) {
			<-release
			return gaUpdates(faultCount.With(1)), nil
		}
		th := gaPlugins(t, gaKeys(faultCount), gaOn("a", phase.StepStart, hang), gaOn("b", phase.StepStart, hang))
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		start := time.Now()
		rep, err := th.RunPhase(ctx, gaAgent, phase.StepStart)
		require.Equal(t, time.Second, time.Since(start))
		require.ErrorIs(t, err, cause)
		require.Len(t, rep.Hooks, 2)
		close(release)
		synctest.Wait()
		require.Zero(t, th.Snapshot().Revision())
	})
}

// Fault B18. A hook error in step 2 ends the run with reason error: RunEnd hooks
// run once and read the cause, there is one start and one finish, and the stored
// status is not running.
func TestFaultHookErrorStillRunsRunEnd(t *testing.T) {
	for _, at := range []phase.Phase{phase.StepStart, phase.BeforeInference, phase.AfterInference, phase.BeforeToolExecute, phase.AfterToolExecute, phase.StepEnd} {
		t.Run(at.String(), func(t *testing.T) {
			ends := 0
			var told error
			var life phase.Lifecycle
			tape := &gaTape{}
			call := func(id string) inference.Message {
				return inference.Assistant("", inference.ToolCall{ID: id, Name: "tool", Args: "{}"})
			}
			th := gaThread(t, engine.Config{
				Model:     &gaScript{answers: []inference.Message{call("c1"), call("c2"), inference.Assistant("done")}},
				Observers: []engine.Observer{tape},
				Plugins: []engine.Plugin{
					gaTools(gaTool{name: "tool"}),
					gaOn("bad", at, func(_ context.Context, pc *phase.Context) (phase.Command, error) {
						if pc.Run().Step == 2 {
							return phase.Command{}, errFaultB
						}
						return phase.Command{}, nil
					}),
					gaOn("end", phase.RunEnd, func(_ context.Context, pc *phase.Context) (phase.Command, error) {
						ends++
						told = pc.Err()
						life = phase.RunLifecycle.Get(pc.Snapshot())
						return phase.Command{}, nil
					}),
				},
			})
			res, err := th.Run(t.Context(), gaAgent, engine.Prompt("x"))
			require.NoError(t, err)
			require.Equal(t, phase.ReasonError, res.Reason)
			require.ErrorIs(t, res.Err, errFaultB)
			require.Equal(t, 1, ends)
			require.ErrorIs(t, told, errFaultB)
			require.Equal(t, phase.ReasonError, life.Reason)
			require.Equal(t, phase.Done, phase.RunLifecycle.Get(th.Snapshot()).Status)
			require.Len(t, gaOf[engine.RunStarted](tape), 1)
			require.Len(t, gaOf[engine.RunFinished](tape), 1)
			require.Equal(t, phase.ReasonError, gaOf[engine.RunFinished](tape)[0].Reason)
			require.Equal(t, len(gaOf[engine.PhaseStarted](tape)), len(gaOf[engine.PhaseFinished](tape)), "no start without an end")
			require.Equal(t, len(gaOf[engine.StepStarted](tape)), len(gaOf[engine.StepFinished](tape)))
			asked := 0
			for _, m := range engine.Transcript.Get(th.Snapshot()).All() {
				asked += len(m.ToolCalls)
				if m.Role == inference.RoleTool {
					asked--
				}
			}
			require.Zero(t, asked, "every call has its result")
		})
	}
}

// Fault B18. A RunEnd hook that fails ends nothing twice: the run has its result
// with both causes.
func TestFaultHookErrorAtRunEndAndRunStart(t *testing.T) {
	ends := 0
	th := gaPlugins(t,
		gaOn("start", phase.RunStart, func(context.Context, *phase.Context) (phase.Command, error) { return phase.Command{}, errFaultB }),
		gaOn("end", phase.RunEnd, func(context.Context, *phase.Context) (phase.Command, error) {
			ends++
			return phase.Command{}, errFaultD
		}))
	res, err := th.Run(t.Context(), gaAgent, engine.Prompt("x"))
	require.NoError(t, err)
	require.Equal(t, 1, ends)
	require.Equal(t, phase.ReasonError, res.Reason)
	require.ErrorIs(t, res.Err, errFaultB)
	require.ErrorIs(t, res.Err, errFaultD)
	require.Equal(t, phase.Done, res.Status)
	require.Zero(t, res.Steps)
}

// Capability M4. Errors of skipped hooks reach a listener with plugin, hook and
// error in each phase, and the run goes on to its natural end.
func TestFaultSkippedErrorsReachListeners(t *testing.T) {
	tape := &gaTape{}
	var phases []phase.Phase
	th := gaThread(t, engine.Config{
		Model:     gaCalls(inference.ToolCall{ID: "c", Name: "tool", Args: "{}"}),
		Observers: []engine.Observer{tape},
		Plugins: []engine.Plugin{gaTools(gaTool{name: "tool"}), gaPlugin("bad", func(r *engine.Registrar) {
			for p := range phase.All() {
				if p != phase.ToolGate {
					phases = append(phases, p)
					r.Hook(p, phase.HookFunc(func(_ context.Context, pc *phase.Context) (phase.Command, error) {
						return phase.Command{}, fmt.Errorf("cannot do %s", pc.Phase())
					}), engine.OnError(engine.Skip))
				}
			}
		})},
	})
	res := gaRun(t, th)
	require.Equal(t, phase.ReasonNatural, res.Reason)
	heard := map[phase.Phase]int{}
	for _, e := range gaOf[engine.HookFinished](tape) {
		require.Equal(t, "bad", e.Plugin)
		require.Equal(t, engine.HookSkipped, e.Status)
		require.Contains(t, e.Error, "cannot do "+e.Phase.String())
		require.True(t, strings.HasPrefix(e.Hook, "bad/"+e.Phase.String()))
		heard[e.Phase]++
	}
	for _, p := range phases {
		require.NotZero(t, heard[p], p)
	}
	require.Len(t, gaOf[engine.Warning](tape), len(gaOf[engine.HookFinished](tape)))
}

// Fault B10. A reducer that panics on a hook's update is that hook's failure, and
// the others commit under the Skip rule.
func TestFaultReducerPanicIsTheHooksFault(t *testing.T) {
	touchy := state.NewKey("touchy", state.KeyConfig[int, int]{Merge: state.Commutative, Apply: func(v, u int) int {
		if u < 0 {
			panic("negative")
		}
		return v + u
	}})
	for _, rule := range []engine.ErrorRule{engine.Fail, engine.Skip} {
		th := gaPlugins(t, gaKeys(touchy, faultCount),
			gaOn("a", phase.StepStart, gaWrites(touchy.With(1))),
			gaOn("b", phase.StepStart, gaWrites(faultCount.With(1), touchy.With(-1)), engine.OnError(rule)),
			gaOn("c", phase.StepStart, gaWrites(touchy.With(2))))
		rep, err := th.RunPhase(t.Context(), gaAgent, phase.StepStart)
		var ae *state.ApplyError
		require.ErrorAs(t, rep.Hooks[1].Err, &ae)
		require.Equal(t, "touchy", ae.Key)
		if rule == engine.Fail {
			require.ErrorAs(t, err, &ae)
			require.Zero(t, th.Snapshot().Revision())
			continue
		}
		require.NoError(t, err)
		require.Equal(t, 3, touchy.Get(th.Snapshot()))
		require.Zero(t, faultCount.Get(th.Snapshot()))
	}
}

// Capability G4. Hooks that hang leave nothing behind once they return.
func TestFaultNoGoroutineStays(t *testing.T) {
	gaNoLeak(t)
	release := make(chan struct{})
	th := gaPlugins(t, gaKeys(faultCount),
		gaOn("hung", phase.StepStart, func(context.Context, *phase.Context) (phase.Command, error) {
			<-release
			return phase.Command{}, nil
		}, engine.Timeout(time.Millisecond), engine.OnError(engine.Skip)),
		gaOn("good", phase.StepStart, gaWrites(faultCount.With(1))))
	for range 20 {
		gaPhase(t, th, phase.StepStart)
	}
	close(release)
	require.EqualValues(t, 20, faultCount.Get(th.Snapshot()))
}

// Fault F22. The context a hook gets ends when its phase goes on without it.
func TestFaultTimeoutCancelsTheHooksContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		causes := make(chan error, 1)
		th := gaPlugins(t, gaOn("slow", phase.StepStart, func(ctx context.Context, _ *phase.Context) (phase.Command, error) {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return phase.Command{}, nil
		}, engine.Timeout(time.Second), engine.OnError(engine.Skip)))
		gaPhase(t, th, phase.StepStart)
		synctest.Wait()
		require.ErrorIs(t, <-causes, engine.ErrTimeout)
	})
}

// Capability H6. Fault isolation, order and conflicts, the points of Capability
// G4, hold together: in one tier a panicking, a hanging, an exiting, a failing and
// a conflicting hook leave the good ones their results.
func TestFaultAllAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		skip := engine.OnError(engine.Skip)
		th := gaPlugins(t, gaKeys(faultLog, faultCell),
			gaOn("panics", phase.StepEnd, func(context.Context, *phase.Context) (phase.Command, error) { panic("x") }, skip),
			gaOn("good1", phase.StepEnd, gaWrites(faultLog.Append("1"), faultCell.With(1))),
			gaOn("hangs", phase.StepEnd, func(context.Context, *phase.Context) (phase.Command, error) {
				time.Sleep(time.Hour)
				return gaUpdates(faultLog.Append("late")), nil
			}, skip, engine.Timeout(time.Second)),
			gaOn("exits", phase.StepEnd, func(context.Context, *phase.Context) (phase.Command, error) {
				runtime.Goexit()
				return phase.Command{}, nil
			}, skip),
			gaOn("good2", phase.StepEnd, gaWrites(faultLog.Append("2"), faultCell.With(2))),
			gaOn("fails", phase.StepEnd, func(context.Context, *phase.Context) (phase.Command, error) {
				return gaUpdates(faultLog.Append("failed")), errFaultB
			}, skip),
			gaOn("good3", phase.StepEnd, gaWrites(faultLog.Append("3"))))
		rep := gaPhase(t, th, phase.StepEnd)
		require.Equal(t, []string{"1", "2", "3"}, faultLog.Get(th.Snapshot()).Slice())
		require.Equal(t, 2, faultCell.Get(th.Snapshot()))
		require.True(t, slices.Equal(gaStatuses(rep), []engine.HookStatus{
			engine.HookSkipped, engine.HookCommitted, engine.HookSkipped, engine.HookSkipped, engine.HookRetried, engine.HookSkipped, engine.HookRetried,
		}), "%v", gaStatuses(rep))
		time.Sleep(2 * time.Hour)
		require.Equal(t, 3, faultLog.Get(th.Snapshot()).Len())
	})
}
