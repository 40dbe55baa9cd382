package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// gbBusyConfig is an engine whose run makes many kinds of events.
func gbBusyConfig() engine.Config {
	return engine.Config{
		Model:  gbStreamer{gbScript(gbAsk(gbFive()...), gbSay("one two three"))},
		Stream: true,
		Plugins: []engine.Plugin{
			gbTools(gbToolOf("t", nil)),
			gbVote("ask", gate.Ask(gate.Ticket{Default: gate.DefaultYes})),
			gbSchedule("set", phase.StepStart, 0, gbSet(false, inference.Override{MaxTokens: inference.Some(1)})),
		},
	}
}

// Events come in order, numbered from 1 without gaps, revisions never going back;
// the first is the start of the run and the last its end.
func TestEventsAreNumberedWithoutGaps(t *testing.T) {
	gbNoLeaks(t)
	eng, err := engine.New(gbBusyConfig())
	require.NoError(t, err)
	var events []engine.Event
	for e, err := range eng.Events(t.Context(), engine.AgentSpec{ID: "a"}, engine.Prompt("go")) {
		require.NoError(t, err)
		events = append(events, e)
	}
	require.IsType(t, engine.RunStarted{}, events[0])
	require.IsType(t, engine.RunFinished{}, events[len(events)-1])
	revision := uint64(0)
	kinds := map[string]int{}
	for i, e := range events {
		h := e.Head()
		require.Equal(t, uint64(i+1), h.Seq)
		require.GreaterOrEqual(t, h.Revision, revision)
		require.Equal(t, events[0].Head().Run, h.Run)
		require.Equal(t, "a", h.Agent)
		require.False(t, h.Time.IsZero())
		revision = h.Revision
		kinds[e.Type()]++
	}
	require.Equal(t, kinds["tool_started"], kinds["tool_finished"])
	require.Equal(t, 5, kinds["tool_finished"])
	require.Equal(t, 5, kinds["ticket_opened"])
	require.Equal(t, kinds["phase_started"], kinds["phase_finished"])
	require.Equal(t, kinds["step_started"], kinds["step_finished"])
	require.Equal(t, kinds["inference_started"], kinds["inference_finished"])
}

// Breaking out of the loop, at any event, cancels the run, waits for its end and
// leaves no goroutine.
func TestBreakingOutOfEvents(t *testing.T) {
	gbNoLeaks(t)
	log := &gbLog{}
	c := gbBusyConfig()
	c.Plugins = append(c.Plugins, gbHook("end", phase.RunEnd, func(_ context.Context, pc *phase.Context) (phase.Command, error) {
		log.add("%s", phase.RunLifecycle.Get(pc.Snapshot()).Reason)
		return phase.Command{}, nil
	}))
	eng, err := engine.New(c)
	require.NoError(t, err)
	total := 0
	for range eng.Events(t.Context(), engine.AgentSpec{ID: "a"}, engine.Prompt("go")) {
		total++
	}
	require.Greater(t, total, 50)
	for at := 1; at <= total; at++ {
		th, err := eng.NewThread("")
		require.NoError(t, err)
		n := 0
		ends := len(log.all())
		for _, err := range th.Events(t.Context(), engine.AgentSpec{ID: "a"}, engine.Prompt("go")) {
			require.NoError(t, err)
			if n++; n == at {
				break
			}
		}
		require.Len(t, log.all(), ends+1, "the run has ended when the loop has")
		require.Equal(t, phase.Done, phase.RunLifecycle.Get(th.Snapshot()).Status)
		gbPaired(t, engine.Transcript.Get(th.Snapshot()).Slice())
		res, err := th.Run(t.Context(), engine.AgentSpec{ID: "a"}, engine.Prompt("again"))
		require.NoError(t, err, "the thread is free")
		require.Equal(t, phase.ReasonNatural, res.Reason)
	}
}

// A panic in the consumer's loop ends the run too.
func TestPanicInTheConsumerOfEvents(t *testing.T) {
	gbNoLeaks(t)
	w := gbNew(t, gbBusyConfig())
	require.Panics(t, func() {
		for range w.thread.Events(t.Context(), w.spec, engine.Prompt("go")) {
			panic("consumer")
		}
	})
	require.Equal(t, phase.ReasonNatural, w.say("again").Reason)
}

// A run that cannot start yields one pair with its error. A cancelled one yields
// all its events: cancelling is told in the last of them.
func TestEventsOfRunsThatFail(t *testing.T) {
	gbNoLeaks(t)
	w := gbNew(t, gbBusyConfig())
	n := 0
	for e, err := range w.thread.Events(t.Context(), engine.AgentSpec{}, engine.Prompt("go")) {
		require.Nil(t, e)
		require.ErrorIs(t, err, engine.ErrSpec)
		n++
	}
	require.Equal(t, 1, n)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in := engine.Prompt("go")
	in.Resolver = gate.ResolverFunc(func(ctx context.Context, _ gate.Ticket) (phase.Answer, error) {
		<-ctx.Done() // the run waits here, for its events may be read later than they happen
		return phase.Answer{}, ctx.Err()
	})
	var last engine.Event
	for e, err := range w.thread.Events(ctx, w.spec, in) {
		require.NoError(t, err)
		if _, ok := e.(engine.TicketOpened); ok {
			cancel()
		}
		last = e
	}
	require.Equal(t, phase.ReasonCancelled, last.(engine.RunFinished).Reason)

	require.NoError(t, w.engine.Close(t.Context()))
	for _, err := range w.engine.Events(t.Context(), w.spec, engine.Prompt("go")) {
		require.ErrorIs(t, err, engine.ErrClosed)
	}
}

// A sequence may be walked twice: each walk is a run of its own.
func TestEventsMayBeWalkedTwice(t *testing.T) {
	w := gbNew(t, engine.Config{Model: gbScript()})
	events := w.engine.Events(t.Context(), w.spec, engine.Prompt("go"))
	runs := map[string]bool{}
	for range 2 {
		for e := range events {
			runs[e.Head().Run] = true
		}
	}
	require.Len(t, runs, 2)
}

// Capability H2. An observer can change nothing: what it does to an event reaches
// neither the run nor another observer, and its panic is its own affair.
func TestObserversChangeNothing(t *testing.T) {
	model := gbScript(gbAsk(gbCall("c1", "t", `{"a":1}`)))
	w := gbNew(t, engine.Config{
		Model: model, Plugins: []engine.Plugin{gbTools(gbToolOf("t", nil))},
		Observers: []engine.Observer{
			engine.ObserverFunc(func(e engine.Event) {
				switch e := e.(type) {
				case engine.InferenceFinished:
					for i := range e.ToolCalls {
						e.ToolCalls[i] = gbCall("hacked", "hacked", "")
					}
				case engine.Committed:
					for i := range e.Writes {
						e.Writes[i].Plugin = "hacked"
					}
				}
			}),
			engine.ObserverFunc(func(engine.Event) { panic("observer") }),
		},
	})
	res := w.say("go")
	require.Equal(t, phase.ReasonNatural, res.Reason)
	require.Equal(t, []string{"c1 ok"}, gbOutcomes(w.results()))
	require.Equal(t, gbCall("c1", "t", `{"a":1}`), gbOf[engine.InferenceFinished](w.events)[0].ToolCalls[0])
	for _, e := range w.events.all() {
		require.NotContains(t, fmt.Sprintf("%+v", e), "hacked")
	}
}

// A fault is told once, in order: the phase that failed, then the run.
func TestEventsTellAFault(t *testing.T) {
	boom := errors.New("boom")
	w := gbNew(t, engine.Config{Model: gbScript(), Plugins: []engine.Plugin{
		gbHook("broken", phase.StepEnd, func(context.Context, *phase.Context) (phase.Command, error) { return phase.Command{}, boom }),
	}})
	w.say("go")
	var told []string
	for _, e := range w.events.all() {
		switch e := e.(type) {
		case engine.PhaseFinished:
			if e.Error != "" {
				told = append(told, "phase "+e.Phase.String())
			}
		case engine.HookFinished:
			if e.Error != "" {
				told = append(told, "hook "+e.Hook)
			}
		case engine.RunFinished:
			require.Contains(t, e.Error, "boom")
			told = append(told, "run")
		}
	}
	require.Equal(t, []string{"hook broken/step_end/0", "phase step_end", "run"}, told)
}
