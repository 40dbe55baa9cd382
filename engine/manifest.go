package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Manifest lists what the plugins of an engine registered, in registration
// order, and which hooks could conflict. It says the same for the same plugins.
// Package engine/picture prints and draws it, encoding/json writes it. It is the
// caller's to change.
type Manifest struct {
	// Agent is the id of the spec given to For, or "".
	Agent   string           `json:"agent,omitempty"`
	Plugins []PluginManifest `json:"plugins"`
	// Conflicts is in order of phase, tier and key.
	Conflicts []PotentialConflict `json:"conflicts,omitempty"`
	// Undeclared lists the active hooks that declare no Writes, in registration
	// order. What they could conflict with is not known.
	Undeclared []string `json:"undeclared,omitempty"`

	merge map[string]state.MergeStrategy // of the keys that hooks declare
}

// PluginManifest lists the parts of one plugin.
type PluginManifest struct {
	Name   string `json:"name"`
	Source string `json:"source,omitempty"` // where it comes from: a Go package, or what the plugin says
	// Active says whether the behavioural parts work for the agent; without an
	// agent it is true.
	Active      bool             `json:"active"`
	Keys        []KeyManifest    `json:"keys,omitempty"`
	ProfileKeys []string         `json:"profile_keys,omitempty"`
	Sections    []string         `json:"sections,omitempty"`
	Hooks       []HookManifest   `json:"hooks,omitempty"`
	Gates       []GateManifest   `json:"gates,omitempty"`
	Actions     []ActionManifest `json:"actions,omitempty"`
	Effects     []string         `json:"effects,omitempty"`
	Transforms  int              `json:"transforms,omitempty"`
	Tools       []ToolManifest   `json:"tools,omitempty"`
	Extras      []ExtraManifest  `json:"extras,omitempty"`
}

// KeyManifest describes a state key.
type KeyManifest struct {
	Name  string              `json:"name"`
	Scope state.Scope         `json:"scope"`
	Merge state.MergeStrategy `json:"merge"`
}

// HookManifest describes a hook.
type HookManifest struct {
	ID      string      `json:"id"` // plugin/phase/index
	Phase   phase.Phase `json:"phase"`
	Tier    int         `json:"tier"`
	Timeout string      `json:"timeout,omitempty"` // as time.Duration prints it; "" for none of its own
	OnError ErrorRule   `json:"on_error"`
	Reads   []string    `json:"reads,omitempty"`  // declared keys
	Writes  []string    `json:"writes,omitempty"` // declared keys
	Silent  bool        `json:"silent,omitempty"` // declared to write none
}

// GateManifest describes a gate.
type GateManifest struct {
	ID       string      `json:"id"` // plugin/tool_gate/index, or with the action in its middle
	Phase    phase.Phase `json:"phase"`
	Action   string      `json:"action,omitempty"` // that it is about; "" for tool calls
	Policy   bool        `json:"policy,omitempty"` // registered with Registrar.Policy
	Timeout  string      `json:"timeout,omitempty"`
	FailOpen bool        `json:"fail_open,omitempty"`
}

// ActionManifest describes an action handler.
type ActionManifest struct {
	Name       string      `json:"name"`
	Phase      phase.Phase `json:"phase"`
	ReplaySafe bool        `json:"replay_safe,omitempty"`
}

// ToolManifest describes a tool.
type ToolManifest struct {
	Name        string `json:"name"`
	Kind        string `json:"kind,omitempty"`
	Description string `json:"description,omitempty"`
}

// ExtraManifest describes an Extra.
type ExtraManifest struct {
	Kind        string `json:"kind"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// PotentialConflict is a key that hooks of one phase and tier declare, so that
// one of them may have to run again: several write it and it is Exclusive, or
// one writes it and another declares to read it. Of a table only hooks that
// touch the same entry do conflict.
type PotentialConflict struct {
	Phase phase.Phase `json:"phase"`
	Tier  int         `json:"tier"`
	Key   string      `json:"key"`
	// Merge is the key's; if it is Commutative only readers can be in conflict.
	Merge   state.MergeStrategy `json:"merge"`
	Hooks   []string            `json:"hooks"`             // that write the key, in registration order
	Readers []string            `json:"readers,omitempty"` // that read it, in registration order
}

// possible reports whether there are two hooks of which one could make the other
// run again.
func (c PotentialConflict) possible() bool {
	isRead := func(writer string) bool {
		return slices.ContainsFunc(c.Readers, func(reader string) bool { return reader != writer })
	}
	return len(c.Hooks) > 1 && c.Merge == state.Exclusive || slices.ContainsFunc(c.Hooks, isRead)
}

// For returns the manifest for an agent: plugins are marked as active or not,
// and of conflicts and undeclared hooks only those remain that can happen with
// the active ones. It takes a manifest as Describe made it; lists that stay the
// same are shared with it.
func (m Manifest) For(spec AgentSpec) Manifest {
	m.Agent = spec.ID
	m.Plugins = slices.Clone(m.Plugins)
	for i, p := range m.Plugins {
		m.Plugins[i].Active = spec.Active(p.Name)
	}
	m.relate()
	return m
}

// buildManifest describes parts, all of them active.
func buildManifest(all []*parts) Manifest {
	m := Manifest{Plugins: []PluginManifest{}, merge: map[string]state.MergeStrategy{}}
	for _, ps := range all {
		m.Plugins = append(m.Plugins, describe(ps))
		for _, h := range ps.hooks {
			for _, k := range slices.Concat(h.opts.reads, h.opts.writes) {
				if k != nil {
					m.merge[k.Name()] = k.Merge()
				}
			}
		}
	}
	m.relate()
	return m
}

func describe(ps *parts) PluginManifest {
	return PluginManifest{
		Name: ps.plugin, Source: source(ps.impl), Active: true, Transforms: len(ps.transforms),
		ProfileKeys: each(ps.profileKeys, state.AnyProfileKey.Name),
		Sections:    each(ps.sections, AnyConfigKey.Name),
		Effects:     each(ps.effects, effects.Handler.Name),
		Keys: each(ps.keys, func(k state.AnyKey) KeyManifest {
			return KeyManifest{k.Name(), k.Scope(), k.Merge()}
		}),
		Hooks: each(ps.hooks, func(h *hookEntry) HookManifest {
			o := h.opts
			return HookManifest{h.id, h.phase, o.tier, span(o.timeout), o.onError, keyNames(o.reads), keyNames(o.writes), o.writes != nil && len(o.writes) == 0}
		}),
		Gates: each(ps.gates, func(g *gateEntry) GateManifest {
			return GateManifest{g.id, cmp.Or(g.action.Phase(), phase.ToolGate), g.action.Action(), g.policy, span(g.opts.timeout), g.opts.failOpen}
		}),
		Actions: each(ps.actions, func(a phase.ActionHandler) ActionManifest {
			return ActionManifest{a.Name(), a.Phase(), a.ReplaySafe()}
		}),
		Tools: each(ps.tools, func(t Tool) ToolManifest {
			spec := t.Spec()
			return ToolManifest{spec.Name, spec.Kind, spec.Description}
		}),
		Extras: each(ps.extras, func(x extraEntry) ExtraManifest { return x.ExtraManifest }),
	}
}

func each[T, U any](list []T, describe func(T) U) (out []U) {
	if len(list) > 0 {
		out = make([]U, len(list))
	}
	for i, v := range list {
		out[i] = describe(v)
	}
	return out
}

func span(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

func keyNames(keys []state.AnyKey) []string {
	var names []string
	for _, k := range keys {
		if k != nil && !slices.Contains(names, k.Name()) {
			names = append(names, k.Name())
		}
	}
	return names
}

// relate finds what the declarations of the active hooks have in common by
// phase, tier and key.
func (m *Manifest) relate() {
	m.Conflicts, m.Undeclared = nil, nil
	type place struct {
		phase phase.Phase
		tier  int
		key   string
	}
	found := map[place]*PotentialConflict{}
	declare := func(h HookManifest, key string) *PotentialConflict {
		at := place{h.Phase, h.Tier, key}
		if found[at] == nil {
			found[at] = &PotentialConflict{Phase: h.Phase, Tier: h.Tier, Key: key, Merge: m.merge[key]}
		}
		return found[at]
	}
	for _, p := range m.Plugins {
		for _, h := range p.Hooks {
			if !p.Active {
				continue
			}
			for _, key := range h.Writes {
				c := declare(h, key)
				c.Hooks = append(c.Hooks, h.ID)
			}
			for _, key := range h.Reads {
				c := declare(h, key)
				c.Readers = append(c.Readers, h.ID)
			}
			if len(h.Writes) == 0 && !h.Silent {
				m.Undeclared = append(m.Undeclared, h.ID)
			}
		}
	}
	for _, c := range found {
		if c.possible() {
			m.Conflicts = append(m.Conflicts, *c)
		}
	}
	slices.SortFunc(m.Conflicts, func(a, b PotentialConflict) int {
		return cmp.Or(cmp.Compare(a.Phase, b.Phase), cmp.Compare(a.Tier, b.Tier), cmp.Compare(a.Key, b.Key))
	})
}
