package slash

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// Set is the slash commands of an agent. It is immutable and safe for concurrent use.
type Set struct {
	spec   engine.AgentSpec
	byName map[string]Command
}

// For returns the slash commands that are active for an agent. The error is one about
// the spec, or about a command whose name nobody could type.
func For(eng *engine.Engine, spec engine.AgentSpec) (Set, error) {
	extras, err := eng.Extras(spec, Kind)
	if err != nil {
		return Set{}, err
	}
	s := Set{spec.Clone(), map[string]Command{}}
	for plugin, extra := range extras {
		c, ok := extra.(Command)
		if !ok || c.run == nil {
			continue // others of the kind are not ours to run
		}
		if name, rest, _ := Split("/" + c.name); name != c.name || rest != "" {
			return Set{}, fmt.Errorf("slash: plugin %s: /%s cannot be typed; name it without white space and slash", plugin, c.name)
		}
		c.plugin = plugin
		s.byName[c.name] = c
	}
	return s, nil
}

// All yields the commands by name.
func (s Set) All() iter.Seq[Command] {
	return func(yield func(Command) bool) {
		for _, name := range slices.Sorted(maps.Keys(s.byName)) {
			if !yield(s.byName[name]) {
				return
			}
		}
	}
}

// Lookup returns the command of that name. The error is an ErrUnknown that names what
// begins alike.
func (s Set) Lookup(name string) (Command, error) {
	if c, ok := s.byName[name]; ok {
		return c, nil
	}
	var near []string
	for c := range s.All() {
		if name != "" && (strings.HasPrefix(c.name, name[:1]) || strings.Contains(c.name, name)) {
			near = append(near, "/"+c.name)
		}
	}
	err := fmt.Errorf("%w /%s", ErrUnknown, name)
	if len(near) > 0 {
		err = fmt.Errorf("%w; there is %s", err, strings.Join(near, ", "))
	}
	return Command{}, err
}

// Run runs the command of a line on a thread and commits what it wants. session may be
// nil: a command that steers is ErrNoSession then. While a run is under way such a
// command is engine.ErrBusy.
//
// A command that panics is ErrPanic; one that does not return when ctx ends is given up
// on: its goroutine goes on until it returns, and what it returns is dropped.
func (s Set) Run(ctx context.Context, th *engine.Thread, session Session, line string) (Reply, error) {
	name, rest, ok := Split(line)
	if !ok {
		return Reply{}, fmt.Errorf("%w: %q does not begin with a slash and a name", ErrUnknown, line)
	}
	c, err := s.Lookup(name)
	if err != nil {
		return Reply{}, err
	}
	args, err := c.Args(rest)
	if err != nil {
		return Reply{}, err
	}
	return s.Call(ctx, th, session, c, args)
}

// Call is Run with arguments that are JSON already.
func (s Set) Call(ctx context.Context, th *engine.Thread, session Session, c Command, args inference.JSON) (Reply, error) {
	own, ok := s.byName[c.name]
	switch {
	case c.run == nil:
		return Reply{}, fmt.Errorf("%w: the zero Command", ErrUnknown)
	case !ok || own.plugin != c.plugin:
		return Reply{}, fmt.Errorf("%w /%s: it is not of this set; take it from All or Lookup", ErrUnknown, c.name)
	case c.steers && session == nil:
		return Reply{}, fmt.Errorf("%w: /%s", ErrNoSession, c.name)
	case c.steers && th.Busy():
		return Reply{}, fmt.Errorf("slash: /%s: %w", c.name, engine.ErrBusy)
	}
	pc, err := th.Context(s.spec)
	if err != nil {
		return Reply{}, err
	}
	reply, err := guarded(ctx, c, pc, session, args)
	if err != nil || reply.Command.IsZero() {
		return reply, err
	}
	if _, err := th.Submit(ctx, c.plugin, reply.Command); err != nil {
		return Reply{}, fmt.Errorf("slash: /%s: its command was refused: %w", c.name, err)
	}
	return reply, nil
}

type outcome struct {
	reply Reply
	err   error
}

// guarded calls the command in a goroutine of its own, where it can do no harm.
func guarded(ctx context.Context, c Command, pc *phase.Context, session Session, args inference.JSON) (Reply, error) {
	done := make(chan outcome, 1) // one that was given up on must not wait
	go func() {
		out := outcome{err: fmt.Errorf("%w: /%s of plugin %s ended its goroutine", ErrPanic, c.name, c.plugin)}
		defer func() {
			if v := recover(); v != nil {
				out = outcome{err: fmt.Errorf("%w: /%s of plugin %s panicked: %v", ErrPanic, c.name, c.plugin, v)}
			}
			done <- out
		}()
		reply, err := c.run(ctx, pc, session, args)
		out = outcome{reply, err}
	}()
	select {
	case out := <-done:
		return out.reply, out.err
	case <-ctx.Done():
		return Reply{}, context.Cause(ctx)
	}
}
