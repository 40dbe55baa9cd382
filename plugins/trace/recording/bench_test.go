package recording_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/trace"
	"github.com/ddd26017/fixpoint/plugins/trace/recording"
)

// long is the events of a run of so many steps, each with a tool call, hooks in every
// phase, some of which fight over a key, an action and an effect.
func long(tb testing.TB, steps int) []engine.Event {
	var plugins []engine.Plugin
	for i := range 6 {
		name := fmt.Sprint("p", i)
		plugins = append(plugins, engine.NewPlugin(name, func(r *engine.Registrar) error {
			for _, p := range []phase.Phase{phase.StepStart, phase.BeforeInference, phase.AfterInference, phase.BeforeToolExecute, phase.AfterToolExecute, phase.StepEnd} {
				r.Hook(p, hookFunc(func(pc *phase.Context, cmd *phase.Command) error {
					cmd.Update(doors.Put(name, fmt.Sprint(p, pc.Run().Step)))
					if p == phase.StepStart && i < 3 {
						cmd.Update(board.With(name), total.With(1))
						cmd.Schedule(tidy.New(name)).Emit(mail.New(name))
					}
					return nil
				}))
			}
			r.Gate(gate.Func(func(context.Context, *phase.Context) (gate.Decision, error) { return gate.Approve(), nil }))
			return nil
		}))
	}
	plugins = append(plugins, keys(), engine.NewPlugin("keeper", func(r *engine.Registrar) error {
		r.Action(tidy.Handle(func(context.Context, *phase.Context, string) (cmd phase.Command, err error) {
			return *cmd.Update(notes.Append("tidied")), nil
		}))
		r.Effect(mail.Handle(nothing))
		return nil
	}))
	var answers []enginetest.Answer
	for i := range steps - 1 {
		answers = append(answers, enginetest.Call(fmt.Sprint("c", i), "look", nil))
	}
	events := &enginetest.Recorder{}
	eng := enginetest.Engine(tb, engine.Config{
		Plugins: plugins, Model: enginetest.NewScript(append(answers, enginetest.Say("done"))...),
		Observers: []engine.Observer{engine.ObserverFunc(func(e engine.Event) { events.Observe(trace.Detailed(e, trace.Rules{})) })},
	})
	in := engine.Prompt("go")
	in.Tools = []engine.Tool{enginetest.StubTool("look", engine.Text("seen"))}
	_, err := eng.Run(context.Background(), engine.AgentSpec{ID: "agent", MaxRounds: steps + 1}, in)
	require.NoError(tb, err)
	return events.Events()
}

// BenchmarkBuild takes in a run of 1,000 steps and gives out its view.
func BenchmarkBuild(b *testing.B) {
	events := long(b, 1000)
	rec := recording.New("bench")
	for _, e := range events {
		rec.Add(trace.Line{Event: e})
	}
	spans := len(rec.View().Spans)
	b.Run("take", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			rec := recording.New("bench")
			for _, e := range events {
				rec.Add(trace.Line{Event: e})
			}
		}
		b.ReportMetric(float64(len(events)), "events")
		b.ReportMetric(float64(spans), "spans")
	})
	b.Run("view", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			rec.View()
		}
	})
	b.Run("json", func(b *testing.B) {
		v, n := rec.View(), 0
		for b.Loop() {
			text, err := json.Marshal(v)
			require.NoError(b, err)
			n = len(text)
		}
		b.ReportMetric(float64(n), "bytes")
	})
	b.Run("since", func(b *testing.B) {
		_, cursor := rec.Since(0)
		b.ReportAllocs()
		for b.Loop() {
			rec.Note("x")
			_, cursor = rec.Since(cursor)
		}
	})
}

// A run that is twice as long takes about twice as much memory, also to look at.
func TestCostIsInProportion(t *testing.T) {
	cost := func(steps int) float64 {
		events := long(t, steps)
		return testing.AllocsPerRun(2, func() {
			rec, cursor := recording.New("x"), uint64(0)
			for i, e := range events {
				rec.Add(trace.Line{Event: e})
				if i%100 == 0 {
					_, cursor = rec.Since(cursor)
				}
			}
			rec.View()
		})
	}
	require.Less(t, cost(80), 2.4*cost(40))
}
