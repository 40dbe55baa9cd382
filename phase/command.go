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
// calls can be chained. A Command is read by the engine after it was returned;
// building on it further then changes nothing that the engine sees.
type Command struct {
	single  [1]state.Update // the only update, which most commands have: it needs no slice
	one     bool            // single is set
	updates []state.Update  // all of them, when there are more
	actions []Action
	effects []effects.Effect
	reads   []state.AnyKey
	stop    bool
}

// Update adds state updates. Updates of one command never conflict with each
// other and are applied in the order given.
func (c *Command) Update(updates ...state.Update) *Command {
	switch {
	case c.updates == nil && !c.one && len(updates) == 1:
		c.single[0], c.one = updates[0], true
		return c
	case c.one:
		c.updates, c.one = append(make([]state.Update, 0, len(updates)+3), c.single[0]), false
	}
	c.updates = append(c.updates, updates...)
	return c
}

// Schedule queues actions. Each runs in its own phase, in the order queued, and
// is stored by the same commit as the command's updates.
func (c *Command) Schedule(actions ...Action) *Command {
	c.actions = append(c.actions, actions...)
	return c
}

// Emit adds effects, delivered after the commit of this command.
func (c *Command) Emit(es ...effects.Effect) *Command {
	c.effects = append(c.effects, es...)
	return c
}

// Reads declares keys whose values the command depends on. If one of them
// changed since the snapshot that the command was made from, the command is
// treated as a lost conflict and its hook runs again; this excludes write skew.
func (c *Command) Reads(keys ...state.AnyKey) *Command {
	c.reads = append(c.reads, keys...)
	return c
}

// StopPhase skips the later tiers of this phase. Hooks of the same tier have
// run already, and the phase's actions still run. It has no meaning for a tool's
// or an action's command.
func (c *Command) StopPhase() *Command {
	c.stop = true
	return c
}

// IsZero reports whether c does nothing.
func (c Command) IsZero() bool {
	return !c.one && len(c.updates) == 0 && len(c.actions) == 0 && len(c.effects) == 0 && len(c.reads) == 0 && !c.stop
}

// Updates returns the updates in order. The slice is the caller's.
func (c Command) Updates() []state.Update { return slices.Clone(c.Lower().Updates) }

// Actions returns the scheduled actions in order. The slice is the caller's.
func (c Command) Actions() []Action { return slices.Clone(c.actions) }

// Effects returns the emitted effects in order. The slice is the caller's.
func (c Command) Effects() []effects.Effect { return slices.Clone(c.effects) }

// ReadKeys returns the declared reads. The slice is the caller's.
func (c Command) ReadKeys() []state.AnyKey { return slices.Clone(c.reads) }

// StopsPhase reports whether StopPhase was called.
func (c Command) StopsPhase() bool { return c.stop }

// Lowered is the engine's view of a command: its parts without copies, capped so
// that appending to them cannot reach the command's own memory. It is for code
// that runs phases; everybody else uses the methods above.
type Lowered struct {
	Updates []state.Update
	Actions []Action
	Effects []effects.Effect
	Reads   []state.AnyKey
}

// Lower returns the parts of c without copying them. They are good as long as *c stays
// as it is, and the elements must not be written.
func (c *Command) Lower() Lowered {
	updates := c.updates
	if c.one {
		updates = c.single[:]
	}
	return Lowered{
		Updates: slices.Clip(updates),
		Actions: slices.Clip(c.actions),
		Effects: slices.Clip(c.effects),
		Reads:   slices.Clip(c.reads),
	}
}
