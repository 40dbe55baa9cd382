package phase

import (
	"slices"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/state"
)

// Command is what a hook, an action handler or a tool returns: state updates,
// scheduled actions and effects, accepted or dropped together. The zero Command
// does nothing.
//
// Build one with the methods below, each of which returns the receiver so that
// calls can be chained. A copy is a Command of its own: building on one never
// changes another, nor what the engine got.
//
// A Command is small, so that hooks return it in registers: one update inside, as
// most have, and a pointer to the rest.
type Command struct {
	single [1]state.Update // the only update; none if rest has any
	rest   *parts
}

// parts is what one call of a method added. It never changes, since copies of the
// command share it.
type parts struct {
	before  *parts // what was added earlier
	updates []state.Update
	actions []Action
	effects []effects.Effect
	reads   []state.AnyKey
	stop    bool
}

func (c *Command) add(p parts) *Command {
	p.before = c.rest
	c.rest = &p
	return c
}

// Update adds state updates. Updates of one command never conflict with each
// other and are applied in the order given.
func (c *Command) Update(updates ...state.Update) *Command {
	if len(updates) == 1 && len(c.updates()) == 0 {
		c.single[0] = updates[0]
		return c
	}
	var first []state.Update
	if c.single[0].Key() != nil {
		first, c.single = []state.Update{c.single[0]}, [1]state.Update{}
	}
	return c.add(parts{updates: append(first, updates...)})
}

// Schedule queues actions. Each runs in its own phase, in the order queued, and
// is stored by the same commit as the command's updates.
func (c *Command) Schedule(actions ...Action) *Command {
	return c.add(parts{actions: slices.Clone(actions)})
}

// Emit adds effects, delivered after the commit of this command.
func (c *Command) Emit(es ...effects.Effect) *Command {
	return c.add(parts{effects: slices.Clone(es)})
}

// Reads declares keys whose values the command depends on. If one of them
// changed since the snapshot that the command was made from, the command is
// treated as a lost conflict and its hook runs again; this excludes write skew.
func (c *Command) Reads(keys ...state.AnyKey) *Command {
	return c.add(parts{reads: slices.Clone(keys)})
}

// StopPhase skips the later tiers of this phase. Hooks of the same tier have
// run already, and the phase's actions still run. It has no meaning for a tool's
// or an action's command.
func (c *Command) StopPhase() *Command { return c.add(parts{stop: true}) }

// IsZero reports whether c does nothing.
func (c Command) IsZero() bool {
	low := c.Lower()
	return len(low.Updates)+len(low.Actions)+len(low.Effects)+len(low.Reads) == 0 && !low.Stop
}

// Updates returns the updates in order. The slice is the caller's.
func (c Command) Updates() []state.Update { return slices.Clone(c.Lower().Updates) }

// Actions returns the scheduled actions in order. The slice is the caller's.
func (c Command) Actions() []Action { return slices.Clone(c.Lower().Actions) }

// Effects returns the emitted effects in order. The slice is the caller's.
func (c Command) Effects() []effects.Effect { return slices.Clone(c.Lower().Effects) }

// ReadKeys returns the declared reads. The slice is the caller's.
func (c Command) ReadKeys() []state.AnyKey { return slices.Clone(c.Lower().Reads) }

// StopsPhase reports whether StopPhase was called.
func (c Command) StopsPhase() bool {
	for p := c.rest; p != nil; p = p.before {
		if p.stop {
			return true
		}
	}
	return false
}

// Lowered is the engine's view of a command: its parts without copies where that can
// be. It is for code that runs phases; everybody else uses the methods above.
type Lowered struct {
	Updates []state.Update
	Actions []Action
	Effects []effects.Effect
	Reads   []state.AnyKey
	Stop    bool
}

// Plain returns the updates of a command that has nothing else, as most are, under
// the terms of Lower.
func (c *Command) Plain() (updates []state.Update, plain bool) {
	if plain = c.rest == nil; plain && c.single[0].Key() != nil {
		updates = c.single[:]
	}
	return updates, plain
}

// Lower returns the parts of c. They are good as long as *c stays as it is, and the
// elements must not be written; appending to them reaches nothing of c.
func (c *Command) Lower() Lowered {
	low := Lowered{Updates: c.updates()}
	if c.rest != nil {
		low.Actions = joined(c.rest, func(p *parts) []Action { return p.actions })
		low.Effects = joined(c.rest, func(p *parts) []effects.Effect { return p.effects })
		low.Reads = joined(c.rest, func(p *parts) []state.AnyKey { return p.reads })
		low.Stop = c.StopsPhase()
	}
	return low
}

func (c *Command) updates() []state.Update {
	if c.single[0].Key() != nil {
		return c.single[:]
	}
	return joined(c.rest, func(p *parts) []state.Update { return p.updates })
}

// joined returns the lists of a kind that p and those before it hold, in order.
func joined[T any](last *parts, list func(*parts) []T) []T {
	var one []T
	n := 0
	for p := last; p != nil; p = p.before {
		if l := list(p); len(l) > 0 {
			one, n = l, n+len(l)
		}
	}
	if n == len(one) {
		return slices.Clip(one)
	}
	all := make([]T, n)
	for p := last; p != nil; p = p.before {
		l := list(p)
		n -= len(l)
		copy(all[n:], l)
	}
	return all
}
