package exechook

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// identity returns what makes two rules the same command.
func (r Rule) identity() string {
	s := fmt.Sprintf("%q", r.Command)
	if r.Args != nil || r.Shell != "" {
		s += fmt.Sprintf(" %q %q", r.Args, r.Shell)
	}
	return s
}

// keyOf identifies the call that is being judged.
func keyOf(pc *phase.Context) callKey {
	return callKey{pc.Run().ID, pc.Run().Step, pc.Call().ID}
}

// check is the gate. It runs the programs of PreToolUse about a call once for each
// form of its arguments and each answer to a question about it.
func (p *Plugin) check(ctx context.Context, pc *phase.Context) (gate.Decision, error) {
	call := pc.Call()
	rules := p.match(PreToolUse, p.toolName(pc), call.Name)
	if len(rules) == 0 && !p.has(PermissionRequest, Notification) {
		return gate.Abstain(), nil
	}
	name, input, err := p.o.Tools[call.Name].theirs(call)
	if err == nil {
		err = oneReading(call.Args, pc.Tool().Schema)
	}
	if err != nil {
		return gate.Decision{}, err
	}
	key, print := keyOf(pc), gate.Fingerprint(call)
	fields := p.toolFields(pc, name, input)
	answer, _ := pc.Answer()
	at := print + " " + answer.Ticket
	var v verdict
	var known bool
	var before map[string]statement
	p.memo.with(key, func(m *callMemo) {
		m.asked[print] = question{call, name, fields}
		v, known = m.verdicts[at]
		before = maps.Clone(m.rewrites[print])
	})
	if known || len(rules) == 0 {
		return v.decision, v.err
	}
	stdin, err := stdin(PreToolUse, fields)
	if err != nil {
		return gate.Decision{}, err
	}
	outs := p.runAll(ctx, rules, stdin)
	if ctx.Err() != nil {
		return gate.Decision{}, context.Cause(ctx)
	}
	b := ballot{p: p, call: call, tool: name, print: print, before: before, answered: answered(pc, print)}
	b.count(outs)
	p.memo.with(key, func(m *callMemo) {
		v = b.verdict(m)
		m.verdicts[at] = v
	})
	return v.decision, v.err
}

// asked is what a question of this plugin carries for those who show it, and for the
// time when it is answered.
type asked struct {
	Tool  string         `json:"tool"`
	Args  inference.JSON `json:"args"`
	Hooks []string       `json:"hooks"` // that ask
}

// answered returns the rules whose question about exactly this call a person answered
// with yes.
func answered(pc *phase.Context, print string) map[string]bool {
	rules := map[string]bool{}
	c, _ := engine.ToolCalls.Get(pc.Snapshot(), pc.Call().ID)
	for _, a := range c.Answers {
		var q asked
		if a.Ticket.Plugin == Name && a.Ticket.Fingerprint == print && a.Answer.Approved && a.Ticket.Params.Decode(&q) == nil {
			for _, rule := range q.Hooks {
				rules[rule] = true
			}
		}
	}
	return rules
}

// ballot counts what the programs said about a call.
type ballot struct {
	p        *Plugin
	call     inference.ToolCall
	tool     string
	print    string
	before   map[string]statement // the rules that wrote these arguments
	answered map[string]bool      // the rules whose question was answered with yes

	opinion  Opinion
	reasons  map[Opinion][]string
	askers   []string // the rules that ask
	blocks   []string // the reasons and failures that block, in rule order
	failures []error  // those that block
	endRun   bool
	edit     inference.JSON // the first that changes anything
	editors  map[string]statement
	notes    []string // for the trace
	told     []told
}

// count takes in what came of the programs, in rule order.
func (b *ballot) count(outs []outcome) {
	b.reasons, b.editors = map[Opinion][]string{}, map[string]statement{}
	var winner outcome
	for _, o := range outs {
		if o.failure != nil {
			b.fail(o)
			continue
		}
		if o.reply.Message != "" {
			b.tell(o.notice(MessageNotice, o.reply.Message))
		}
		if o.Async {
			continue
		}
		if o.reply.Context != "" {
			b.told = append(b.told, told{context: o.reply.Context})
		}
		if o.reply.EndRun {
			b.endRun = true
			o.reply.Opinion, o.reply.Reason = Deny, o.reply.EndReason
		}
		edit, err := b.rewritten(&o)
		if err != nil {
			o.failure = &ProgramError{Event: o.Event, Command: o.Command, Place: o.place(), Cause: BadOutput, Detail: err.Error()}
			b.fail(o)
			continue
		}
		switch {
		case edit == "":
		case b.edit == "":
			b.edit, winner = edit, o
			b.editors[o.identity()] = statement{o.reply.Opinion, o.reply.Reason}
		case b.fingerprint(edit) == b.fingerprint(b.edit):
			b.editors[o.identity()] = statement{o.reply.Opinion, o.reply.Reason}
		default:
			text := fmt.Sprintf("%q (%s) and %q (%s) rewrite the arguments in different ways; the first counts",
				winner.Command, winner.place(), o.Command, o.place())
			b.notes = append(b.notes, text)
			b.tell(o.notice(ConflictNotice, text))
		}
		if (o.reply.Opinion == Ask || o.reply.Opinion == Defer) && b.answered[o.identity()] {
			o.reply.Opinion = Allow
		}
		b.opinion = stricter(b.opinion, o.reply.Opinion)
		switch said := o.reply.Opinion; said {
		case Deny:
			b.blocks = append(b.blocks, o.says())
		case Ask, Defer, Allow:
			if said != Allow {
				b.askers = append(b.askers, o.identity())
			}
			if o.reply.Reason != "" {
				b.reasons[said] = append(b.reasons[said], o.reply.Reason)
			}
		case NoOpinion:
		}
	}
}

func (b *ballot) fail(o outcome) {
	b.tell(o.notice(FailureNotice, o.failure.Error()))
	if o.lenient() {
		b.notes = append(b.notes, o.failure.Error())
		return
	}
	b.failures = append(b.failures, o.failure)
	b.blocks = append(b.blocks, o.failure.Error())
}

func (b *ballot) tell(n Notice) {
	n.Call = b.call.ID
	b.told = append(b.told, told{notice: n})
}

func (b *ballot) fingerprint(args inference.JSON) string {
	call := b.call
	call.Args = args
	return gate.Fingerprint(call)
}

// rewritten returns the arguments that a program wants, or "" when they are those of
// the call. What a program wrote itself it is not let write over again, so that one
// that always adds something comes to rest as it does in agents, which do not ask it
// twice; and if it has nothing to say about that now, what it said then counts.
func (b *ballot) rewritten(o *outcome) (inference.JSON, error) {
	said, mine := b.before[o.identity()]
	if mine {
		if o.reply.Opinion == NoOpinion {
			o.reply.Opinion, o.reply.Reason = said.opinion, said.reason
		}
		return "", nil
	}
	if o.reply.Input == "" {
		return "", nil
	}
	args, err := b.p.o.Tools[b.call.Name].own(o.reply.Input)
	if err != nil || b.fingerprint(args) == b.print {
		return "", err
	}
	return args, nil
}

// verdict makes the gate's vote of what was counted and remembers what belongs to it.
func (b *ballot) verdict(m *callMemo) verdict {
	for _, t := range b.told {
		if !slices.Contains(m.told, t) { // it said so about other arguments of the call
			m.told = append(m.told, t)
		}
	}
	reason := func(o Opinion) string { return strings.Join(append(b.reasons[o], b.notes...), "\n") }
	switch {
	case b.opinion == Deny:
		d := gate.Block(strings.Join(b.blocks, "\n"))
		if b.endRun {
			d = d.EndRun()
		}
		return verdict{decision: d}
	case len(b.failures) > 0:
		return verdict{err: errors.Join(b.failures...)}
	}
	var d gate.Decision
	switch {
	case b.opinion == Allow:
		d = gate.Approve().Because(reason(Allow))
	case b.opinion == NoOpinion:
		d = gate.Abstain().Because(reason(NoOpinion))
	default:
		t, err := b.ticket()
		if err != nil {
			return verdict{err: err}
		}
		d = gate.Suspend(t).Because(reason(b.opinion))
	}
	if b.edit == "" {
		return verdict{decision: d}
	}
	next := b.fingerprint(b.edit)
	if m.descends(b.print, next) {
		return verdict{decision: gate.Block(fmt.Sprintf("hooks rewrite each other's arguments without end: %s, and then %s",
			strings.Join(names(b.before), ", "), strings.Join(names(b.editors), ", ")))}
	}
	m.from[next] = b.print
	if m.rewrites[next] == nil {
		m.rewrites[next] = map[string]statement{}
	}
	maps.Copy(m.rewrites[next], b.editors)
	return verdict{decision: d.Edit(b.edit)}
}

// descends reports whether arguments were made, rewrite by rewrite, from older ones.
func (m *callMemo) descends(print, older string) bool {
	for print != "" && print != older {
		print = m.from[print]
	}
	return print == older
}

func names(rules map[string]statement) []string { return slices.Sorted(maps.Keys(rules)) }

// ticket is the question of programs that said ask or defer. It stands whatever other
// plugins approve: an allowlist does not silence a program.
func (b *ballot) ticket() (gate.Ticket, error) {
	params, err := inference.ToJSON(asked{b.call.Name, b.call.Args, b.askers})
	text := fmt.Sprintf("Allow %s?", b.tool)
	for _, o := range []Opinion{Ask, Defer} {
		for _, r := range b.reasons[o] {
			text += "\n" + r
		}
	}
	return gate.Ticket{Kind: gate.Confirm, Message: text, Params: params, Default: b.p.o.Unattended}, err
}
