package engine

import (
	"context"

	"github.com/ddd26017/fixpoint/internal/origin"
	"github.com/ddd26017/fixpoint/state"
)

// Plugin is a unit of extension. Register declares its parts on the registrar;
// it is called once, by New, and must not keep the registrar.
//
// One plugin value may serve many engines and many concurrent runs, so what
// belongs to a run is kept in state keys, never in the plugin.
type Plugin interface {
	// Name identifies the plugin: it is what active_hook_filter lists, what errors
	// and events name, and unique per engine.
	Name() string
	Register(r *Registrar) error
}

// Activator is implemented by plugins that prepare state when they become active
// for an agent: at the start of a run whose agent has them active, and at a
// handoff to such an agent. The updates commit together with the start or the
// handoff; none of it does when one fails.
type Activator interface {
	OnActivate(spec AgentSpec, b *Batch) error
}

// Deactivator is implemented by plugins that clean up state when a handoff makes
// them inactive.
type Deactivator interface {
	OnDeactivate(b *Batch) error
}

// Opener is implemented by plugins that need something before the first run, such as a
// connection. Engine.Open calls all of them at the same time. Close is called on plugins
// that were opened or not, since a sibling may have failed.
type Opener interface {
	Open(ctx context.Context) error
}

// Sourced is implemented by plugins that tell where they come from, for the manifest to
// show; of others it shows the package.
type Sourced interface {
	Source() string
}

// Closer is implemented by plugins that hold resources. Engine.Close calls all
// of them at the same time, under one deadline.
type Closer interface {
	Close(ctx context.Context) error
}

// Batch collects the updates of an Activator or Deactivator.
type Batch struct{ updates []state.Update }

// Update adds updates.
func (b *Batch) Update(us ...state.Update) { b.updates = append(b.updates, us...) }

// NewPlugin returns a plugin made of a name and a register function, for small
// plugins and tests.
func NewPlugin(name string, register func(r *Registrar) error) Plugin {
	return pluginFunc{name, register, origin.Caller(1)}
}

type pluginFunc struct {
	name     string
	register func(r *Registrar) error
	from     string // the package that called NewPlugin: register may have been inlined into another
}

func (p pluginFunc) Name() string                { return p.name }
func (p pluginFunc) Register(r *Registrar) error { return p.register(r) }
