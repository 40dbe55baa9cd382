package enginetest

import (
	"slices"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Driver takes plugins through one phase and shows what they did. The zero Driver
// has no plugins; fill in what the test is about. A Driver can be used repeatedly,
// each time with a new engine and thread.
//
// Without a Call and a Model the phase runs by itself: hooks, then actions, then
// effects, with no request, response or tool call to look at. With one of the two
// it is the first such phase of a whole run, which the Model leads up to; so gates
// have a call to judge at tool_gate, and hooks a response at after_inference.
type Driver struct {
	Plugins []engine.Plugin
	// Spec is the agent; an empty ID becomes "agent".
	Spec engine.AgentSpec
	// Seed is state that is there when the phase begins.
	Seed []state.Update
	// Actions are queued before it.
	Actions []phase.Action
	// Messages are the run's input or, without a run, the thread's history.
	Messages []inference.Message
	// Call is what the model asks for when Model is nil.
	Call inference.ToolCall
	// Model leads the run; a Script, usually.
	Model inference.Model
	// Tools are there besides those of the plugins; see StubTool.
	Tools []engine.Tool
	// Configure may change the engine's configuration.
	Configure func(*engine.Config)
}

// Outcome is what a phase did.
type Outcome struct {
	// Report is the phase's report. That of a phase within a run is put together
	// from events: its errors are only texts, and Stopped and Commits are not set.
	Report *engine.Report
	// Err is why the phase failed, or nil; within a run a text only.
	Err error
	// Before and Snapshot are the state before and after the phase.
	Before, Snapshot *state.Snapshot
	// Events are those of the phase, from its start to its end.
	Events []engine.Event
	// Run is the result of the whole run; nil for a phase by itself.
	Run *engine.Result
}

// seedName is whose the writes of Driver.Seed are.
const seedName = "enginetest.seed"

// history is how many revisions a driven run may have until the phase's is lost.
const history = 1 << 16

// RunPhase takes the plugins through p. What keeps the phase from running, such as
// a refused plugin or spec or a run that ends before it, fails the test at once; a
// failure of the phase itself is in the Outcome.
func (d Driver) RunPhase(t TB, p phase.Phase) Outcome {
	t.Helper()
	if d.Spec.ID == "" {
		d.Spec.ID = "agent"
	}
	inRun := d.Model != nil || d.Call != (inference.ToolCall{})
	plugins := slices.Clone(d.Plugins)
	if inRun && len(d.Seed) > 0 {
		plugins = append(plugins, seedPlugin(d.Seed))
		d.Spec = withPlugin(d.Spec.Clone(), seedName)
	}
	config, rec := Config(t, plugins...)
	config.Limits.History = history
	config.Model = d.Model
	if d.Model == nil {
		config.Model = NewScript(Answer{ToolCalls: []inference.ToolCall{d.Call}}, Say("done"))
	}
	if d.Configure != nil {
		d.Configure(&config)
	}
	th, err := Engine(t, config).NewThread("")
	if err != nil {
		t.Fatalf("enginetest: %v", err)
	}
	var prepare phase.Command
	prepare.Schedule(d.Actions...) // queued actions outlive the start of a run
	if !inRun {
		prepare.Update(d.Seed...).Update(engine.Transcript.Append(d.Messages...))
	}
	if _, err := th.Submit(t.Context(), seedName, prepare); err != nil {
		t.Fatalf("enginetest: the seed was refused: %v", err)
	}
	if inRun {
		return d.within(t, th, rec, p)
	}
	return d.alone(t, th, rec, p)
}

// alone runs the phase by itself.
func (d Driver) alone(t TB, th *engine.Thread, rec *Recorder, p phase.Phase) Outcome {
	t.Helper()
	rec.Reset()
	out := Outcome{Before: th.Snapshot()}
	out.Report, out.Err = th.RunPhase(t.Context(), d.Spec, p)
	if out.Report == nil {
		t.Fatalf("enginetest: %s cannot run: %v", p, out.Err)
	}
	out.Snapshot, out.Events = th.Snapshot(), rec.Events()
	return out
}

// within runs the agent and cuts the first phase p out of it.
func (d Driver) within(t TB, th *engine.Thread, rec *Recorder, p phase.Phase) Outcome {
	t.Helper()
	res, err := th.Run(t.Context(), d.Spec, engine.Input{Messages: d.Messages, Tools: d.Tools})
	if err != nil {
		t.Fatalf("enginetest: the agent cannot run: %v", err)
	}
	events := cut(rec.Run(res.Run), p)
	if len(events) == 0 {
		t.Fatalf("enginetest: the run ended (%s %s) before %s came", res.Reason, res.Detail, p)
	}
	out := Outcome{Run: res, Events: events}
	out.Report, out.Err = assemble(p, events)
	for _, at := range []struct {
		snap  **state.Snapshot
		event engine.Event
	}{{&out.Before, events[0]}, {&out.Snapshot, events[len(events)-1]}} {
		snap, ok := th.At(at.event.Head().Revision)
		if !ok {
			t.Fatalf("enginetest: revision %d is gone; raise Limits.History", at.event.Head().Revision)
		}
		*at.snap = snap
	}
	return out
}

// cut returns the events from the first start of p to its end.
func cut(events []engine.Event, p phase.Phase) []engine.Event {
	start := slices.IndexFunc(events, func(e engine.Event) bool {
		_, is := e.(engine.PhaseStarted)
		return is && e.Head().Phase == p
	})
	if start < 0 {
		return nil
	}
	end := slices.IndexFunc(events[start:], func(e engine.Event) bool {
		_, is := e.(engine.PhaseFinished)
		return is && e.Head().Phase == p
	})
	if end < 0 {
		return nil
	}
	return events[start : start+end+1]
}

// seedPlugin prepares the state of a run: what is written before a run starts
// would be cleared with everything else of the run's scope.
type seedPlugin []state.Update

func (seedPlugin) Name() string { return seedName }

func (seedPlugin) Register(*engine.Registrar) error { return nil }

func (s seedPlugin) OnActivate(_ engine.AgentSpec, b *engine.Batch) error {
	b.Update(s...)
	return nil
}

// withPlugin makes a plugin active in a spec that lists plugins.
func withPlugin(spec engine.AgentSpec, name string) engine.AgentSpec {
	if len(spec.PluginIDs) > 0 {
		spec.PluginIDs = append(spec.PluginIDs, name)
	}
	if len(spec.ActiveHookFilter) > 0 {
		spec.ActiveHookFilter = append(spec.ActiveHookFilter, name)
	}
	return spec
}
