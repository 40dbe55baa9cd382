package confirm

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Name is the plugin's name.
const Name = "confirm"

// Options adjust the plugin. The zero value is useful.
type Options struct {
	// Profiles keeps what is approved across runs; nil means that it is not offered.
	Profiles state.ProfileStore
	// Owner says whose approvals count in a run; nil means those of "installation". It must
	// be pure and safe for concurrent use.
	Owner func(phase.RunInfo) string
	// Previews show what calls of a tool would change, by the tool's name.
	Previews map[string]Previewer
}

type plugin struct{ Options }

// New returns the plugin. It holds the options and nothing else, and is safe for
// concurrent use. The map in the options must not change any more.
func New(o Options) engine.Plugin {
	p := &plugin{o}
	if p.Owner == nil {
		p.Owner = func(phase.RunInfo) string { return "installation" }
	}
	return engine.NewPlugin(Name, p.register)
}

func (p *plugin) register(r *engine.Registrar) error {
	r.Key(Grants, Thread, used)
	r.ProfileKey(Profile)
	r.Section(Section)
	r.Effect(Persist.Handle(p.persist))
	if p.Profiles != nil {
		// Who cannot be remembered is asked again.
		r.Hook(phase.RunStart, phase.HookFunc(p.recall), engine.Writes(Grants), engine.OnError(engine.Skip))
	}
	r.Gate(gate.Func(p.check))
	r.Hook(phase.BeforeToolExecute, phase.HookFunc(p.remember), engine.Writes(Grants, Thread, used))
	return nil
}

func (p *plugin) offer(s Settings, tool inference.ToolSpec) offer {
	return offer{edits: !anyOf(s.NoEdit, tool), persists: p.Profiles != nil}
}

// check is the gate: an answer about exactly this call counts, then what was approved
// earlier, and else it asks.
func (p *plugin) check(ctx context.Context, pc *phase.Context) (gate.Decision, error) {
	tool, s := pc.Tool(), Section.Get(pc)
	if tool.Name == "" || !s.asks(tool) {
		return gate.Abstain(), nil
	}
	o, note := p.offer(s, tool), ""
	if w, ok := said(pc); ok {
		d, err := w.judge(pc.Call(), o)
		switch {
		case err != nil:
			// The ticket's id makes the question another one than that which was approved.
			note = fmt.Sprintf(" (the answer to %s: %v)", w.answer.Ticket, err)
		case d.Kind() != gate.KindApprove || w.mine:
			return d, nil
		}
	}
	if entry, _, ok := granted(pc, s); ok && note == "" {
		return gate.Approve().Because("approved earlier: " + cmp.Or(entry, "this call")), nil
	}
	params, err := p.preview(ctx, pc, o)
	if err != nil {
		return gate.Decision{}, err
	}
	lifetime, _ := time.ParseDuration(s.Lifetime) // Validate saw to it
	return gate.Ask(gate.Ticket{
		Kind: gate.Confirm, Message: "Allow " + tool.Name + "?" + note, Params: params, Schema: o.schema(),
		Default: s.Unattended.standard(), Lifetime: lifetime,
	}).Because("asks unless somebody else approves"), nil
}

// word is what a person said about a call.
type word struct {
	answer phase.Answer
	mine   bool // for certain to a question of this plugin
}

// said returns the last approving answer to a question of this plugin that is about
// exactly this call, or in which the person wrote its arguments. Of a delegate's call it
// knows less: the answer may be to another plugin's question, and is not mine.
func said(pc *phase.Context) (w word, ok bool) {
	if !own(pc) {
		w.answer, ok = pc.Answer()
		return w, ok
	}
	c, _ := engine.ToolCalls.Get(pc.Snapshot(), pc.Call().ID)
	print := gate.Fingerprint(pc.Call())
	for _, a := range c.Answers {
		if a.Ticket.Plugin == Name && a.Answer.Approved && (a.Ticket.Fingerprint == print || wrote(a.Answer, pc.Call())) {
			w, ok = word{a.Answer, true}, true
		}
	}
	return w, ok
}

// wrote reports whether the answer is an edit with just the arguments of call.
func wrote(a phase.Answer, call inference.ToolCall) bool {
	said, err := Parse(a.Value)
	return err == nil && said.Choice == Edit && same(call, said.Args)
}

func same(call inference.ToolCall, args inference.JSON) bool {
	edited := call
	edited.Args = args
	return gate.Fingerprint(edited) == gate.Fingerprint(call)
}

// judge says what the answer makes of the call, or why it cannot be used.
func (w word) judge(call inference.ToolCall, o offer) (gate.Decision, error) {
	if w.answer.Args != "" && !o.edits {
		return gate.Block(fmt.Sprintf("the answer to %s edited the arguments, which %s does not take", w.answer.Ticket, call.Name)), nil
	}
	a, err := Parse(w.answer.Value)
	if err == nil {
		err = o.suits(a)
	}
	switch {
	case err != nil:
		return gate.Decision{}, err
	case a.Choice == No:
		return gate.Block(cmp.Or(a.Reason, "the user said no")), nil
	case a.Choice == Edit && !same(call, a.Args):
		return gate.Edit(a.Args).Because("edited in the answer to " + w.answer.Ticket), nil
	}
	return gate.Approve().Because(fmt.Sprintf("%s, in the answer to %s", a.Choice, w.answer.Ticket)), nil
}
