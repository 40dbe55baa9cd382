package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// toolOwner is who a tool's own questions are asked by.
func toolOwner(call inference.ToolCall) string { return "tool " + call.Name }

// forTool returns what the call's tool is told of answers, secrets included: those to
// its own questions, and the one that Answer returns, which is the last of its own, or
// else of those that were meant for it, or else the last one of all.
func (r *run) forTool(ctx context.Context, p *passage) (answer *phase.Answer, own []phase.Answer) {
	var meant *phase.Answer
	answers := r.answers(ctx, p.sc.call.Call.ID)
	if len(answers) == 0 {
		return p.sc.call.Answer, nil
	}
	print := gate.Fingerprint(p.sc.call.Call)
	for _, a := range answers {
		mine := a.Ticket.Plugin == toolOwner(p.sc.call.Call)
		if a.lost || a.Ticket.Fingerprint != print || !mine && a.Ticket.Mode != gate.PassToTool && a.Ticket.Kind != gate.Secret {
			continue
		}
		full := r.withSecret(ctx, a)
		if a.Ticket.Kind == gate.Secret {
			p.secrets = append(p.secrets, full)
		}
		if mine {
			own = append(own, full)
		}
		if mine || len(own) == 0 {
			meant = &full
		}
	}
	return cmp.Or(meant, p.sc.call.Answer), own
}

// toolAsks notes the question of a body, unless it cannot be asked.
func (r *run) toolAsks(ctx context.Context, p *passage, t gate.Ticket) error {
	t = question(gate.Suspend(t), p.sc.call.Call)
	t.Mode = cmp.Or(t.Mode, gate.PassToTool)
	if bad := r.eng.unanswerable(ctx, t); bad != "" {
		return errors.New(p.sc.call.Call.Name + bad)
	}
	if n := r.callState(p.sc.call.Call.ID).Tickets; n >= r.eng.config.Limits.PhaseRounds {
		return fmt.Errorf("%s asked %d times and still has no result", p.sc.call.Call.Name, n)
	}
	p.asks = &t
	return nil
}

// suspendedMeanwhile handles a call that SuspendCall suspended at
// BeforeToolExecute. decided means that the body will not run now.
func (r *run) suspendedMeanwhile(ctx context.Context, p *passage) (decided bool, err error) {
	c := r.callState(p.sc.call.Call.ID)
	if c.Status != CallSuspended || c.Ticket.ID != "" {
		return false, nil
	}
	v := verdict{call: p.sc.call.Call}
	if bad := r.eng.unanswerable(ctx, question(asking(c), p.sc.call.Call)); bad != "" {
		return p.decided(blocked(v, c.Ticket.Plugin+bad)), nil
	}
	t, answer, err := r.ask(ctx, p.sc, p.sc.call.Call, c.Ticket.Plugin, asking(c))
	if err != nil {
		return true, err
	}
	if answer == nil {
		p.waits = true
		return true, nil
	}
	return r.goOn(ctx, p, v, t, *answer)
}

// goOn applies an answer that came while the call was on its way. decided means that
// the body will not run now.
func (r *run) goOn(ctx context.Context, p *passage, v verdict, t gate.Ticket, a phase.Answer) (decided bool, err error) {
	done, err := r.take(ctx, p.sc, &v, t, a)
	if err == nil && !done && v.call != p.sc.call.Call {
		// Nobody judged these arguments yet.
		sc := p.sc
		sc.phase = phase.ToolGate
		sc.about(func(c *phase.CallFrame) { c.Call, c.Answer = v.call, v.answer })
		v, err = r.judge(ctx, sc)
	}
	if err != nil {
		return true, err
	}
	if p.decided(v) {
		return true, nil
	}
	return false, r.apply(ctx, p.sc, r.callUpdate(p.sc.call.Call.ID, func(c *CallState) { c.Status = CallRunning }))
}

// converse has what a body asked answered and runs it again, until it is done or the
// call waits.
func (r *run) converse(ctx context.Context, p *passage) error {
	for p.asks != nil {
		if p.waits = r.ended(); p.waits {
			return nil // nobody needs to answer
		}
		t := *p.asks
		answer, err := r.answerNow(ctx, p.sc, t)
		if p.waits = answer == nil; p.waits || err != nil {
			return err
		}
		p.asks = nil
		if decided, err := r.goOn(ctx, p, verdict{call: p.sc.call.Call}, t, *answer); decided || err != nil {
			return err
		}
		if err := r.runBodies(ctx, []*passage{p}); err != nil {
			return err
		}
	}
	return nil
}
