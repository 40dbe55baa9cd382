package enginetest_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/compact"
	"github.com/ddd26017/fixpoint/plugins/cwd"
	"github.com/ddd26017/fixpoint/plugins/files"
	"github.com/ddd26017/fixpoint/state"
	"github.com/stretchr/testify/require"
)

// eventful is one of two plugins of a kind, which between them make a run in which
// everything happens.
func eventful(name string, told effects.Spec[string], fought state.Cell[string]) engine.Plugin {
	return engine.NewPlugin(name, func(r *engine.Registrar) error {
		r.Hook(phase.StepStart, phase.HookFunc(func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			cmd.Update(fought.With(name)).Emit(told.New(name))
			cmd.Schedule(engine.SetOverride.New(engine.OverrideArgs{Override: inference.Override{Temperature: inference.Some(0.5)}}))
			return cmd, nil
		}))
		r.Hook(phase.StepStart, phase.HookFunc(func(context.Context, *phase.Context) (phase.Command, error) {
			panic("a bad day")
		}), engine.OnError(engine.Skip))
		r.Hook(phase.StepEnd, phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
			if pc.Agent().ID == "first" {
				cmd.Update(engine.HandOff("second"))
			}
			cmd.Continue("one more")
			return cmd, nil
		}))
		r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			if pc.Call().Args == "{}" && name == "a" {
				return gate.Edit(`{"by":"a"}`), nil
			}
			return gate.Ask(gate.Ticket{Message: "says " + name}), nil
		}))
		r.Transform(inference.TransformFunc(func(_ context.Context, req inference.Request) (inference.Request, error) {
			req.System += name
			return req, nil
		}))
		return nil
	})
}

// Capability G1. Report 7. Every event that is declared is told to an observer by a run in
// which it happens, chunks of a streamed answer among them.
func TestEveryEventIsTold(t *testing.T) {
	told, fought := effects.NewSpec[string]("moments.told"), state.NewCell[string]("moments.fought", state.Options[string]{})
	owner := engine.NewPlugin("owner", func(r *engine.Registrar) error {
		r.Key(fought)
		r.Effect(told.Handle(func(context.Context, *state.Snapshot, string) error { return nil }))
		r.Tool(enginetest.StubTool("look", engine.Text("seen")))
		return nil
	})
	config, rec := enginetest.Config(t, owner, eventful("a", told, fought), eventful("b", told, fought))
	config.Stream = true
	config.Limits.Continues = 1
	config.Agents = []engine.AgentSpec{{ID: "first"}, {ID: "second"}}
	config.Model = enginetest.NewScript(enginetest.Call("c1", "look", inference.JSON("{}")), enginetest.Say("this much for now"), enginetest.Say("and that is all"))
	th, err := enginetest.Engine(t, config).NewThread("")
	require.NoError(t, err)
	res, err := th.Run(t.Context(), config.Agents[0], engine.Prompt("go"))
	require.NoError(t, err)
	require.Equal(t, phase.Waiting, res.Status, res.Err)
	res, err = th.Resume(t.Context(), config.Agents[0], engine.Input{}, engine.Decision{Answer: phase.Answer{Approved: true}})
	require.NoError(t, err)
	require.NoError(t, res.Err)
	require.Equal(t, phase.ReasonNatural, res.Reason, res.Detail)

	seen := map[string]int{}
	for _, e := range rec.Events() {
		seen[e.Type()]++
	}
	for _, typ := range engine.EventTypes() {
		require.Positive(t, seen[typ], "nobody was told of %s", typ)
	}
	var chunks strings.Builder
	for _, c := range enginetest.Select[engine.InferenceChunk](rec.Events()) {
		chunks.WriteString(c.Text)
	}
	require.Equal(t, "this much for nowand that is all", chunks.String())
}

// Capability G1. Report 7. Each event that first-party plugins derive fires in a run in
// which what it tells of happens, and is an action like any other: a gate on it sees it.
func TestDerivedActionsFire(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "src"), 0o755))
	place, err := cwd.New(dir, cwd.Options{})
	require.NoError(t, err)
	tree, err := files.Open(dir, files.Options{})
	require.NoError(t, err)
	var seen []any
	watch := engine.NewPlugin("watch", func(r *engine.Registrar) error {
		r.ActionGate(watching(cwd.Changed, &seen))
		r.ActionGate(watching(files.Saved, &seen))
		r.ActionGate(watching(files.Patched, &seen))
		r.ActionGate(watching(compact.Invalidated, &seen))
		return nil
	})
	config, rec := enginetest.Config(t, compact.New(compact.Options{}), place, tree, watch)
	config.Model = enginetest.NewScript(
		enginetest.Call("c1", cwd.ChangeTool, map[string]string{"directory": "src"}),
		enginetest.Call("c2", files.WriteTool, map[string]string{"path": "a.txt", "content": "one"}),
		enginetest.Call("c3", files.EditTool, map[string]string{"path": "a.txt", "old": "one", "new": "three"}),
		enginetest.Say("done"),
	)
	th, err := enginetest.Engine(t, config).NewThread("")
	require.NoError(t, err)
	spec := engine.AgentSpec{ID: "agent", Sections: map[string]inference.JSON{
		compact.Name: `{"max_tokens":2000,"keep_recent":4,"min_saving":100,"summary_tokens":100}`,
	}}
	var in engine.Input
	for range 10 {
		in.Messages = append(in.Messages, inference.User(strings.Repeat("a long story ", 100)))
	}
	res, err := th.Run(t.Context(), spec, in)
	require.NoError(t, err)
	require.NoError(t, res.Err)
	require.Len(t, seen, 4)
	void := seen[0].(compact.InvalidatedArgs)
	require.Equal(t, compact.ReasonSize, void.Reason)
	require.Greater(t, void.Before, void.After)
	seen = seen[1:]
	require.Equal(t, []any{
		cwd.Change{Old: ".", New: "src"},
		files.Save{Path: "a.txt", Created: true, Bytes: 3},
		files.Patch{Path: "a.txt", Line: 1, Bytes: 5},
	}, seen)
	var done []string
	for _, e := range enginetest.Select[engine.ActionFinished](rec.Events()) {
		require.Equal(t, engine.ActionDone, e.Status)
		done = append(done, e.Plugin+" "+e.Action)
	}
	require.Equal(t, []string{"compact compact", "compact compact.invalidated", "cwd cwd.changed", "cwd fixpoint.add_context", "call c2 files.saved", "call c3 files.patched"}, done)
}

// watching is a gate without objections that keeps the payloads it is shown.
func watching[P any](spec phase.ActionSpec[P], seen *[]any) gate.ActionGate {
	return gate.OnAction(spec, func(_ context.Context, _ *phase.Context, args P) (gate.Ruling, error) {
		*seen = append(*seen, args)
		return gate.Ruling{}, nil
	})
}
