package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// OverrideArgs is the payload of SetOverride.
type OverrideArgs struct {
	Override inference.Override `json:"override"`
	// WholeRun keeps the override for all later steps of the run; otherwise it is for
	// the next model call only. A step's override wins over the run's, and both over
	// the spec.
	WholeRun bool `json:"whole_run,omitzero"`
}

// ContextMode says how long an added message stays.
type ContextMode string

// Modes of added context; the zero mode is persistent.
const (
	Persistent ContextMode = ""          // it becomes part of the thread's history
	OneShot    ContextMode = "one_shot"  // only the next model call sees it
	Throttled  ContextMode = "throttled" // one-shot, at most once in a number of steps
)

// ContextArgs is the payload of AddContext.
type ContextArgs struct {
	Message inference.Message `json:"message"`
	Mode    ContextMode       `json:"mode,omitzero"`
	Key     string            `json:"key,omitzero"`   // for Throttled: what counts as the same
	Every   int               `json:"every,omitzero"` // for Throttled: steps between two, at least 1
}

// Actions of the engine, for every plugin to schedule.
var (
	// SetOverride changes parameters of model calls, field by field: for each field
	// the last one to set it wins, and leaving a field unset changes nothing.
	SetOverride = phase.NewAction[OverrideArgs]("fixpoint.set_override", phase.BeforeInference)
	// AddContext adds a message to what the model sees.
	AddContext = phase.NewAction[ContextArgs]("fixpoint.add_context", phase.BeforeInference)
	// ExcludeTool hides a tool in this step. A call of it gets an error result.
	ExcludeTool = phase.NewAction[string]("fixpoint.exclude_tool", phase.BeforeInference)
	// IncludeOnlyTools hides all tools but these in this step. Of several such
	// actions, only the tools that all of them name remain.
	IncludeOnlyTools = phase.NewAction[[]string]("fixpoint.include_only_tools", phase.BeforeInference)
	// SuspendCall makes the tool call that is about to run wait for an answer. It is
	// for actions at BeforeToolExecute; a gate uses gate.Suspend.
	SuspendCall = phase.NewAction[gate.Ticket]("fixpoint.suspend_call", phase.BeforeToolExecute)
	// WithholdResult keeps a tool's result back until a ticket is answered: yes lets
	// it through, no hides it from the model, and UseAsResult replaces it. The tool
	// does not run again.
	WithholdResult = phase.NewAction[gate.Ticket]("fixpoint.withhold_result", phase.AfterToolExecute)
	// HandOver is HandOff as an action, so that gates can have a say.
	HandOver = phase.NewAction[string]("fixpoint.hand_over", phase.StepEnd)
)

// HandOff returns the update that makes another agent take the run over at the
// end of the step. The agent must be in Config.Agents. The last one written wins.
func HandOff(agent string) state.Update { return nextAgent.With(agent) }

var (
	// overrides and contexts are for the current step, runOverride for the run.
	overrides   = state.NewLog("fixpoint.step_overrides", state.Options[inference.Owned]{})
	runOverride = state.NewLog("fixpoint.run_overrides", state.Options[inference.Owned]{})
	contexts    = state.NewLog("fixpoint.contexts", state.Options[inference.Message]{Clone: inference.Message.Clone})
	hiddenTools = state.NewSet[string]("fixpoint.hidden_tools", state.Options[string]{})
	onlyTools   = state.NewLog("fixpoint.only_tools", state.Options[[]string]{Clone: slices.Clone[[]string]})
	throttle    = state.NewTable[string]("fixpoint.throttle", state.Options[int]{})
)

type schedulerKey struct{}

// Scheduler returns the plugin that scheduled the action whose handler was called
// with ctx, or "".
func Scheduler(ctx context.Context) string {
	name, _ := ctx.Value(schedulerKey{}).(string)
	return name
}

// builtins is the engine's own plugin: the handlers of its actions.
type builtins struct{}

func (builtins) Name() string { return engineName }

func (builtins) Register(r *Registrar) error {
	r.Key(throttle)
	r.Action(
		SetOverride.Handle(setOverride),
		AddContext.Handle(addContext),
		ExcludeTool.Handle(func(_ context.Context, _ *phase.Context, name string) (cmd phase.Command, err error) {
			cmd.Update(hiddenTools.Add(name))
			return cmd, nil
		}),
		IncludeOnlyTools.Handle(func(_ context.Context, _ *phase.Context, names []string) (cmd phase.Command, err error) {
			cmd.Update(onlyTools.Append(names))
			return cmd, nil
		}),
		SuspendCall.Handle(suspendCall),
		WithholdResult.Handle(suspendCall),
		HandOver.Handle(func(_ context.Context, _ *phase.Context, agent string) (cmd phase.Command, err error) {
			cmd.Update(HandOff(agent))
			return cmd, nil
		}),
	)
	return nil
}

func setOverride(ctx context.Context, _ *phase.Context, args OverrideArgs) (cmd phase.Command, err error) {
	if err := args.Override.Validate(); err != nil {
		return cmd, err
	}
	owned := inference.Owned{Owner: Scheduler(ctx), Override: args.Override}
	if args.WholeRun {
		cmd.Update(runOverride.Append(owned))
	} else {
		cmd.Update(overrides.Append(owned))
	}
	return cmd, nil
}

func addContext(_ context.Context, pc *phase.Context, args ContextArgs) (cmd phase.Command, err error) {
	switch args.Mode {
	case Persistent:
		cmd.Update(Transcript.Append(args.Message))
	case OneShot:
		cmd.Update(contexts.Append(args.Message))
	case Throttled:
		if args.Key == "" || args.Every < 1 {
			return cmd, errors.New("engine: throttled context needs a key and a number of steps of at least 1")
		}
		step := pc.Run().Step
		if last, ok := throttle.Get(pc.Snapshot(), args.Key); ok && step-last < args.Every {
			return cmd, nil
		}
		cmd.Update(throttle.Put(args.Key, step), contexts.Append(args.Message))
	default:
		return cmd, fmt.Errorf("engine: unknown context mode %q", args.Mode)
	}
	return cmd, nil
}

func suspendCall(ctx context.Context, pc *phase.Context, t gate.Ticket) (cmd phase.Command, err error) {
	id := pc.Call().ID
	c, ok := ToolCalls.Get(pc.Snapshot(), id)
	again := c.Ticket.ID == "" && c.Ticket.Plugin == Scheduler(ctx) // the process ended before it was asked
	if !ok || c.Status == CallSuspended && !again || c.Settled {
		return cmd, errors.New("engine: there is no tool call that could be suspended now")
	}
	if !t.Valid() {
		t = gate.Ticket{Kind: brokenTicket} // it could not be saved, and to ignore it would let the call through
	}
	t.ID, t.Plugin = "", Scheduler(ctx)
	c.Status, c.Ticket = CallSuspended, t
	if pc.Phase() == phase.AfterToolExecute {
		c.Ended, c.Result = true, pc.Result()
	}
	cmd.Update(ToolCalls.Put(id, c))
	return cmd, nil
}

// stepKeys are reset when a step begins.
func stepKeys(snap *state.Snapshot) []state.Update {
	var us []state.Update
	for _, k := range []interface {
		state.AnyKey
		Reset() state.Update
	}{overrides, contexts, hiddenTools, onlyTools} {
		if snap.ChangedAt(k) > 0 {
			us = append(us, k.Reset())
		}
	}
	return us
}

// hidden reports whether an action took the tool out of this step.
func (r *run) hidden(name string) bool {
	snap := r.th.store.Snapshot()
	leavesOut := func(only []string) bool { return !slices.Contains(only, name) }
	return hiddenTools.Has(snap, name) || slices.ContainsFunc(onlyTools.Get(snap).Slice(), leavesOut)
}

// offered returns the tools that the model may call in this step.
func (r *run) offered() []inference.ToolSpec {
	a := r.agent.Load()
	tools := slices.Clone(a.tools)
	for _, t := range r.input.Tools {
		if a.spec.permitsTool(t.Spec().Name) {
			tools = append(tools, t)
		}
	}
	tools = slices.DeleteFunc(tools, func(t Tool) bool { return r.hidden(t.Spec().Name) })
	return each(tools, Tool.Spec)
}
