package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// DelegatePrefix starts the names of the tools that delegate to other agents: the
// agent's id follows.
const DelegatePrefix = "delegate_to_"

// delegate is the tool that runs another agent on a thread of its own, under the
// gates of the run that called it besides the agent's own.
type delegate struct {
	agent string
	spec  inference.ToolSpec
}

type delegateArgs struct {
	Input string `json:"input"`
}

func newDelegate(spec AgentSpec) *delegate {
	return &delegate{agent: spec.ID, spec: inference.ToolSpec{
		Name:        DelegatePrefix + spec.ID,
		Description: strings.TrimSpace("Hand a task to agent " + spec.ID + " and get its answer. " + spec.Description),
		Schema:      `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`,
		Kind:        "delegate",
	}}
}

func (d *delegate) Spec() inference.ToolSpec { return d.spec }

func (d *delegate) Validate(args inference.JSON) error {
	var in delegateArgs
	return args.Decode(&in)
}

// Call exists so that a delegate is a Tool. A run calls delegated instead, since a
// delegate needs the run that it works for.
func (d *delegate) Call(context.Context, *phase.Context) (Output, error) {
	return Output{}, errors.New("engine: a delegate works only inside a run")
}

// delegated runs the agent of d. Its events come between the parent's, or go to
// held when delegates run in parallel.
func (r *run) delegated(ctx context.Context, d *delegate, call inference.ToolCall, held *heldEvents) (Output, inference.Outcome) {
	failed := func(err error) (Output, inference.Outcome) {
		return Output{Content: "error: " + err.Error(), IsError: true}, inference.OutcomeError
	}
	if limit := r.eng.config.Limits.Depth; r.depth+1 > limit {
		return failed(fmt.Errorf("engine: agents may delegate %d levels deep, no further", limit))
	}
	var in delegateArgs
	if err := call.Args.Decode(&in); err != nil {
		return failed(err)
	}
	a := r.eng.agents[d.agent]
	// Not from Config.NewID: delegates that run side by side would draw ids by timing.
	id := fmt.Sprintf("%s/%d/%s", r.info.ID, r.step(), call.ID)
	th, err := r.eng.newThread(id, nil) // what counts of it is the result, in the parent's thread
	if err != nil {
		return failed(err)
	}
	bounded, limit := ctx, r.eng.config.Limits.DelegateTimeout
	if limit > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeoutCause(ctx, limit, &TimeoutError{Plugin: d.spec.Name, Phase: phase.BeforeToolExecute, Limit: limit})
		defer cancel()
	}
	input := Prompt(in.Input)
	input.RunID = id
	input.Mode, input.Adapter = r.input.Mode, r.input.Adapter
	input.Resolver, input.GateDefault = r.input.Resolver, r.input.GateDefault
	res, err := th.run(bounded, a, input, r, held)
	waits := err == nil && res.Status == phase.Waiting
	if waits {
		res, err = th.callOff(bounded, a, input, r, held)
	}
	if err != nil {
		return failed(err)
	}
	out := Output{Content: res.Text}
	out.Command.Update(Usage.With(res.Usage))
	switch {
	case waits:
		out.Content, out.IsError = fmt.Sprintf("agent %s waits for an answer that nobody is there to give", d.agent), true
	case res.Reason == phase.ReasonCancelled && ctx.Err() == nil:
		out.Content, out.IsError = fmt.Sprintf("timed out after %s", limit), true
		return out, inference.OutcomeTimedOut
	case res.Reason == phase.ReasonCancelled:
		return lostBody(res.Err), inference.OutcomeCancelled
	case res.Err != nil:
		out.Content, out.IsError = fmt.Sprintf("agent %s failed: %v\n%s", d.agent, res.Err, res.Text), true
	}
	if out.IsError {
		return out, inference.OutcomeError
	}
	return out, inference.OutcomeOK
}
