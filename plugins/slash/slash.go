package slash

import (
	"context"
	"errors"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// Kind is the kind that slash commands have as extras of the engine.
const Kind = "slash command"

var (
	// ErrUnknown is returned for a command that no active plugin has.
	ErrUnknown = errors.New("slash: unknown command")
	// ErrArgs is returned for arguments that do not suit the command.
	ErrArgs = errors.New("slash: unusable arguments")
	// ErrNoSession is returned for a command that steers the session where there is none.
	ErrNoSession = errors.New("slash: the command needs a session, which this program does not lend")
	// ErrPanic is the fault of a command that panicked or ended its goroutine.
	ErrPanic = errors.New("slash: the command failed")
)

// Command is a slash command, an engine.Extra. It is an immutable value.
type Command struct {
	name, description string
	schema            inference.JSON
	plugin            string // that registered it, as far as it is known
	steers            bool
	run               func(ctx context.Context, pc *phase.Context, s Session, args inference.JSON) (Reply, error)
}

// Reply is what a command answers: a text for the person, and a command that the engine
// commits in the name of the plugin.
type Reply struct {
	Text    string
	Command phase.Command
}

// Session is what a program lends to commands that steer the conversation. What they
// ask for happens when they have returned; the last one of each kind counts.
type Session interface {
	// Thread and Agent are what the conversation goes on with.
	Thread() *engine.Thread
	Agent() engine.AgentSpec
	// Prompt begins a run with that text.
	Prompt(text string)
	// Switch goes on with another thread or agent.
	Switch(th *engine.Thread, agent engine.AgentSpec)
	// Leave ends the conversation.
	Leave()
}

// New makes a command with the narrow context. Its arguments are decoded into an In as
// strictly as those of a tool; the schema, "" for none, tells how to type them and is
// not derived from In. The name is without the slash and without white space.
func New[In any](name, description string, schema inference.JSON, fn func(ctx context.Context, pc *phase.Context, in In) (Reply, error)) Command {
	return Command{name: name, description: description, schema: schema,
		run: func(ctx context.Context, pc *phase.Context, _ Session, args inference.JSON) (Reply, error) {
			in, err := decode[In](name, args)
			if err != nil {
				return Reply{}, err
			}
			return fn(ctx, pc, in)
		}}
}

// NewSteering makes a command with the wide context. See New for the rest.
func NewSteering[In any](name, description string, schema inference.JSON, fn func(ctx context.Context, s Session, in In) (Reply, error)) Command {
	return Command{name: name, description: description, schema: schema, steers: true,
		run: func(ctx context.Context, _ *phase.Context, s Session, args inference.JSON) (Reply, error) {
			in, err := decode[In](name, args)
			if err != nil {
				return Reply{}, err
			}
			return fn(ctx, s, in)
		}}
}

// Kind returns Kind.
func (Command) Kind() string { return Kind }

// Name returns the name, without the slash.
func (c Command) Name() string { return c.name }

// Description returns what the command does.
func (c Command) Description() string { return c.description }

// Schema returns the JSON Schema of the arguments, "" for none.
func (c Command) Schema() inference.JSON { return c.schema }

// Plugin returns the plugin that registered the command, "" unless it is of a Set.
func (c Command) Plugin() string { return c.plugin }

// Steers reports whether the command needs a Session.
func (c Command) Steers() bool { return c.steers }
