package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// The state that hooks, actions and tools write.
var (
	ran     = state.NewTable[string]("sim.ran", state.Options[string]{Scope: state.ScopeThread})  // by call
	emitted = state.NewTable[string]("sim.emitted", state.Options[int]{Scope: state.ScopeThread}) // by token
	mood    = state.NewCell[string]("sim.mood", state.Options[string]{})                          // hooks fight over it
	purse   = state.NewCell[int]("sim.purse", state.Options[int]{Scope: state.ScopeThread})
	total   = state.NewCounter("sim.total", state.Options[int64]{Scope: state.ScopeThread})
)

var (
	durable = effects.NewSpec[string]("sim.durable", effects.Durable())
	plain   = effects.NewSpec[string]("sim.plain")
	cascade = phase.NewAction[int]("sim.cascade", phase.StepEnd)
	ripple  = phase.NewAction[int]("sim.ripple", phase.BeforeInference).ReplaySafe()
)

// agent is the plugins and the model of one process. All that it does at random
// depends on the plan and on what it is asked.
type agent struct {
	p *process

	mu     sync.Mutex
	counts map[string]int
}

// count returns how often the process came to one point, this time included.
func (a *agent) count(parts ...string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.counts == nil {
		a.counts = map[string]int{}
	}
	key := strings.Join(parts, " ")
	a.counts[key]++
	return a.counts[key]
}

func (a *agent) plugins() []engine.Plugin {
	first := engine.NewPlugin("first", func(r *engine.Registrar) error {
		r.Key(ran, emitted, mood, purse, total)
		r.Effect(
			durable.Handle(func(ctx context.Context, _ *state.Snapshot, text string) error { return a.receive(ctx, text) }),
			plain.Handle(func(ctx context.Context, _ *state.Snapshot, text string) error { return a.receive(ctx, text) }),
		)
		r.Action(cascade.Handle(a.cascades), ripple.Handle(a.ripples))
		r.Gate(gate.Func(a.judge))
		for _, name := range []string{"pay", "work", "redo", "check"} {
			r.Tool(tool{a, name})
		}
		a.hooks(r)
		return nil
	})
	second := engine.NewPlugin("second", func(r *engine.Registrar) error {
		a.hooks(r)
		return nil
	})
	return []engine.Plugin{first, second}
}

// hooks registers those that the plan has for the plugin.
func (a *agent) hooks(r *engine.Registrar) {
	plugin := r.Plugin()
	for p := range phase.All() {
		if p != phase.ToolGate && a.p.w.dice.chance(450, "hook", plugin, p.String()) {
			r.Hook(p, phase.HookFunc(func(ctx context.Context, pc *phase.Context) (phase.Command, error) { return a.hook(ctx, pc, plugin) }))
		}
	}
}

var errHook = errors.New("sim: the hook fails")

func (a *agent) hook(ctx context.Context, pc *phase.Context, plugin string) (cmd phase.Command, err error) {
	if a.p.gone() {
		return cmd, errDead
	}
	run := pc.Run()
	at := fmt.Sprintf("%s/%s/%s/%d/%s", run.Thread, plugin, pc.Phase(), run.Step, pc.Call().ID)
	n := a.count(at)
	d := a.p.w.dice.about("hook", at)
	a.p.w.ledger.add(func(s *Stats) { s.Hooks++ })
	if d.chance(25, "slow", n) && !a.p.calm {
		a.p.work(ctx, d.span(30*time.Second, "work"))
	}
	if d.chance(8, "fails", a.p.name, n) && !a.p.calm {
		return cmd, errHook
	}
	cmd.Update(total.With(1))
	if d.chance(500, "mood") {
		cmd.Update(mood.With(at))
	}
	if d.chance(250, "durable") {
		a.emit(&cmd, true, fmt.Sprintf("%s.%s.%s.%d", at, run.ID, a.p.name, n))
	}
	if d.chance(150, "plain") {
		a.emit(&cmd, false, fmt.Sprintf("%s.%s.%s.%d", at, run.ID, a.p.name, n))
	}
	if d.chance(150, "cascade") {
		cmd.Schedule(cascade.New(1 + d.n(3, "length")))
	}
	if d.chance(150, "ripple") && pc.Phase() < phase.BeforeInference {
		cmd.Schedule(ripple.New(1), ripple.New(2))
	}
	question := gate.Ticket{Message: "sure?"}
	switch pc.Phase() {
	case phase.BeforeToolExecute:
		if d.chance(100, "suspend") {
			cmd.Schedule(engine.SuspendCall.New(question))
		}
	case phase.AfterToolExecute:
		if d.chance(150, "withhold") {
			cmd.Schedule(engine.WithholdResult.New(question))
		}
		if d.chance(200, "edit") {
			cmd.EditContent(pc.Call().ID, "edited: "+pc.Result().Content)
		}
	case phase.StepEnd:
		if d.chance(100, "continue") {
			cmd.Continue("more")
		}
		if a.p.w.plan.handoffs && d.chance(300, "hand off") {
			cmd.Update(engine.HandOff([]string{"sim", "other"}[d.n(2, "to")]))
		}
		if d.chance(30, "end") {
			cmd.EndRun("enough", plugin)
		}
	}
	return cmd, nil
}

// emit adds an effect and, so that the ledger knows, its token to the state.
func (a *agent) emit(cmd *phase.Command, lasting bool, who string) {
	if lasting {
		text := newToken(tokenDurable, who)
		cmd.Emit(durable.New(text)).Update(emitted.Put(text, 1))
	} else {
		text := newToken(tokenPlain, who)
		cmd.Emit(plain.New(text)).Update(emitted.Put(text, 1))
	}
}

// receive is the handler of effects.
func (a *agent) receive(ctx context.Context, text string) error {
	id, ok := effects.IDFrom(ctx)
	if !ok {
		a.p.w.ledger.violated("effect %s has no id", text)
	}
	if a.p.gone() {
		return errDead
	}
	if a.p.w.plan.background && slotOf(ctx) == runSlot {
		// Beside the run, so never at the same moment as it.
		ctx = context.WithValue(ctx, slotKey{}, shadowSlot)
		if !a.p.work(ctx, time.Millisecond) {
			return errDead
		}
	}
	d := a.p.w.dice.about("receive", text, a.p.name, a.count(text))
	if !a.p.calm {
		if d.chance(30, "slow") && !a.p.work(ctx, d.span(4*time.Second, "for")) || d.chance(100, "fails") {
			return errors.New("sim: the receiver is not there")
		}
	}
	a.p.w.trace(a.p.name, "receives %s as %s", text, id)
	a.p.w.ledger.delivers(text, id)
	if !a.p.calm && d.chance(30, "fails late") {
		return errors.New("sim: the receiver does not answer")
	}
	return nil
}

// cascades schedules itself again until it is done.
func (a *agent) cascades(_ context.Context, pc *phase.Context, n int) (cmd phase.Command, err error) {
	if a.p.gone() {
		return cmd, errDead
	}
	at := fmt.Sprintf("%s/cascade/%d/%d", pc.Run().Thread, pc.Run().Step, n)
	cmd.Update(total.With(1), mood.With(at))
	if n > 1 {
		cmd.Schedule(cascade.New(n - 1))
	}
	if a.p.w.dice.chance(200, "cascade", at) {
		a.emit(&cmd, true, fmt.Sprintf("%s.%s.%s.%d", at, pc.Run().ID, a.p.name, a.count(at)))
	}
	return cmd, nil
}

func (a *agent) ripples(_ context.Context, _ *phase.Context, n int) (cmd phase.Command, err error) {
	if a.p.gone() {
		return cmd, errDead
	}
	cmd.Update(total.With(int64(n)), mood.With(fmt.Sprint("ripple ", n)))
	return cmd, nil
}

// judge is the gate: what costs money needs a yes.
func (a *agent) judge(_ context.Context, pc *phase.Context) (gate.Decision, error) {
	call := pc.Call()
	if call.Name == "pay" {
		d := a.p.w.dice.about("pay", pc.Run().Thread, call.ID)
		t := gate.Ticket{Message: "pay?"}
		if d.chance(400, "lifetime") {
			t.Lifetime = 100 * time.Millisecond * time.Duration(50+d.n(400, "for"))
			t.Default = []gate.Default{gate.NoDefault, gate.DefaultNo, gate.DefaultCancel}[d.n(3, "default")]
		}
		return gate.Suspend(t), nil
	}
	switch d := a.p.w.dice.about("judge", pc.Run().Thread, call.ID); {
	case d.chance(80, "block"):
		return gate.Block("not today"), nil
	case d.chance(60, "instead"):
		return gate.SetResult(inference.ToolResult{Content: "as always"}), nil
	case d.chance(80, "ask"):
		return gate.Ask(gate.Ticket{Message: "may it?"}), nil
	}
	return gate.Abstain(), nil
}

// tool does work that the ledger watches. Its name says how it is recovered.
type tool struct {
	a    *agent
	name string
}

func (t tool) Spec() inference.ToolSpec { return inference.ToolSpec{Name: t.name, Kind: "write"} }

func (t tool) Recovery() engine.Recovery {
	switch t.name {
	case "redo":
		return engine.Rerun
	case "check":
		return engine.AskPerson
	default:
		return engine.FailAsInterrupted
	}
}

func (t tool) Call(ctx context.Context, pc *phase.Context) (engine.Output, error) {
	p := t.a.p
	if p.gone() {
		return engine.Output{}, errDead
	}
	thread, call := pc.Run().Thread, pc.Call().ID
	c, _ := engine.ToolCalls.Get(pc.Snapshot(), call)
	known := c.Ended || ran.Has(pc.Snapshot(), call)
	n := p.w.ledger.body(p.name, thread, call, p.conn.known(thread), known, t.name == "pay" && !p.w.plan.resolver)
	p.w.trace(p.name, "body of %s in %s, for the %d. time", call, thread, n)
	d := p.w.dice.about("tool", thread, call)
	if d.chance(80, "slow") && !p.calm && !p.work(ctx, d.span(30*time.Second, "work", n)) {
		return engine.Output{}, errors.New("sim: the tool was interrupted")
	}
	if ask := t.question(pc, d); ask != nil {
		return engine.Output{Ask: ask}, nil
	}
	out := engine.Output{Content: fmt.Sprintf("%s did %s", t.name, call), IsError: d.chance(100, "fails")}
	for _, answer := range pc.Answers() {
		out.Content += " with " + string(answer.Value)
	}
	out.Command.Update(ran.Put(call, newToken(tokenResult, call, fmt.Sprintf("%s.%d", p.name, n))), total.With(1))
	if d.chance(150, "purse") {
		out.Command.Update(purse.With(n))
	}
	if d.chance(250, "durable") {
		t.a.emit(&out.Command, true, fmt.Sprintf("%s/%s.%s.%s.%d", thread, call, pc.Run().ID, p.name, n))
	}
	if d.chance(100, "cascade") {
		out.Command.Schedule(cascade.New(1))
	}
	return out, nil
}

// question is what the tool asks before it does its work, until it has an answer.
func (t tool) question(pc *phase.Context, d dice) *gate.Ticket {
	if t.name != "check" || len(pc.Answers()) > 0 {
		return nil
	}
	switch d.n(3, "question") {
	case 0:
		return &gate.Ticket{Kind: gate.Text, Message: "which colour?"}
	case 1:
		return &gate.Ticket{Kind: gate.Secret, Message: "which password?", Mode: gate.PassToTool}
	}
	return nil
}

// secret is the answer to questions for one. It must not get into the journal.
const secret = "xyzzy-plugh"

// valueFor is the value that an answer to a ticket needs.
func valueFor(t gate.Ticket) inference.JSON {
	switch t.Kind {
	case gate.Text:
		return `"blue"`
	case gate.Secret:
		return `"` + secret + `"`
	}
	return ""
}
