package gate

import (
	"context"

	"github.com/ddd26017/fixpoint/phase"
)

// RulingKind says what a gate on an action wants; a stricter one is greater.
type RulingKind uint8

// The kinds of rulings.
const (
	KindProceed RulingKind = iota // no objection
	KindReplace                   // something else happens in the handler's stead
	KindCancel                    // nothing happens
)

// Ruling is what a gate on an action says. The zero Ruling has no objection.
type Ruling struct {
	kind   RulingKind
	reason string
	cmd    phase.Command
}

// Cancel keeps an action from running. It leaves the queue and is reported with the
// reason and the gate's plugin; it is no failure and no dead letter.
func Cancel(reason string) Ruling { return Ruling{kind: KindCancel, reason: reason} }

// Replace commits cmd in the name of the gate's plugin instead of running the
// action's handler. To run the same action with other arguments, schedule it in cmd:
// the gates are asked about it again.
func Replace(reason string, cmd phase.Command) Ruling {
	return Ruling{kind: KindReplace, reason: reason, cmd: cmd}
}

// Kind returns what is wanted.
func (r Ruling) Kind() RulingKind { return r.kind }

// Reason returns why, for reports and events.
func (r Ruling) Reason() string { return r.reason }

// Command returns what Replace was given, and the zero Command for other kinds.
func (r Ruling) Command() phase.Command { return r.cmd }

// ActionGate decides whether scheduled actions of one kind may run. Like a Gate it
// must be pure and fails closed: after an error, a panic or a missed deadline the
// action is a dead letter, from where it can be requeued, unless the gate was
// registered with FailOpen.
type ActionGate struct {
	action string
	at     phase.Phase
	check  func(ctx context.Context, pc *phase.Context, a phase.Action) (Ruling, error)
}

// OnAction makes a gate on the actions of a kind. check gets a payload of its own and
// the snapshot that the handler would work on.
func OnAction[P any](spec phase.ActionSpec[P], check func(ctx context.Context, pc *phase.Context, args P) (Ruling, error)) ActionGate {
	if check == nil {
		return ActionGate{}
	}
	return ActionGate{spec.Name(), spec.Phase(), func(ctx context.Context, pc *phase.Context, a phase.Action) (Ruling, error) {
		args, err := spec.Args(a)
		if err != nil {
			return Ruling{}, err
		}
		return check(ctx, pc, args)
	}}
}

// Action returns the name of the kind of actions, "" for a gate without a check.
func (g ActionGate) Action() string { return g.action }

// Phase returns the phase that the actions run in, 0 for a gate without a check.
func (g ActionGate) Phase() phase.Phase { return g.at }

// Check decides about an action. It panics for a gate without a check, which no engine
// takes.
func (g ActionGate) Check(ctx context.Context, pc *phase.Context, a phase.Action) (Ruling, error) {
	return g.check(ctx, pc, a)
}
