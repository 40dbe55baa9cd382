package exechook

import (
	"context"
	"strings"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/compact"
)

// What starts a compaction, as matchers of PreCompact and programs know it.
const (
	automatic = "auto"
	manual    = "manual" // somebody typed the slash command
)

// preCompact is a gate over compactions: a program that says no cancels it. When the
// state changes meanwhile the gate is asked again, and programs run again.
func (p *Plugin) preCompact(ctx context.Context, pc *phase.Context, args compact.Args) (gate.Ruling, error) {
	trigger := automatic
	if args.Reason == compact.ReasonCommand {
		trigger = manual
	}
	rules := p.match(PreCompact, trigger)
	if len(rules) == 0 {
		return gate.Ruling{}, nil
	}
	fields := p.common(pc)
	fields["trigger"], fields["custom_instructions"] = trigger, args.Instructions
	in, err := stdin(PreCompact, fields)
	if err != nil {
		return gate.Ruling{}, err
	}
	outs := p.runAll(ctx, rules, in)
	if ctx.Err() != nil {
		return gate.Ruling{}, context.Cause(ctx)
	}
	var no []string
	var all []told
	for _, o := range outs {
		switch {
		case o.failure != nil && !o.lenient():
			return gate.Ruling{}, o.failure
		case o.failure != nil:
			all = append(all, told{notice: o.notice(FailureNotice, o.failure.Error())})
			continue
		case o.reply.Message != "":
			all = append(all, told{notice: o.notice(MessageNotice, o.reply.Message)})
		}
		if !o.Async && (o.reply.Opinion == Deny || o.reply.EndRun) {
			no = append(no, o.says())
		}
	}
	// A gate cannot emit: people are told at the end of the step.
	key := callKey{run: pc.Run().ID, step: pc.Run().Step}
	p.memo.with(key, func(m *callMemo) { m.told = append(m.told, all...) })
	if len(no) > 0 {
		return gate.Cancel(strings.Join(no, "\n")), nil
	}
	return gate.Ruling{}, nil
}
