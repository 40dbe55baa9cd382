package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// verdict is what the gates made of a call.
type verdict struct {
	call    inference.ToolCall // with edited arguments
	answer  *phase.Answer      // the answer to its ticket, for the tool to read
	outcome inference.Outcome  // "" when the call may run
	result  inference.ToolResult
	waits   bool // the call is suspended and nobody answered
}

// judge settles whether a call may run: it asks every gate, applies edits and
// asks again, and has tickets answered, until the gates come to rest.
func (r *run) judge(ctx context.Context, sc scene) (verdict, error) {
	v := verdict{call: sc.call.Call, answer: sc.call.Answer}
	limit := r.eng.config.Limits.PhaseRounds
	yes := r.answers(ctx, sc.call.Call.ID)
	for pass := 1; ; pass++ {
		if pass > 1 {
			sc.about(func(c *phase.CallFrame) { c.Call, c.Answer = v.call, v.answer })
		}
		res := gate.Resolution{Cause: gate.Unsettled, Decision: gate.Block(
			fmt.Sprintf("the gates did not come to rest in %d passes over edits and questions", limit))}
		if pass <= limit {
			res = r.resolveGates(ctx, sc, yes)
		}
		if ctx.Err() != nil {
			return v, context.Cause(ctx)
		}
		r.emit(sc, func(h Header) Event {
			return GateResolved{Header: h, Call: v.call.ID, Tool: v.call.Name, Pass: pass, Decision: res.Decision.Kind(),
				Plugin: res.Plugin, Cause: res.Cause, Reason: res.Decision.Reason()}
		})
		if res.Edit != nil {
			if bad := r.edit(ctx, sc, &v, res.Edit.Plugin, res.Edit.Args); bad != "" {
				return blocked(v, bad), nil
			}
			// Answers were about the former arguments: nobody may take them for these.
			v.answer = latest(yes, v.call, "")
			continue
		}
		switch d := res.Decision; d.Kind() {
		case gate.KindBlock:
			if d.EndsRun() {
				if err := r.endBlocked(ctx, sc, res); err != nil {
					return v, err
				}
			}
			return blocked(v, d.Reason()), nil
		case gate.KindSuspend, gate.KindAsk:
			if bad := r.eng.unanswerable(ctx, question(d, v.call)); bad != "" {
				return blocked(v, res.Plugin+bad), nil
			}
			t, answer, err := r.ask(ctx, sc, v.call, res.Plugin, d)
			if err != nil {
				return v, err
			}
			if answer == nil {
				v.waits = true
				return v, nil
			}
			if done, err := r.take(ctx, sc, &v, t, *answer); done || err != nil {
				return v, err
			}
			yes = r.answers(ctx, v.call.ID)
		case gate.KindSetResult:
			v.outcome, v.result = inference.OutcomeSubstituted, d.Result()
			return v, nil
		case gate.KindApprove:
			return v, nil
		default:
			// A yes about exactly this call is an opinion, also when its gate now abstains.
			if r.gateDefault() == DefaultDeny && latest(yes, v.call, "") == nil {
				return blocked(v, "no gate approved the call, and the run denies by default"), nil
			}
			return v, nil
		}
	}
}

// endBlocked ends the run, and when the gate is one of a run that delegated to it,
// every run up to that one.
func (r *run) endBlocked(ctx context.Context, sc scene, res gate.Resolution) error {
	of := r.ballots(overCalls)[res.Index].of
	var end phase.Command
	end.EndRun(phase.ReasonBlocked, res.Decision.Reason())
	for x := r; ; x = x.parent {
		if err := x.apply(ctx, sc, end.Updates()...); err != nil || x == of {
			return err
		}
	}
}

func blocked(v verdict, reason string) verdict {
	v.outcome = inference.OutcomeBlocked
	v.result = inference.ToolResult{Content: "blocked: " + cmp.Or(reason, "no reason was given"), IsError: true}
	return v
}

func (r *run) gateDefault() GateDefault {
	if r.input.GateDefault != nil {
		return *r.input.GateDefault
	}
	return r.eng.config.GateDefault
}

// honour lets an approving answer stand for the question it answered: a gate that
// asks the same again about the exact same call counts as approving. Its blocks
// and new questions, and all that other gates say, keep their force.
func honour(v *gate.Vote, call inference.ToolCall, yes []TicketAnswer) {
	k := v.Decision.Kind()
	if len(yes) == 0 || v.Err != nil || (k != gate.KindSuspend && k != gate.KindAsk) {
		return
	}
	t, print := question(v.Decision, call), gate.Fingerprint(call)
	for _, a := range yes {
		if a.Answer.Approved && !a.lost && a.Ticket.Plugin == v.Plugin && a.Ticket.Kind == t.Kind && a.Ticket.Message == t.Message && a.Ticket.Fingerprint == print {
			v.Decision = gate.Approve().Because("answered: " + a.Ticket.ID)
			return
		}
	}
}

// latest returns the last yes about exactly this call, preferring one to a question
// of plugin, or nil. Who lost the answer to his own question gets none: he must not take
// another one for it. What the tool itself asked is no approval.
func latest(yes []TicketAnswer, call inference.ToolCall, plugin string) (found *phase.Answer) {
	if len(yes) == 0 {
		return nil
	}
	print := gate.Fingerprint(call)
	for i := len(yes) - 1; i >= 0; i-- {
		a := &yes[i]
		switch {
		case a.Ticket.Fingerprint != print || !a.Answer.Approved || a.Ticket.Plugin == toolOwner(call):
		case a.Ticket.Plugin == plugin && a.lost:
			return nil
		case a.Ticket.Plugin == plugin:
			return &a.Answer
		case found == nil && !a.lost:
			found = &a.Answer
		}
	}
	return found
}

// usable reports what is wrong with a decision that could not be saved.
func usable(d gate.Decision) error {
	if !d.Ticket().Valid() {
		return errors.New("engine: the ticket's params, choices, schema or fallback are not JSON")
	}
	return d.Result().Validate()
}

// edit changes the call's arguments after the tool checked them. It returns what
// is wrong with them, or "".
func (r *run) edit(ctx context.Context, sc scene, v *verdict, by string, args inference.JSON) string {
	next := v.call
	next.Args = args
	if err := r.checkArgs(ctx, next); err != nil {
		return fmt.Sprintf("%s changed the arguments to ones that the tool refuses: %v", by, err)
	}
	before := v.call.Args
	v.call = next
	r.emit(sc, func(h Header) Event {
		return CallEdited{Header: h, Call: next.ID, Plugin: by, Before: before, After: args}
	})
	if err := r.apply(ctx, sc, r.callUpdate(next.ID, func(c *CallState) { c.Call = next })); err != nil {
		return err.Error()
	}
	return ""
}

// ballot is one gate to ask, and the run whose state it judges by.
type ballot struct {
	*gateEntry
	of *run
}

// ballots lists the gates over the run's calls: those of the runs that delegated
// to it first, each on its own run's state.
func (r *run) ballots(action string) []ballot {
	gates := r.agent.Load().gates[action]
	var out []ballot
	if r.parent != nil {
		out = r.parent.ballots(action)
	}
	out = slices.Grow(out, len(gates))
	for _, g := range gates {
		out = append(out, ballot{g, r})
	}
	return out
}

// resolveGates asks every gate at the same time and folds what they say.
func (r *run) resolveGates(ctx context.Context, sc scene, yes []TicketAnswer) gate.Resolution {
	ballots := r.ballots(overCalls)
	if len(ballots) == 0 {
		return gate.Resolution{Index: -1, Cause: gate.ByDefault}
	}
	snap := r.th.store.Snapshot()
	own := r.context(sc, snap)
	ask := func(i int) (v gate.Vote) {
		b, pc := ballots[i], own
		if b.of != r || len(yes) > 0 {
			mine, on := sc, snap
			if b.of != r {
				on = b.of.th.store.Snapshot()
			}
			if len(yes) > 0 {
				// Of several answers, a gate sees the one to its own question.
				mine.about(func(c *phase.CallFrame) { c.Answer = latest(yes, c.Call, b.plugin) })
			}
			pc = b.of.context(mine, on)
		}
		start := r.now()
		if limit := cmp.Or(b.opts.timeout, r.eng.config.Limits.HookTimeout); limit > 0 {
			v.Decision, v.Err = within(ctx, r.crew, limit, b.plugin, phase.ToolGate,
				func(ctx context.Context) (gate.Decision, error) { return b.gate.Check(ctx, pc) })
		} else {
			v.Decision, v.Err = call(ctx, b.plugin, phase.ToolGate, b.gate.Check, pc)
		}
		if v.Err == nil {
			v.Err = usable(v.Decision)
		}
		v.Began, v.Took = start, r.now().Sub(start)
		return v
	}
	// Never inline, not even for one: a gate that hangs must not hold up a cancelled run.
	pace := &r.agent.Load().asked
	votes := fanOut(ctx, r.way(pace), len(ballots), ask,
		func(err error) gate.Vote { return gate.Vote{Err: err} })
	var took time.Duration
	for i := range votes {
		v := &votes[i]
		took += v.Took
		v.Plugin, v.FailOpen = ballots[i].plugin, ballots[i].opts.failOpen
		r.emit(sc, func(h Header) Event {
			_, edits := v.Decision.Args()
			return GateVoted{Header: h, Call: sc.call.Call.ID, Tool: sc.call.Call.Name, Plugin: v.Plugin, Gate: ballots[i].id,
				Decision: v.Decision.Kind(), Reason: v.Decision.Reason(), Edits: edits, Error: errText(v.Err), Began: v.Began, Duration: v.Took}
		})
		honour(v, sc.call.Call, yes)
	}
	if ctx.Err() == nil {
		pace.Learn(took)
	}
	res := gate.Resolve(sc.call.Call, votes)
	for _, c := range res.Clashes {
		r.emit(sc, func(h Header) Event { return GateClashed{Header: h, Call: sc.call.Call.ID, Clash: c} })
	}
	return res
}

// toolGate is the ToolGate phase of one call: the phase's queued actions, then
// the gates on what those left.
func (r *run) toolGate(ctx context.Context, sc scene) (v verdict, err error) {
	start := r.now()
	rep := &Report{Phase: phase.ToolGate}
	if r.watched() {
		gates := len(r.ballots(overCalls))
		r.emit(sc, func(h Header) Event { return PhaseStarted{Header: h, Hooks: gates, Call: sc.call.Call.ID} })
	}
	if err = r.converge(ctx, sc, rep); err == nil {
		v, err = r.judge(ctx, sc)
	}
	r.stats.add(rep)
	r.emit(sc, func(h Header) Event {
		return PhaseFinished{Header: h, Call: sc.call.Call.ID, Rounds: rep.Rounds, Retries: rep.Retries,
			Error: errText(err), Duration: r.now().Sub(start)}
	})
	return v, err
}
