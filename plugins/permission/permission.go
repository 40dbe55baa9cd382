package permission

import (
	"context"
	"fmt"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Name is the plugin's name.
const Name = "permission"

// Always is the value of an answer that covers all later calls of the tool in
// the run.
const Always inference.JSON = `"always"`

// Granted holds the tools that were approved with Always in this run.
var Granted = state.NewSet[string]("permission.granted", state.Options[string]{})

// New returns the plugin. It holds nothing and is safe for concurrent use.
func New() engine.Plugin { return engine.NewPlugin(Name, register) }

func register(r *engine.Registrar) error {
	r.Key(Granted)
	r.Section(Section)
	r.Gate(gate.Func(check))
	r.Hook(phase.BeforeToolExecute, phase.HookFunc(remember), engine.Writes(Granted))
	return nil
}

// check is the gate. It decides by the rules and what was granted, nothing else.
func check(_ context.Context, pc *phase.Context) (gate.Decision, error) {
	tool := pc.Tool()
	if tool.Name == "" {
		return gate.Abstain().Because("there is no such tool"), nil
	}
	rules := Section.Get(pc)
	verdict, rule := rules.Judge(tool)
	switch {
	case verdict == Deny:
		return gate.Block(fmt.Sprintf("%s is denied by %s", tool.Name, rule)), nil
	case verdict == Allow:
		return gate.Approve().Because("allowed by " + rule), nil
	case Granted.Has(pc.Snapshot(), tool.Name):
		return gate.Approve().Because("approved earlier for the whole run"), nil
	}
	params, err := preview(tool, pc.Call())
	if err != nil {
		return gate.Decision{}, err
	}
	return gate.Ask(gate.Ticket{
		Kind:    gate.Confirm,
		Message: fmt.Sprintf("Allow %s?", tool.Name),
		Params:  params,
		Choices: gate.Choices("once", "always"),
		Default: rules.Unattended.standard(),
	}).Because("needs a yes by " + rule), nil
}

// remember keeps what was approved for good. It runs once per call, after the
// final yes.
func remember(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	if a, ok := pc.Answer(); ok && a.Approved && a.Value == Always {
		cmd.Update(Granted.Add(pc.Call().Name))
	}
	return cmd, nil
}
