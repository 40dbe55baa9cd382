package engine

import (
	"iter"

	"github.com/ddd26017/fixpoint/phase"
)

// Extra is a part of a plugin that the engine does not use itself but keeps for the
// program around it, such as the slash commands of package plugins/slash. The engine
// refuses a second one of the same kind and name, lists them in the manifest, and
// hands out those that are active for an agent.
type Extra interface {
	Kind() string // what it is, in a few words: "slash command"
	Name() string
	Description() string
}

type extraEntry struct {
	plugin string
	tool   string // that brought it, or ""
	extra  Extra
	ExtraManifest
}

// Extras returns the extras of a kind that are active for an agent, each with its
// plugin, in registration order.
func (e *Engine) Extras(spec AgentSpec, kind string) (iter.Seq2[string, Extra], error) {
	a, err := e.prepare(spec)
	if err != nil {
		return nil, err
	}
	return func(yield func(string, Extra) bool) {
		for _, x := range a.extras {
			if x.ExtraManifest.Kind == kind && !yield(x.plugin, x.extra) {
				return
			}
		}
	}, nil
}

// Context returns what a hook of the agent would be told about the thread now, for
// code of the program that works like one. Its phase is 0.
func (t *Thread) Context(spec AgentSpec) (*phase.Context, error) {
	a, err := t.eng.prepare(spec)
	if err != nil {
		return nil, err
	}
	r := t.active.Load()
	if r == nil {
		if r, err = t.standIn(a); err != nil {
			return nil, err
		}
		defer r.release()
	}
	return r.context(scene{}, t.Snapshot()), nil
}

// Busy reports whether a run of the thread is under way.
func (t *Thread) Busy() bool { return t.active.Load() != nil }
