package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/internal/fanout"
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
		return r.sendOff(ctx, d, p, in.Input), inference.OutcomeOK
	}
	return r.delegated(ctx, r.childID(p.sc.call.Call), d, in.Input, held)
}

// delegated is the run of a delegate, from start to end. Its events come between the
// parent's, or go to held when delegates run in parallel.
func (r *run) delegated(ctx context.Context, id string, d *delegate, text string, held *heldEvents) (out Output, outcome inference.Outcome) {
	out.IsError, outcome = true, inference.OutcomeError
	a, limit := r.eng.agents[d.agent], r.eng.config.Limits.DelegateTimeout
	th, err := r.eng.newThread(id, nil) // what counts of it is the result, in the parent's thread
	if err != nil {
		return Output{Content: "error: " + err.Error(), IsError: true}, inference.OutcomeError
	}
	bounded, cancel := limited(ctx, limit, &TimeoutError{Plugin: d.spec.Name, Phase: phase.BeforeToolExecute, Limit: limit})
	defer cancel()
	input := Prompt(text)
	input.RunID = id
	input.Mode, input.Adapter = r.input.Mode, r.input.Adapter
	input.Resolver, input.GateDefault = r.input.Resolver, r.input.GateDefault
	waits := false
	// In a goroutine of its own, which a lone hook of the delegate may end.
	res, err := fanout.One(context.WithoutCancel(ctx), r.crew, ErrGoexit, func() (*Result, error) {
		res, err := th.run(bounded, a, input, r, held)
		if waits = err == nil && res.Status == phase.Waiting; waits {
			return th.callOff(bounded, a, input, r, held)
		}
		return res, err
	})
	out.Command.Update(Usage.With(Usage.Get(th.Snapshot()))) // however it ended
	switch {
	case err != nil:
		out.Content = "error: " + err.Error()
	case waits:
		out.Content = fmt.Sprintf("agent %s waits for an answer that nobody is there to give", d.agent)
	case res.Reason == phase.ReasonCancelled && ctx.Err() == nil:
		out.Content, outcome = fmt.Sprintf("timed out after %s", limit), inference.OutcomeTimedOut
	case res.Reason == phase.ReasonCancelled, res.Reason == phase.ReasonTimeout && ctx.Err() != nil:
		out.Content, outcome = lostBody(context.Cause(ctx)).Content, inference.OutcomeCancelled
	case res.Err != nil:
		out.Content = fmt.Sprintf("agent %s failed: %v\n%s", d.agent, res.Err, res.Text)
	default:
		out.Content, out.IsError, outcome = res.Text, false, inference.OutcomeOK
	}
	return out, outcome
}
