package recording_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/trace/recording"
)

// Capability B2. Who comes from outside wins over hooks that are running, again and
// again if need be, and the hook's last retry is told where it lost first.
func TestHooksThatLoseToOutsiders(t *testing.T) {
	var th *engine.Thread
	calls := 0
	w := newWorld(t, nil, hook("slow", phase.StepStart, func(pc *phase.Context, cmd *phase.Command) error {
		if calls++; calls <= 2 { // somebody is quicker
			_, err := th.Submit(context.Background(), "clerk", *(&phase.Command{}).Update(board.With("by the clerk"), doors.Put("front", "open")))
			if err != nil {
				return err
			}
		}
		cmd.Update(board.With("by slow"))
		return nil
	}))
	var err error
	th, err = w.engine.NewThread("t")
	require.NoError(t, err)
	_, err = th.Run(t.Context(), engine.AgentSpec{ID: "agent"}, engine.Prompt("go"))
	require.NoError(t, err)
	golden(t, w.explain(recording.Query{Key: "board", Revision: 3}), w.explain(recording.Query{Key: "board", Revision: 4}),
		w.explain(recording.Query{Key: "board"}), w.explain(recording.Query{Key: "doors", Entry: "front", Revision: 3}), spans(w.rec, recording.KindHook))
	checkState(t, w.rec, w.dumps)
}

// Capability B2. A hook also loses what it only read, and one that appends waits behind
// one that lost, so that the order stays.
func TestHooksThatReadAndWait(t *testing.T) {
	w := newWorld(t, nil,
		hook("a", phase.StepStart, func(_ *phase.Context, cmd *phase.Command) error { cmd.Update(board.With("a")); return nil }),
		hook("b", phase.StepStart, func(_ *phase.Context, cmd *phase.Command) error {
			cmd.Update(board.With("b"), notes.Append("b"))
			return nil
		}),
		hook("c", phase.StepStart, func(_ *phase.Context, cmd *phase.Command) error { cmd.Update(notes.Append("c")); return nil }),
		hook("d", phase.StepStart, func(_ *phase.Context, cmd *phase.Command) error { cmd.Update(doors.Put("front", "d")); return nil }, engine.Reads(board)),
	)
	w.run(engine.Prompt("go"))
	golden(t, w.explain(recording.Query{Key: "board", Revision: 3}), w.explain(recording.Query{Key: "notes"}), w.explain(recording.Query{Key: "doors", Entry: "front"}),
		spans(w.rec, recording.KindHook))
	checkState(t, w.rec, w.dumps)
}

// waker is a plugin that is told when it becomes active.
type waker struct{ engine.Plugin }

func (waker) OnActivate(_ engine.AgentSpec, b *engine.Batch) error {
	b.Update(doors.Put("bed", "left"))
	return nil
}

func (waker) OnDeactivate(b *engine.Batch) error {
	b.Update(doors.Put("bed", "entered"))
	return nil
}

// Every kind of event has its place in a recording, and in the end nothing is open that
// should not be.
func TestEveryKindOfEvent(t *testing.T) {
	kinds := map[string]bool{}
	look := func(w *world) {
		for _, e := range w.events.Events() {
			kinds[e.Type()] = true
		}
		for _, s := range w.rec.View().Spans {
			require.NotNil(t, s.End, s)
			require.NotEqual(t, "unknown", s.Status, s)
			require.NotEqual(t, "open", s.Status, s)
		}
		require.Empty(t, w.rec.View().Notes)
		checkState(t, w.rec, w.dumps)
	}
	w := newWorld(t, func(c *engine.Config) {
		c.Stream = true
		c.Model = enginetest.NewScript(enginetest.Call("c1", "look", map[string]int{"n": 1}).Costing(inference.Usage{InputTokens: 7, OutputTokens: 2}), enginetest.Say("one two"), enginetest.Say("three"))
		c.Agents = []engine.AgentSpec{{ID: "second", ActiveHookFilter: []string{"keys", "busy", "guard", "other"}}}
	}, waker{engine.NewPlugin("waker", func(*engine.Registrar) error { return nil })},
		engine.NewPlugin("busy", func(r *engine.Registrar) error {
			r.Transform(inference.TransformFunc(func(_ context.Context, q inference.Request) (inference.Request, error) {
				q.System = "be brief"
				return q, nil
			}))
			r.Action(tidy.Handle(func(context.Context, *phase.Context, string) (cmd phase.Command, err error) { return cmd, nil }))
			r.Effect(mail.Handle(nothing))
			r.Hook(phase.StepStart, hookFunc(func(pc *phase.Context, cmd *phase.Command) error {
				cmd.Update(board.With("x")).Schedule(tidy.New("y"), engine.SetOverride.New(engine.OverrideArgs{Override: inference.Override{MaxTokens: inference.Some(9)}})).Emit(mail.New("z"))
				return nil
			}))
			r.Hook(phase.StepStart, hookFunc(func(_ *phase.Context, cmd *phase.Command) error {
				cmd.Update(board.With("y"))
				return nil
			}))
			r.Hook(phase.AfterInference, hookFunc(func(pc *phase.Context, cmd *phase.Command) error {
				switch pc.Run().Step {
				case 1:
					cmd.Update(engine.HandOff("second"))
				case 2:
					cmd.Continue("more")
				}
				return nil
			}))
			r.Hook(phase.StepEnd, hookFunc(func(*phase.Context, *phase.Command) error { return errors.New("no") }), engine.OnError(engine.Skip))
			return nil
		}),
		guardOf("guard", func(c inference.ToolCall) (gate.Decision, error) {
			if strings.Contains(string(c.Args), "1") {
				return gate.Edit(`{"n":2}`), nil
			}
			return gate.Suspend(gate.Ticket{Message: "look?"}), nil
		}),
		guardOf("other", func(c inference.ToolCall) (gate.Decision, error) {
			return gate.Suspend(gate.Ticket{Message: "really?"}), nil
		}))
	th, err := w.engine.NewThread("t")
	require.NoError(t, err)
	spec, in := engine.AgentSpec{ID: "agent"}, engine.Prompt("go")
	tools := []engine.Tool{enginetest.StubTool("look", engine.Text("seen"))}
	in.Tools = tools
	res, err := th.Run(t.Context(), spec, in)
	require.NoError(t, err)
	for range 2 {
		require.Equal(t, phase.Waiting, res.Status)
		res, err = th.Resume(t.Context(), spec, engine.Input{Tools: tools}, engine.Decision{Answer: phase.Answer{Approved: true}})
		require.NoError(t, err)
	}
	require.NoError(t, res.Err)
	require.Equal(t, phase.Done, res.Status)
	look(w)
	require.Empty(t, slices.DeleteFunc(engine.EventTypes(), func(typ string) bool { return kinds[typ] }))
	v := w.rec.View()
	require.Len(t, v.Runs, 1)
	require.EqualValues(t, 7, v.Runs[0].TokensIn)
	require.Equal(t, 3, v.Runs[0].Steps)
	require.Equal(t, 3, v.Runs[0].Conflicts)
	require.Equal(t, 3, v.Runs[0].Retries)
	golden(t, w.why("c1"), w.explain(recording.Query{Key: "doors", Entry: "bed"}), w.explain(recording.Query{Key: "doors", Entry: "bed", Revision: 1}),
		spans(w.rec, recording.KindMark, recording.KindModel, recording.KindStep, recording.KindRun, recording.KindWait))
}
