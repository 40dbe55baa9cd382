package exechook

import (
	"context"
	"errors"
	"strings"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// Resolver returns a resolver for Config.Resolver that asks the programs of
// PermissionRequest whether a call may run, before next is asked; a program that says
// no goes before one that says yes. When none decides, those of Notification are run
// and next is asked. Without next the question is left open.
//
// A program that fails has no opinion here, since somebody else is asked.
func (p *Plugin) Resolver(next gate.Resolver) gate.Resolver {
	p.asks.Store(true)
	return gate.ResolverFunc(func(ctx context.Context, t gate.Ticket) (phase.Answer, error) {
		key, q, known := p.memo.question(t)
		if known {
			if answer, ok, err := p.permission(ctx, t, key, q); ok || err != nil {
				return answer, err
			}
			p.notify(ctx, t, key, q)
		}
		if next == nil {
			return phase.Answer{}, gate.ErrLeftOpen
		}
		return next.Resolve(ctx, t)
	})
}

// permission asks the programs of PermissionRequest. It returns false when they leave
// the question to others.
func (p *Plugin) permission(ctx context.Context, t gate.Ticket, key callKey, q question) (a phase.Answer, decided bool, err error) {
	rules := p.match(PermissionRequest, q.tool, q.call.Name)
	if len(rules) == 0 || byTool(t) || t.Kind != gate.Confirm && t.Kind != "" {
		return a, false, nil
	}
	outs, err := p.ask(ctx, PermissionRequest, rules, q, nil)
	if err != nil {
		return a, false, err
	}
	var all []told
	opinion := NoOpinion
	for i := range outs {
		o := &outs[i]
		var args inference.JSON
		if o.failure == nil && o.reply.Input != "" {
			if args, err = p.o.Tools[q.call.Name].own(o.reply.Input); err != nil {
				o.failure = &ProgramError{Event: o.Event, Command: o.Command, Place: o.place(), Cause: BadOutput, Detail: err.Error()}
			}
		}
		if o.failure != nil {
			all = append(all, told{notice: o.notice(FailureNotice, o.failure.Error())})
			continue
		}
		if o.reply.Message != "" {
			all = append(all, told{notice: o.notice(MessageNotice, o.reply.Message)})
		}
		if o.Async {
			continue
		}
		if o.reply.EndRun {
			o.reply.Opinion, o.reply.Reason = Deny, o.reply.EndReason
		}
		switch {
		case o.reply.Opinion == Deny && opinion != Deny:
			a = phase.Answer{Ticket: t.ID, Reason: o.says()}
		case o.reply.Opinion == Deny:
			a.Reason += "\n" + o.says()
		case o.reply.Opinion == Allow && opinion == NoOpinion:
			a = phase.Answer{Ticket: t.ID, Approved: true, Reason: o.reply.Reason, Args: args}
		case o.reply.Opinion == Allow && opinion == Allow && args != "" && args != a.Args:
			all = append(all, told{notice: o.notice(ConflictNotice, "another hook allowed the call before; this one's arguments do not count")})
		}
		if o.reply.Opinion == Allow || o.reply.Opinion == Deny {
			opinion = stricter(opinion, o.reply.Opinion)
		}
	}
	p.keep(key, all)
	return a, opinion != NoOpinion, nil
}

// byTool reports whether the tool itself asks, for something that it needs.
func byTool(t gate.Ticket) bool { return strings.HasPrefix(t.Plugin, "tool ") }

// notify runs the programs of Notification: they can change nothing.
func (p *Plugin) notify(ctx context.Context, t gate.Ticket, key callKey, q question) {
	kind, title := permissionPrompt, "Permission needed"
	if byTool(t) {
		kind, title = elicitationDialog, "Answer needed"
	}
	rules := p.match(Notification, kind)
	if len(rules) == 0 {
		return
	}
	outs, err := p.ask(ctx, Notification, rules, q, map[string]any{"notification_type": kind, "title": title, "message": t.Message})
	if err != nil {
		return // the run is being cancelled
	}
	var all []told
	for _, o := range outs {
		if o.failure != nil {
			all = append(all, told{notice: o.notice(FailureNotice, o.failure.Error())})
		}
	}
	p.keep(key, all)
}

// ask runs programs about a call that was seen at the gate.
func (p *Plugin) ask(ctx context.Context, e Event, rules []Rule, q question, more map[string]any) ([]outcome, error) {
	fields := map[string]any{}
	for name, value := range q.input {
		if e != Notification || name != "tool_name" && name != "tool_input" && name != "tool_use_id" {
			fields[name] = value
		}
	}
	for name, value := range more {
		fields[name] = value
	}
	stdin, err := stdin(e, fields)
	if err != nil {
		return nil, err
	}
	outs := p.runAll(ctx, rules, stdin)
	if ctx.Err() != nil {
		return nil, errors.Join(gate.ErrLeftOpen, context.Cause(ctx))
	}
	return outs, nil
}

// keep has notices passed on at the end of the step.
func (p *Plugin) keep(key callKey, all []told) {
	if len(all) == 0 {
		return
	}
	for i := range all {
		all[i].notice.Call = key.call
	}
	p.memo.with(key, func(m *callMemo) { m.told = append(m.told, all...) })
}
