package engine_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
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

var observerCell = state.NewCell[int]("observer.cell", state.Options[int]{})

// gaBusy is a configuration whose run has a conflict, an action, an effect and a
// tool call.
func gaBusy() engine.Config {
	act := phase.NewAction[int]("busy", phase.StepStart)
	effect := effects.NewSpec[int]("busy")
	bump := func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
		if pc.Run().Step == 1 {
			cmd.Update(observerCell.With(observerCell.Get(pc.Snapshot()) + 1)).Schedule(act.New(1)).Emit(effect.New(1))
		}
		return cmd, nil
	}
	return engine.Config{
		Now: gaClock, NewID: gaIDs(),
		Model: gaCalls(inference.ToolCall{ID: "c", Name: "tool", Args: "{}"}),
		Plugins: []engine.Plugin{
			gaTools(gaTool{name: "tool"}),
			gaPlugin("busy", func(r *engine.Registrar) {
				r.Key(observerCell)
				r.Action(act.Handle(gaNothing))
				r.Effect(effect.Handle(func(context.Context, *state.Snapshot, int) error { return nil }))
			}),
			gaOn("a", phase.StepStart, bump), gaOn("b", phase.StepStart, bump),
		},
	}
}

// Capability H2. Observers watch and can change nothing: what one does to an event
// reaches neither another observer nor the run, and a run goes the same way however
// many watch it and however they behave.
func TestObserverCanChangeNothing(t *testing.T) {
	plain := gaThread(t, gaBusy())
	want := gaRun(t, plain)

	alone := &gaTape{}
	c := gaBusy()
	c.Observers = []engine.Observer{alone}
	gaRun(t, gaThread(t, c))

	tape := &gaTape{}
	c = gaBusy()
	c.Observers = []engine.Observer{
		engine.ObserverFunc(func(e engine.Event) {
			switch e := e.(type) {
			case engine.Committed:
				clear(e.Writes)
			case engine.InferenceFinished:
				clear(e.ToolCalls)
			case engine.RunSuspended:
				clear(e.Tickets)
			case engine.OverrideApplied:
				clear(e.Fields)
			}
		}),
		engine.ObserverFunc(func(engine.Event) { panic("observer") }),
		engine.ObserverFunc(func(engine.Event) { runtime.Goexit() }),
		tape,
	}
	th := gaThread(t, c)
	got := gaRun(t, th)
	require.Equal(t, want, got)
	require.Equal(t, alone.lines(t), tape.lines(t))
	require.Equal(t, plain.Snapshot().Revision(), th.Snapshot().Revision())
	require.Equal(t, 2, observerCell.Get(th.Snapshot()))
	require.NotEmpty(t, gaOf[engine.Committed](tape)[0].Writes[0].Key)
}

// Capability H2. Events are numbered from 1 without gaps, begin with the start and
// end with the finish of the run, and each start of a phase or step has its end.
func TestObserverSeesAWholeRun(t *testing.T) {
	tape := &gaTape{}
	c := gaBusy()
	c.Observers = []engine.Observer{tape}
	th := gaThread(t, c)
	gaRun(t, th)
	events := tape.all()
	require.IsType(t, engine.RunStarted{}, events[0])
	require.IsType(t, engine.RunFinished{}, events[len(events)-1])
	var open []phase.Phase
	var revision uint64
	for i, e := range events {
		h := e.Head()
		require.EqualValues(t, i+1, h.Seq)
		require.Equal(t, "thread", h.Thread)
		require.Equal(t, "agent", h.Agent)
		require.GreaterOrEqual(t, h.Revision, revision, "revisions do not go back")
		revision = h.Revision
		switch e := e.(type) {
		case engine.PhaseStarted:
			open = append(open, e.Phase)
		case engine.PhaseFinished:
			require.Equal(t, open[len(open)-1], e.Phase)
			open = open[:len(open)-1]
		}
	}
	require.Empty(t, open)
	require.Equal(t, th.Snapshot().Revision(), revision)
}

// Capability H2. A commit is told after it is there: an observer that looks finds
// at least the revision that the event names.
func TestObserverIsToldAfterTheCommit(t *testing.T) {
	var th *engine.Thread
	var early atomic.Int64
	c := gaBusy()
	c.Observers = []engine.Observer{engine.ObserverFunc(func(e engine.Event) {
		if c, ok := e.(engine.Committed); ok && th.Snapshot().Revision() < c.Revision {
			early.Add(1)
		}
	})}
	th = gaThread(t, c)
	gaRun(t, th)
	require.Zero(t, early.Load())
}

// Capability H2. Observers that hang are waited for at the same time at the end of a
// run, and no longer than a grace each before it; those that work get everything.
func TestObserverThatHangsIsGivenUpOn(t *testing.T) {
	for _, buffer := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			hang := engine.ObserverFunc(func(engine.Event) { <-release })
			tape := &gaTape{}
			c := gaBusy()
			c.Limits = engine.Limits{Grace: time.Second, EventBuffer: buffer}
			c.Observers = []engine.Observer{hang, tape, hang, hang}
			start := time.Now()
			gaRun(t, gaThread(t, c))
			if buffer == 0 { // the default, which does not fill up
				require.Equal(t, time.Second, time.Since(start))
			} else {
				require.GreaterOrEqual(t, time.Since(start), time.Second)
				require.LessOrEqual(t, time.Since(start), 3*time.Second)
			}
			require.IsType(t, engine.RunFinished{}, tape.all()[len(tape.all())-1])
			close(release)
		})
	}
}

// Capability H2. One observer never costs more than the grace in all: neither one
// that hangs with a full buffer nor one that is a little slow with each event.
func TestObserverCostsOneGraceInAll(t *testing.T) {
	for name, delay := range map[string]time.Duration{"hung": time.Hour, "slow": 300 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen atomic.Int64
				c := gaBusy()
				c.Limits = engine.Limits{Grace: time.Second, EventBuffer: 1}
				c.Observers = []engine.Observer{engine.ObserverFunc(func(engine.Event) { seen.Add(1); time.Sleep(delay) })}
				start := time.Now()
				gaRun(t, gaThread(t, c))
				require.Equal(t, time.Second, time.Since(start))
				time.Sleep(2 * time.Hour)
				require.Less(t, seen.Load(), int64(8), "it gets no more events after that")
			})
		})
	}
}

// Capability H2. An observer that keeps up is waited for and misses nothing, though
// the buffer is small.
func TestObserverWithSmallBufferMissesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quick, slow := &gaTape{}, &gaTape{}
		c := gaBusy()
		c.Limits = engine.Limits{EventBuffer: 1}
		c.Observers = []engine.Observer{quick, engine.ObserverFunc(func(e engine.Event) {
			time.Sleep(time.Millisecond)
			slow.Observe(e)
		})}
		gaRun(t, gaThread(t, c))
		require.Equal(t, quick.lines(t), slow.lines(t))
	})
}

// Fault B38. The consumer of Events may submit from its loop, also when it is far
// behind, and a slow consumer loses nothing.
func TestObserverConsumerOfEventsMaySubmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gaBusy()
		c.Limits = engine.Limits{EventBuffer: 1}
		th := gaThread(t, c)
		n := 0
		for e, err := range th.Events(t.Context(), gaAgent, engine.Prompt("x")) {
			require.NoError(t, err)
			n++
			require.EqualValues(t, n, e.Head().Seq)
			if n == 1 {
				for range 20 {
					_, err := th.Submit(t.Context(), "consumer", gaUpdates(observerCell.With(50)))
					require.NoError(t, err)
				}
			}
			if _, ok := e.(engine.RunFinished); ok {
				break
			}
		}
		require.Greater(t, n, 30)
	})
}

// Capability H2. Breaking out of Events ends the run and leaves nothing behind.
func TestObserverBreakingOutOfEventsLeaksNothing(t *testing.T) {
	gaNoLeak(t)
	for at := 1; at < 40; at += 3 {
		th := gaThread(t, gaBusy())
		n := 0
		for _, err := range th.Events(t.Context(), gaAgent, engine.Prompt("x")) {
			require.NoError(t, err)
			if n++; n == at {
				break
			}
		}
		require.Equal(t, phase.Done, phase.RunLifecycle.Get(th.Snapshot()).Status, "the run has ended")
	}
}

// Capability H2. Events on a spec that cannot run yields the error alone.
func TestObserverEventsOfABadSpec(t *testing.T) {
	th := gaPlugins(t)
	n := 0
	for e, err := range th.Events(t.Context(), engine.AgentSpec{}, engine.Prompt("x")) {
		n++
		require.Nil(t, e)
		require.ErrorIs(t, err, engine.ErrSpec)
	}
	require.Equal(t, 1, n)
}

// Fault F15. Commit subscribers hear of commits in the order of their revisions,
// one at a time, whoever commits, and each commit says who wrote what.
func TestObserverSubscribersHearInOrder(t *testing.T) {
	th := gaPlugins(t, gaKeys(observerCell), gaOn("a", phase.StepStart, func(_ context.Context, pc *phase.Context) (phase.Command, error) {
		return gaUpdates(observerCell.With(observerCell.Get(pc.Snapshot()) + 1)), nil
	}))
	var last, wrong, inside, total atomic.Int64
	cancel := th.Subscribe(func(c state.Commit) {
		if inside.Add(1) != 1 || int64(c.Revision) != last.Load()+1 || c.Snapshot.Revision() != c.Revision || len(c.Writes) == 0 {
			wrong.Add(1)
		}
		last.Store(int64(c.Revision))
		total.Add(1)
		inside.Add(-1)
	})
	defer cancel()
	done := make(chan struct{})
	for range 4 {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 50 {
				if _, err := th.Submit(context.Background(), "x", gaUpdates(observerCell.With(1))); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	for range 50 {
		gaPhase(t, th, phase.StepStart)
	}
	for range 4 {
		<-done
	}
	_, err := th.Submit(t.Context(), "last", gaUpdates(observerCell.With(1)))
	require.NoError(t, err)
	for total.Load() < int64(th.Snapshot().Revision()) {
		runtime.Gosched() // another committer may still be telling
	}
	require.Zero(t, wrong.Load())
	require.EqualValues(t, th.Snapshot().Revision(), total.Load())
}

// Capability H2. A subscriber that panics or ends its goroutine disturbs neither the
// committer nor other subscribers.
func TestObserverSubscribersThatMisbehave(t *testing.T) {
	th := gaPlugins(t, gaKeys(observerCell), gaOn("a", phase.StepStart, gaWrites(observerCell.With(1))))
	heard := make(chan uint64, 16)
	defer th.Subscribe(func(state.Commit) { panic("subscriber") })()
	defer th.Subscribe(func(c state.Commit) { heard <- c.Revision })()
	gaPhase(t, th, phase.StepStart)
	require.EqualValues(t, 1, <-heard)
	defer th.Subscribe(func(state.Commit) { runtime.Goexit() })()
	done := make(chan bool, 1)
	go func() {
		returned := false
		defer func() { done <- returned }()
		_, _ = th.Submit(context.Background(), "x", gaUpdates(observerCell.With(2)))
		returned = true
	}()
	<-done
	require.EqualValues(t, 2, <-heard)
	require.Equal(t, 2, observerCell.Get(th.Snapshot()))
}

// Capability M4. The log observer writes failures as warnings with the plugin, and
// run boundaries as information.
func TestObserverLog(t *testing.T) {
	var out bytes.Buffer
	c := gaBusy()
	c.Plugins = append(c.Plugins, gaOn("bad", phase.StepEnd, func(context.Context, *phase.Context) (phase.Command, error) {
		return phase.Command{}, errors.New("sigh")
	}, engine.OnError(engine.Skip)))
	c.Logger = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo}))
	gaRun(t, gaThread(t, c))
	for _, want := range []string{
		"level=INFO msg=run_started", "level=INFO msg=run_finished", "level=WARN msg=hook_finished", "level=WARN msg=conflict",
		"plugin=bad", "sigh", "winner=a", "loser=b", "fate=retried", "reason=natural",
	} {
		require.Contains(t, out.String(), want)
	}
	require.NotContains(t, out.String(), "phase_started")
}

// Capability H2. Observers learn that a phase began also while hooks of it block that
// were always quick before.
func TestObserverSeesThePhaseOfHooksThatWereQuick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const quick = 50
		calls, release := atomic.Int64{}, make(chan struct{})
		hook := phase.HookFunc(func(context.Context, *phase.Context) (phase.Command, error) {
			if calls.Add(1) > 2*quick {
				<-release
			}
			return phase.Command{}, nil
		})
		tape := &gaTape{}
		var th *engine.Thread
		th = gaThread(t, engine.Config{
			Observers: []engine.Observer{tape},
			Plugins: []engine.Plugin{engine.NewPlugin("two", func(r *engine.Registrar) error {
				r.Hook(phase.StepEnd, hook)
				r.Hook(phase.StepEnd, hook)
				return nil
			})},
			Model: inference.ModelFunc(func(ctx context.Context, _ inference.Request) (inference.Response, error) {
				for range quick {
					if _, err := th.RunPhase(ctx, gaAgent, phase.StepEnd); err != nil {
						return inference.Response{}, err
					}
				}
				return inference.Response{Message: inference.Assistant("done")}, nil
			}),
		})
		go func() {
			defer close(release)
			time.Sleep(time.Second)
			synctest.Wait()
			last := tape.all()[len(tape.all())-1]
			require.IsType(t, engine.PhaseStarted{}, last)
			require.Equal(t, phase.StepEnd, last.Head().Phase)
			require.EqualValues(t, 2*quick+2, calls.Load(), "the other hook did not wait")
		}()
		gaRun(t, th)
	})
}
