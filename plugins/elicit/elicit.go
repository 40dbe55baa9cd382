package elicit

import (
	"context"
	"errors"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

const (
	// Name is the plugin's name.
	Name = "elicit"
	// Tool is the name of its tool.
	Tool = "ask_user"
	// Kind is the tool's kind, for policies.
	Kind = "ask"
)

// New returns the plugin. It holds nothing and is safe for concurrent use.
func New() engine.Plugin { return engine.NewPlugin(Name, register) }

func register(r *engine.Registrar) error {
	r.Section(Section)
	r.Tool(askUser{})
	r.Hook(phase.AfterToolExecute, phase.HookFunc(shape))
	return nil
}

// Status says how a question ended.
type Status string

// The statuses.
const (
	Answered  Status = "answered"
	Declined  Status = "declined"  // the user does not want to tell
	Cancelled Status = "cancelled" // nobody answered, or the user called it off
)

// Reply is the result of a call: in its content and in its details, as JSON.
type Reply struct {
	Status Status          `json:"status"`
	Kind   gate.TicketKind `json:"kind"`
	Value  inference.JSON  `json:"value,omitzero"`  // text, choice: a text; multi_choice: a list; form: an object; confirm: true or false
	Handle string          `json:"handle,omitzero"` // secret: where the vault has it
	Reason string          `json:"reason,omitzero"`
}

// ErrNoVault is what a call with a secret ends with when there is no place to keep it.
var ErrNoVault = errors.New("elicit: secrets cannot be asked for: the engine has no vault (Config.Vault) or it failed, " +
	"and what the user typed is lost; go on without it")

type askUser struct{}

func (askUser) Spec() inference.ToolSpec {
	return inference.ToolSpec{
		Name: Tool, Kind: Kind, Schema: schema,
		Description: "Ask the user for something that only the user can know or decide, and get the answer as JSON. " +
			"A secret is given to you as a handle for other tools, never as it is.",
	}
}

// Validate is asked before the gates and the user are.
func (askUser) Validate(args inference.JSON) error {
	_, err := Parse(args)
	return err
}

func (askUser) Call(_ context.Context, pc *phase.Context) (out engine.Output, err error) {
	q, err := Parse(pc.Call().Args)
	if err != nil {
		return out, err
	}
	given := pc.Answers()
	if len(given) == 0 {
		t := q.ticket(Section.Get(pc))
		return engine.Output{Ask: &t}, nil
	}
	answer := given[len(given)-1]
	reply := Reply{Status: Answered, Kind: q.Kind, Value: answer.Value, Reason: answer.Reason}
	switch q.Kind {
	case gate.Confirm:
		reply.Value = "true"
	case gate.Secret:
		if answer.Handle == "" {
			return out, ErrNoVault
		}
		reply.Value, reply.Handle = "", answer.Handle
	}
	text, err := inference.ToJSON(reply)
	return engine.Output{Content: string(text), Details: text}, err
}

// shape turns a no into a reply like the others. The tool itself is not called for it.
func shape(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	answer, ok := pc.Answer()
	c, _ := engine.ToolCalls.Get(pc.Snapshot(), pc.Call().ID)
	outcome := pc.Result().Outcome
	if !ok || answer.Approved || pc.Call().Name != Tool || c.Ticket.Plugin != "tool "+Tool || c.Ticket.ID != answer.Ticket ||
		outcome != inference.OutcomeDenied && outcome != inference.OutcomeCancelled {
		return cmd, nil
	}
	reply := Reply{Status: Declined, Kind: c.Ticket.Kind, Reason: answer.Reason}
	switch {
	case answer.Cancel:
		reply.Status = Cancelled
	case c.Ticket.Kind == gate.Confirm:
		reply.Status, reply.Value = Answered, "false"
	}
	text, err := inference.ToJSON(reply)
	cmd.EditContent(pc.Call().ID, string(text)).EditDetails(pc.Call().ID, text).EditIsError(pc.Call().ID, false)
	return cmd, err
}
