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
	Input      string `json:"input"`
	Background bool   `json:"background"`
}

func newDelegate(spec AgentSpec) *delegate {
	return &delegate{agent: spec.ID, spec: inference.ToolSpec{
		Name:        DelegatePrefix + spec.ID,
		Description: strings.TrimSpace("Hand a task to agent " + spec.ID + " and get its answer. " + spec.Description),
		Schema: `{"type":"object","properties":{"input":{"type":"string"},"background":{"type":"boolean",` +
			`"description":"true: go on at once; the answer comes as a message in a later step"}},"required":["input"],"additionalProperties":false}`,
		Kind: "delegate",
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

// childID names the run of a call's delegate. It is not from Config.NewID: delegates that
// run side by side would draw ids by timing.
func (r *run) childID(call inference.ToolCall) string {
	return fmt.Sprintf("%s/%d/%s", r.info.ID, r.step(), call.ID)
}

// delegate runs the agent of d, or sends it off to the background.
func (r *run) delegate(ctx context.Context, d *delegate, p *passage, held *heldEvents) (Output, inference.Outcome) {
	var in delegateArgs
	err := p.sc.call.Call.Args.Decode(&in)
	switch limits := &r.eng.config.Limits; {
	case err != nil:
	case r.depth+1 > limits.Depth:
		err = fmt.Errorf("engine: agents may delegate %d levels deep, no further", limits.Depth)
	case p.crowd > limits.FanOut:
		err = fmt.Errorf("engine: an agent may have %d delegates at work at the same time, no more", limits.FanOut)
	case r.overBudget() != "":
		err = errors.New("engine: the token budget is used up: " + r.overBudget())
	}
	if err != nil {
		return Output{Content: "error: " + err.Error(), IsError: true}, inference.OutcomeError
	}
	if in.Background {
		var out Output
		p.aside, out = r.sendOff(ctx, d, p.sc.call.Call, in.Input)
		return out, inference.OutcomeOK
	}
	return r.delegated(ctx, r.childID(p.sc.call.Call), d, in.Input, held)
}

// delegated is the run of a delegate, from start to end. Its events come between the
// parent's, or go to held when delegates run in parallel.
func (r *run) delegated(ctx context.Context, id string, d *delegate, text string, held *heldEvents) (Output, inference.Outcome) {
	failed := func(err error) (Output, inference.Outcome) {
		return Output{Content: "error: " + err.Error(), IsError: true}, inference.OutcomeError
	}
	a := r.eng.agents[d.agent]
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
	input := Prompt(text)
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
	case res.Reason == phase.ReasonCancelled, res.Reason == phase.ReasonTimeout && ctx.Err() != nil:
		out.Content, out.IsError = lostBody(context.Cause(ctx)).Content, true // what it cost counts
		return out, inference.OutcomeCancelled
	case res.Err != nil:
		out.Content, out.IsError = fmt.Sprintf("agent %s failed: %v\n%s", d.agent, res.Err, res.Text), true
	}
	if out.IsError {
		return out, inference.OutcomeError
	}
	return out, inference.OutcomeOK
}
