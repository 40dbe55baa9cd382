package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

var (
	effectCount = state.NewCounter("effect.count", state.Options[int64]{Scope: state.ScopeThread})
	effectCell  = state.NewCell[int]("effect.cell", state.Options[int]{})
)

// gaTell is the effect of these tests.
var gaTell = effects.NewSpec[string]("tell")

// gaTold is a plugin that handles gaTell and has the keys of these tests.
func gaTold(fn func(ctx context.Context, snap *state.Snapshot, s string) error, options ...effects.HandlerOption) engine.Plugin {
	return gaPlugin("told", func(r *engine.Registrar) {
		r.Key(effectCount, effectCell)
		r.Effect(gaTell.Handle(fn, options...))
	})
}

func gaEmits(texts ...string) phase.HookFunc {
	return func(context.Context, *phase.Context) (cmd phase.Command, err error) {
		cmd.Update(effectCount.With(1))
		for _, s := range texts {
			cmd.Emit(gaTell.New(s))
		}
		return cmd, nil
	}
}

// Capability A8. Fault F07. An effect arrives after its commit, on the post-commit
// snapshot, in commit order, with an id of run, revision and index.
func TestEffectsAfterCommitInOrder(t *testing.T) {
	type got struct {
		Text     string
		ID       string
		Revision uint64
		Count    int64
	}
	var seen []got
	var th *engine.Thread
	th = gaThread(t, engine.Config{NewID: gaIDs(), Plugins: []engine.Plugin{
		gaTold(func(ctx context.Context, snap *state.Snapshot, s string) error {
			id, ok := effects.IDFrom(ctx)
			require.True(t, ok)
			seen = append(seen, got{s, id.String(), snap.Revision(), effectCount.Get(snap)})
			require.GreaterOrEqual(t, th.Snapshot().Revision(), snap.Revision())
			return nil
		}),
		gaOn("a", phase.StepEnd, gaEmits("a1", "a2")),
		gaOn("b", phase.StepEnd, gaEmits("b1")),
		gaOn("c", phase.StepEnd, gaEmits("c1"), engine.Tier(1)),
	}})
	rep := gaPhase(t, th, phase.StepEnd)
	require.Equal(t, []got{{"a1", "id-1/1/0", 1, 2}, {"a2", "id-1/1/1", 1, 2}, {"b1", "id-1/1/2", 1, 2}, {"c1", "id-1/2/0", 2, 3}}, seen)
	require.Len(t, rep.Effects, 4)
	require.Equal(t, "b", rep.Effects[2].Owner)
	require.Equal(t, "told", rep.Effects[2].Handler)
}

// Capability A8. An effect with nothing else in its command is committed all the
// same, so that it has a revision of its own.
func TestEffectsAloneHaveACommit(t *testing.T) {
	th := gaPlugins(t, gaTold(func(context.Context, *state.Snapshot, string) error { return nil }),
		gaOn("a", phase.StepEnd, func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			cmd.Emit(gaTell.New("x"))
			return cmd, nil
		}))
	rep := gaPhase(t, th, phase.StepEnd)
	require.Equal(t, 1, rep.Commits)
	first := rep.Effects[0].ID
	rep = gaPhase(t, th, phase.StepEnd)
	require.NotEqual(t, first, rep.Effects[0].ID)
	require.EqualValues(t, 2, rep.Effects[0].ID.Revision)
}

// Capability A8. An effect without a handler refuses the whole command before
// anything commits, from a hook, a handler or outside, with the nearest name.
func TestEffectsUnknownIsRefused(t *testing.T) {
	typo := effects.NewSpec[string]("tel")
	th := gaPlugins(t, gaTold(func(context.Context, *state.Snapshot, string) error { return nil }),
		gaOn("a", phase.StepEnd, func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			cmd.Update(effectCount.With(1)).Emit(typo.New("x"))
			return cmd, nil
		}))
	_, err := th.RunPhase(t.Context(), gaAgent, phase.StepEnd)
	require.ErrorIs(t, err, effects.ErrUnknownEffect)
	var cmd phase.Command
	cmd.Update(effectCount.With(1)).Emit(gaTell.New("ok"), typo.New("x"))
	_, err = th.Submit(t.Context(), "x", cmd)
	var unknown *effects.UnknownEffectError
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, effects.UnknownEffectError{Name: "tel", Nearest: "tell"}, *unknown)
	require.Zero(t, th.Snapshot().Revision())
}

// Capability A8. Fault F05. A handler that fails in any way changes nothing that
// committed and stops nothing: the failure is in the report, an event, the result
// and the log, with the plugins and the effect's id.
func TestEffectsFailureIsReported(t *testing.T) {
	boom := errors.New("boom")
	var logged bytes.Buffer
	tape := &gaTape{}
	c := engine.Config{
		Observers: []engine.Observer{tape}, NewID: gaIDs(),
		Logger: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Plugins: []engine.Plugin{
			gaTold(func(_ context.Context, _ *state.Snapshot, s string) error {
				switch s {
				case "error":
					return boom
				case "panic":
					panic(boom)
				case "exit":
					runtime.Goexit()
				}
				return nil
			}),
			gaOn("emitter", phase.StepStart, gaEmits("error", "panic", "exit", "fine")),
		},
	}
	th := gaThread(t, c)
	rep := gaPhase(t, th, phase.StepStart)
	require.EqualValues(t, 1, effectCount.Get(th.Snapshot()))
	require.Len(t, rep.Effects, 4)
	require.ErrorIs(t, rep.Effects[0].Err, boom)
	var pe *effects.PanicError
	require.ErrorAs(t, rep.Effects[1].Err, &pe)
	require.Equal(t, "told", pe.Plugin)
	require.ErrorAs(t, rep.Effects[2].Err, &pe)
	require.NoError(t, rep.Effects[3].Err)
	told := gaOf[engine.EffectFinished](tape)
	require.Len(t, told, 4)
	require.Equal(t, "emitter", told[0].Plugin)
	require.Equal(t, "told", told[0].Handler)
	require.Contains(t, told[0].Error, "boom")
	require.Equal(t, "id-1/1/0", told[0].ID.String())
	for _, want := range []string{"effect_finished", "id=id-1/1/0", "plugin=emitter", "handler=told", "boom"} {
		require.Contains(t, logged.String(), want)
	}
	require.NotContains(t, logged.String(), "id-1/1/3")

	res := gaRun(t, gaThread(t, c))
	require.Equal(t, phase.ReasonNatural, res.Reason)
	require.Equal(t, 3, res.Stats.EffectsFailed)
	require.Equal(t, 1, res.Stats.EffectsDelivered)
}

// Fault F25. A handler that hangs is left behind at its limit, its own or
// Limits.EffectTimeout, and the next effects go on.
func TestEffectsTimeout(t *testing.T) {
	for name, c := range map[string]struct {
		options []effects.HandlerOption
		limits  engine.Limits
	}{
		"own":   {options: []effects.HandlerOption{effects.Timeout(time.Second)}},
		"limit": {limits: engine.Limits{EffectTimeout: time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []string
				th := gaThread(t, engine.Config{Limits: c.limits, Plugins: []engine.Plugin{
					gaTold(func(_ context.Context, _ *state.Snapshot, s string) error {
						if s == "hang" {
							time.Sleep(time.Hour)
							return nil
						}
						told = append(told, s)
						return nil
					}, c.options...),
					gaOn("a", phase.StepEnd, gaEmits("hang", "next")),
				}})
				start := time.Now()
				rep := gaPhase(t, th, phase.StepEnd)
				require.Equal(t, time.Second, time.Since(start))
				require.ErrorIs(t, rep.Effects[0].Err, effects.ErrTimeout)
				require.Equal(t, []string{"next"}, told)
				time.Sleep(2 * time.Hour)
			})
		})
	}
}

// Fault F08. Effects of a gather are delivered after its last commit: a handler of
// the first batch sees what the deferred hooks did already committed to the thread.
func TestEffectsAfterDeferredHooks(t *testing.T) {
	var th *engine.Thread
	var seen []string
	hook := func(name string) phase.HookFunc {
		return func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
			cmd.Update(effectCell.With(effectCell.Get(pc.Snapshot()) + 1)).Emit(gaTell.New(name))
			return cmd, nil
		}
	}
	th = gaPlugins(t, gaTold(func(_ context.Context, snap *state.Snapshot, s string) error {
		seen = append(seen, fmt.Sprintf("%s on %d, now %d", s, effectCell.Get(snap), effectCell.Get(th.Snapshot())))
		return nil
	}), gaOn("a", phase.StepEnd, hook("a")), gaOn("b", phase.StepEnd, hook("b")), gaOn("c", phase.StepEnd, hook("c")))
	gaPhase(t, th, phase.StepEnd)
	require.Equal(t, []string{"a on 1, now 3", "b on 2, now 3", "c on 3, now 3"}, seen)
}

// Capability A2. The handler of a plugin that no filter lists still gets effects.
func TestEffectsHandlerOfInactivePluginServes(t *testing.T) {
	var told []string
	th := gaPlugins(t, gaTold(func(_ context.Context, _ *state.Snapshot, s string) error { told = append(told, s); return nil }),
		gaOn("user", phase.StepEnd, gaEmits("x")))
	_, err := th.RunPhase(t.Context(), engine.AgentSpec{ID: "x", ActiveHookFilter: []string{"user"}}, phase.StepEnd)
	require.NoError(t, err)
	require.Equal(t, []string{"x"}, told)
}

// Capability G3. In the background a slow handler holds no phase up; its effects
// are done before the run has ended, and are in the events.
func TestEffectsInBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Int64
		tape := &gaTape{}
		th := gaThread(t, engine.Config{
			EffectMode: effects.Background, Observers: []engine.Observer{tape},
			Plugins: []engine.Plugin{
				gaTold(func(context.Context, *state.Snapshot, string) error {
					time.Sleep(time.Second)
					told.Add(1)
					return nil
				}),
				gaOn("a", phase.StepStart, gaEmits("1", "2", "3")),
				gaOn("b", phase.StepEnd, func(context.Context, *phase.Context) (phase.Command, error) {
					require.Zero(t, told.Load(), "the run has gone on without waiting")
					return phase.Command{}, nil
				}),
			},
		})
		start := time.Now()
		res := gaRun(t, th)
		require.EqualValues(t, 3, told.Load())
		require.Equal(t, 3*time.Second, time.Since(start))
		require.Equal(t, 3, res.Stats.EffectsDelivered)
		require.Len(t, gaOf[engine.EffectFinished](tape), 3)
		last := tape.all()[len(tape.all())-1]
		require.IsType(t, engine.RunFinished{}, last)
	})
}

// Capability G3. A background handler that hangs is given up on when the grace is
// over; the run ends, and every effect that was lost is reported.
func TestEffectsInBackgroundAreDrainedWithinGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		tape := &gaTape{}
		th := gaThread(t, engine.Config{
			EffectMode: effects.Background, Observers: []engine.Observer{tape}, Limits: engine.Limits{Grace: 2 * time.Second},
			Plugins: []engine.Plugin{
				gaTold(func(context.Context, *state.Snapshot, string) error { <-release; return nil }),
				gaOn("a", phase.StepStart, gaEmits("1", "2")),
			},
		})
		start := time.Now()
		res := gaRun(t, th)
		require.Equal(t, 2*time.Second, time.Since(start))
		require.Equal(t, 2, res.Stats.EffectsFailed)
		lost := gaOf[engine.EffectFinished](tape)
		require.Len(t, lost, 2)
		for _, e := range lost {
			require.Contains(t, e.Error, "not delivered")
		}
		close(release)
	})
}

// Capability G3. The background queue is bounded: what does not fit fails at once
// and is in the report.
func TestEffectsInBackgroundOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		th := gaThread(t, engine.Config{
			EffectMode: effects.Background, Limits: engine.Limits{EffectQueue: 2, Grace: time.Second},
			Plugins: []engine.Plugin{
				gaTold(func(context.Context, *state.Snapshot, string) error { <-release; return nil }),
				gaOn("a", phase.StepStart, gaEmits("1", "2", "3", "4")),
			},
		})
		rep := gaPhase(t, th, phase.StepStart)
		require.Len(t, rep.Effects, 2)
		for _, o := range rep.Effects {
			require.ErrorIs(t, o.Err, effects.ErrOverflow)
		}
		close(release)
	})
}

// Fault B38. Fault F06. An effect handler, a commit subscriber and an observer may
// each read the store, submit a command and run another phase, at once and without
// a deadlock, in a phase by itself and in a run.
func TestEffectsCallbacksMayCallBack(t *testing.T) {
	act := phase.NewAction[int]("act", phase.StepEnd)
	for _, who := range []string{"handler", "subscriber", "observer", "small observer"} {
		for _, what := range []string{"read", "submit", "run phase"} {
			for _, whole := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s run=%t", who, what, whole), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						var th *engine.Thread
						var called, acted atomic.Int64
						callBack := func(ctx context.Context) {
							if called.CompareAndSwap(0, 1) {
								start := time.Now()
								switch what {
								case "read":
									require.NotNil(t, th.Snapshot())
									for range th.Snapshot().Keys() {
									}
									_, err := th.Export()
									require.NoError(t, err)
								case "submit":
									var cmd phase.Command
									cmd.Update(effectCell.With(7)).Schedule(act.New(1)).Emit(gaTell.New("again"))
									_, err := th.Submit(ctx, "callback", cmd)
									require.NoError(t, err)
								case "run phase":
									rep, err := th.RunPhase(ctx, gaAgent, phase.AfterInference)
									require.NoError(t, err)
									require.Len(t, rep.Hooks, 1)
								}
								require.Less(t, time.Since(start), 100*time.Millisecond)
							}
						}
						c := engine.Config{Plugins: []engine.Plugin{
							gaTold(func(ctx context.Context, _ *state.Snapshot, s string) error {
								if who == "handler" {
									callBack(ctx)
								}
								return nil
							}),
							gaOn("a", phase.StepStart, gaEmits("1", "2")),
							gaPlugin("other", func(r *engine.Registrar) {
								r.Hook(phase.AfterInference, gaWrites(effectCount.With(1)))
								r.Action(act.Handle(func(context.Context, *phase.Context, int) (phase.Command, error) {
									acted.Add(1)
									return phase.Command{}, nil
								}))
							}),
						}}
						tape := &gaTape{}
						if who == "observer" || who == "small observer" {
							if who == "small observer" {
								c.Limits.EventBuffer = 1
							}
							c.Observers = []engine.Observer{engine.ObserverFunc(func(e engine.Event) {
								tape.Observe(e)
								if _, ok := e.(engine.Committed); ok && e.Head().Phase == phase.StepStart {
									callBack(context.Background())
								}
							})}
						}
						th = gaThread(t, c)
						if who == "subscriber" {
							defer th.Subscribe(func(c state.Commit) { callBack(context.Background()) })()
						}
						start := time.Now()
						if whole {
							gaRun(t, th)
						} else {
							gaPhase(t, th, phase.StepStart)
							gaPhase(t, th, phase.StepEnd)
						}
						require.Less(t, time.Since(start), 100*time.Millisecond)
						require.EqualValues(t, 1, called.Load())
						if what == "submit" && !(whole && who != "handler") {
							// An observer of a whole run is beside it, so the run may be past StepEnd by then.
							require.EqualValues(t, 1, acted.Load())
						}
						if len(tape.all()) > 0 && whole {
							require.Len(t, gaOf[engine.RunFinished](tape), 1, "the observer was not given up on")
						}
					})
				})
			}
		}
	}
}

// Fault B38. A slow handler delays no reader and no submit.
func TestEffectsSlowHandlerDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := gaPlugins(t, gaTold(func(context.Context, *state.Snapshot, string) error { time.Sleep(time.Second); return nil }),
			gaOn("a", phase.StepStart, gaEmits("1")))
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, err := th.RunPhase(t.Context(), gaAgent, phase.StepStart)
			require.NoError(t, err)
		}()
		synctest.Wait() // the handler is at work
		start := time.Now()
		require.EqualValues(t, 1, effectCount.Get(th.Snapshot()))
		_, err := th.Submit(t.Context(), "x", gaUpdates(effectCount.With(1)))
		require.NoError(t, err)
		require.Zero(t, time.Since(start))
		<-done
	})
}

// Fault F06. What a handler emits itself is queued behind what is being delivered,
// in commit order, and a handler that feeds itself comes to an end.
func TestEffectsOfHandlersAreQueued(t *testing.T) {
	var th *engine.Thread
	var told []string
	th = gaThread(t, engine.Config{Limits: engine.Limits{EffectQueue: 5}, Plugins: []engine.Plugin{
		gaTold(func(ctx context.Context, _ *state.Snapshot, s string) error {
			told = append(told, s)
			if s == "loop" || s == "first" {
				var cmd phase.Command
				cmd.Emit(gaTell.New(map[string]string{"loop": "loop", "first": "nested"}[s]))
				_, err := th.Submit(ctx, "handler", cmd)
				return err
			}
			return nil
		}),
		gaOn("a", phase.StepStart, gaEmits("first", "second")),
		gaOn("b", phase.StepEnd, gaEmits("loop")),
	}})
	res := gaRun(t, th)
	require.Equal(t, []string{"first", "second", "nested"}, told[:3])
	require.Equal(t, 6, len(told)-3, "the first one and as many as the queue takes")
	require.Equal(t, 1, res.Stats.EffectsFailed)
}

// Fault F07. An effect of a command that is submitted while the run ends, after its
// effects were drained, is delivered all the same.
func TestEffectsOfSubmitAtTheVeryEnd(t *testing.T) {
	var told atomic.Int64
	var th *engine.Thread
	var submitted error
	th = gaThread(t, engine.Config{
		Plugins: []engine.Plugin{gaTold(func(context.Context, *state.Snapshot, string) error { told.Add(1); return nil })},
		Observers: []engine.Observer{engine.ObserverFunc(func(e engine.Event) {
			if _, ok := e.(engine.RunFinished); ok {
				var cmd phase.Command
				cmd.Update(effectCount.With(1)).Emit(gaTell.New("bye"))
				_, submitted = th.Submit(context.Background(), "observer", cmd)
			}
		})},
	})
	gaRun(t, th)
	require.NoError(t, submitted)
	require.EqualValues(t, 1, effectCount.Get(th.Snapshot()))
	require.EqualValues(t, 1, told.Load())
}

// Fault F22. An inline handler that hangs, without any limit, does not keep a
// cancelled run from ending: it is given up on after the grace, and what it kept
// waiting is reported as undelivered.
func TestEffectsThatHangDoNotKeepACancelledRun(t *testing.T) {
	for _, before := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			tape := &gaTape{}
			th := gaThread(t, engine.Config{
				Limits: engine.Limits{Grace: 2 * time.Second}, Observers: []engine.Observer{tape},
				Plugins: []engine.Plugin{
					gaTold(func(context.Context, *state.Snapshot, string) error { <-release; return nil }),
					gaOn("a", phase.StepStart, func(ctx context.Context, pc *phase.Context) (phase.Command, error) {
						if before {
							time.Sleep(time.Second) // cancelled before the effects are delivered
						}
						return gaEmits("hangs", "waits")(ctx, pc)
					}),
				},
			})
			start := time.Now()
			res, err := th.Run(ctx, gaAgent, engine.Prompt("x"))
			require.NoError(t, err)
			require.Equal(t, 3*time.Second, time.Since(start))
			require.Equal(t, phase.ReasonCancelled, res.Reason)
			require.Equal(t, phase.Done, res.Status)
			require.Equal(t, 2, res.Stats.EffectsFailed)
			require.Len(t, gaOf[engine.EffectFinished](tape), 2)
			close(release)
		})
	}
}

// Fault F08. A run that is cancelled delivers the effects of what it committed.
func TestEffectsOfCancelledRunAreDelivered(t *testing.T) {
	for _, mode := range []effects.Mode{effects.Inline, effects.Background} {
		t.Run(mode.String(), func(t *testing.T) {
			var told atomic.Int64
			ctx, cancel := context.WithCancel(t.Context())
			th := gaThread(t, engine.Config{EffectMode: mode, Plugins: []engine.Plugin{
				gaTold(func(ctx context.Context, _ *state.Snapshot, _ string) error {
					told.Add(1)
					return ctx.Err()
				}),
				gaOn("a", phase.StepStart, func(ctx context.Context, pc *phase.Context) (phase.Command, error) {
					cancel()
					return gaEmits("x", "y")(ctx, pc)
				}),
			}})
			res, err := th.Run(ctx, gaAgent, engine.Prompt("x"))
			require.NoError(t, err)
			require.Equal(t, phase.ReasonCancelled, res.Reason)
			require.EqualValues(t, 2*effectCount.Get(th.Snapshot()), told.Load())
			require.Zero(t, res.Stats.EffectsFailed, "the context of a handler is not the run's")
		})
	}
}

// Fault F07. An effect that ends at the instant when the grace does has one outcome.
func TestEffectsInBackgroundAtTheGrace(t *testing.T) {
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			tape := &gaTape{}
			th := gaThread(t, engine.Config{
				EffectMode: effects.Background, Observers: []engine.Observer{tape}, Limits: engine.Limits{Grace: 2 * time.Second},
				Plugins: []engine.Plugin{
					gaTold(func(context.Context, *state.Snapshot, string) error { time.Sleep(2 * time.Second); return nil }),
					gaOn("a", phase.StepStart, gaEmits("1", "2")),
				},
			})
			res := gaRun(t, th)
			require.Equal(t, 2, res.Stats.EffectsFailed+res.Stats.EffectsDelivered)
			require.Len(t, gaOf[engine.EffectFinished](tape), 2)
			time.Sleep(time.Hour)
		})
	}
}
