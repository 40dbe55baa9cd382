// Package desk is the agent that the checks with two processes run: tools that count
// what they did and send a durable effect, and a ledger of who did what.
package desk

import (
	"context"
	"fmt"
	"time"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Spec is the agent; Parallel is one that has a step's calls run at the same time.
var (
	Spec     = engine.AgentSpec{ID: "clerk"}
	Parallel = engine.AgentSpec{ID: "clerk", ToolExecution: engine.ToolsParallel}
)

// The tools.
const (
	Work  = "work"  // may run twice when a process ended under it
	Gated = "gated" // must not, and a gate asks before
)

// Sent is the payload of the durable effect. Its entry in the ledger is of the same
// commit.
type Sent struct {
	Thread string `json:"thread"`
	Entry  Entry  `json:"entry"`
}

// Entry is a line of the ledger.
type Entry struct {
	Owner string `json:"owner"` // the process
	What  string `json:"what"`
	At    int    `json:"at"` // the ledger's length before, or somewhat less
}

// Desk is the plugin, for one process.
type Desk struct {
	Owner string
	// Body is called when a tool's body begins.
	Body func(thread, call string)
	// Deliver gets the durable effects.
	Deliver func(id effects.ID, s Sent)

	ledger state.Log[Entry]
	sent   effects.Spec[Sent]
}

// New returns a desk of that owner that tells nobody.
func New(owner string) *Desk {
	return &Desk{
		Owner: owner, Body: func(string, string) {}, Deliver: func(effects.ID, Sent) {},
		ledger: state.NewLog("desk.ledger", state.Options[Entry]{Scope: state.ScopeThread}),
		sent:   effects.NewSpec[Sent]("desk.sent", effects.Durable()),
	}
}

// Ledger returns the ledger. Entries that begin with "call " were made with the result
// of a call, and have a durable effect.
func (d *Desk) Ledger(snap *state.Snapshot) []Entry { return d.ledger.Get(snap).Slice() }

// Name implements engine.Plugin.
func (d *Desk) Name() string { return "desk" }

// Register implements engine.Plugin.
func (d *Desk) Register(r *engine.Registrar) error {
	r.Key(d.ledger)
	r.Tool(tool{d, Work}, tool{d, Gated})
	r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
		if pc.Call().Name == Gated {
			return gate.Ask(gate.Ticket{Message: "May it?"}), nil
		}
		return gate.Approve(), nil
	}))
	for _, p := range []phase.Phase{phase.StepStart, phase.StepEnd, phase.RunEnd} {
		r.Hook(p, phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
			cmd.Update(d.ledger.Append(d.entry(pc, "phase "+p.String())))
			return cmd, nil
		}))
	}
	r.Effect(d.sent.Handle(func(ctx context.Context, _ *state.Snapshot, s Sent) error {
		id, ok := effects.IDFrom(ctx)
		if !ok {
			return fmt.Errorf("desk: the effect of %q has no id", s.Entry.What)
		}
		d.Deliver(id, s)
		return nil
	}))
	return nil
}

func (d *Desk) entry(pc *phase.Context, what string) Entry {
	return Entry{d.Owner, what, d.ledger.Get(pc.Snapshot()).Len()}
}

// Note returns a command that adds to the ledger.
func (d *Desk) Note(what string) (cmd phase.Command) {
	cmd.Update(d.ledger.Append(Entry{d.Owner, what, 0}))
	return cmd
}

type tool struct {
	*Desk
	name string
}

func (t tool) Spec() inference.ToolSpec { return inference.ToolSpec{Name: t.name, Kind: "write"} }

func (t tool) Recovery() engine.Recovery {
	if t.name == Work {
		return engine.Rerun
	}
	return engine.FailAsInterrupted
}

func (t tool) Call(_ context.Context, pc *phase.Context) (engine.Output, error) {
	t.Body(pc.Run().Thread, pc.Call().ID)
	time.Sleep(200 * time.Microsecond) // the work
	out, e := engine.Text("done by "+t.Owner), t.entry(pc, "call "+pc.Call().ID)
	out.Command.Update(t.ledger.Append(e)).Emit(t.sent.New(Sent{pc.Run().Thread, e}))
	return out, nil
}

// Script makes a model that asks for so many calls of a tool in each of so many steps.
// A call's id is "step.call".
func Script(tool string, steps, calls int) inference.Model {
	var list []enginetest.Answer
	for step := range steps {
		var a enginetest.Answer
		for call := range calls {
			a = a.And(enginetest.Call(fmt.Sprintf("%d.%d", step, call), tool, nil))
		}
		list = append(list, a)
	}
	return enginetest.NewScript(append(list, enginetest.Say("That is all."))...)
}

// Results returns how many results each call has, and an error for a run that is over
// and left a call without one.
func Results(snap *state.Snapshot) (results map[string]int, outcomes map[string]inference.Outcome, err error) {
	results, outcomes = map[string]int{}, map[string]inference.Outcome{}
	for _, m := range engine.Transcript.Get(snap).All() {
		for _, c := range m.ToolCalls {
			results[c.ID] += 0
		}
		if id := m.Result.CallID; id != "" {
			results[id]++
			outcomes[id] = m.Result.Outcome
		}
	}
	for id, n := range results {
		if n != 1 && phase.RunLifecycle.Get(snap).Status == phase.Done {
			err = fmt.Errorf("desk: call %s has %d results", id, n)
		}
	}
	return results, outcomes, err
}
