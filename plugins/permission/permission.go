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

// Always is the value of an answer that covers what the question's Preview says: all later
// calls of the tool in the run that the same rule asks about.
const Always inference.JSON = `"always"`

// Granted holds what was approved with Always in this run: the Always of the Preview that
// was answered.
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
	verdict, rule := rules.JudgeCall(tool, pc.Call().Args)
	switch {
	case verdict == Deny:
		return gate.Block(fmt.Sprintf("%s is denied by %s", tool.Name, rule)), nil
	case verdict == Abstain:
		return gate.Abstain(), nil
	case verdict == Allow:
		return gate.Approve().Because("allowed by " + rule), nil
	case Granted.Has(pc.Snapshot(), always(tool, rule)):
		return gate.Approve().Because("approved earlier for the whole run"), nil
	}
	params, err := preview(tool, pc.Call(), always(tool, rule))
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

// always says what an answer with Always covers.
func always(tool inference.ToolSpec, rule string) string {
	return fmt.Sprintf("every call of %s that %s asks about", tool.Name, rule)
}

// remember keeps what was approved for good, as it was shown, if exactly this call was. It
// runs once per call, after the final yes.
func remember(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	call := pc.Call()
	asked, _ := engine.ToolCalls.Get(pc.Snapshot(), call.ID)
	for _, a := range asked.Answers {
		if a.Ticket.Plugin != Name || a.Ticket.Fingerprint != gate.Fingerprint(call) || !a.Answer.Approved || a.Answer.Value != Always {
			continue
		}
		var shown Preview
		if err := a.Ticket.Params.Decode(&shown); err != nil {
			return cmd, fmt.Errorf("permission: the question %s cannot be read back: %w", a.Ticket.ID, err)
		}
		cmd.Update(Granted.Add(shown.Always))
	}
	return cmd, nil
}
