package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Manifest lists what the plugins of an engine registered, in registration
// order, and which hooks could conflict. It says the same for the same plugins.
// Print it with Text, Mermaid or encoding/json. It is the caller's to change.
type Manifest struct {
	// Agent is the id of the spec given to For, or "".
	Agent   string           `json:"agent,omitempty"`
	Plugins []PluginManifest `json:"plugins"`
	// Conflicts is in order of phase, tier and key.
	Conflicts []PotentialConflict `json:"conflicts,omitempty"`
	// Undeclared lists the active hooks that declare no Writes, in registration
	// order. What they could conflict with is not known.
	Undeclared []string `json:"undeclared,omitempty"`
}

// PluginManifest lists the parts of one plugin.
type PluginManifest struct {
	Name string `json:"name"`
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
}

// GateManifest describes a gate.
type GateManifest struct {
	ID       string `json:"id"`               // plugin/tool_gate/index
	Policy   bool   `json:"policy,omitempty"` // registered with Registrar.Policy
	Timeout  string `json:"timeout,omitempty"`
	FailOpen bool   `json:"fail_open,omitempty"`
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
	switch {
	case len(c.Hooks) > 1:
		return c.Merge == state.Exclusive || len(c.Readers) > 0
	case len(c.Hooks) == 1:
		return slices.ContainsFunc(c.Readers, func(id string) bool { return id != c.Hooks[0] })
	}
	return false
}

// For returns the manifest for an agent: plugins are marked as active or not,
// and of conflicts and undeclared hooks only those remain that can happen with
// the active ones. Lists that stay the same are shared with m.
func (m Manifest) For(spec AgentSpec) Manifest {
	m.Agent = spec.ID
	m.Plugins = slices.Clone(m.Plugins)
	inactive := map[string]bool{}
	for i := range m.Plugins {
		p := &m.Plugins[i]
		p.Active = spec.Active(p.Name)
		for _, h := range p.Hooks {
			inactive[h.ID] = !p.Active
		}
	}
	active := func(ids []string) []string {
		return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return inactive[id] })
	}
	var left []PotentialConflict
	for _, c := range m.Conflicts {
		c.Hooks, c.Readers = active(c.Hooks), active(c.Readers)
		if c.possible() {
			left = append(left, c)
		}
	}
	m.Conflicts, m.Undeclared = left, active(m.Undeclared)
	return m
}

// buildManifest describes parts, all of them active.
func buildManifest(all []*parts) Manifest {
	m := Manifest{Plugins: []PluginManifest{}}
	var hooks []*hookEntry
	for _, ps := range all {
		m.Plugins = append(m.Plugins, describe(ps))
		hooks = append(hooks, ps.hooks...)
	}
	m.Conflicts = potentialConflicts(hooks)
	for _, h := range hooks {
		if len(h.opts.writes) == 0 {
			m.Undeclared = append(m.Undeclared, h.id)
		}
	}
	return m
}

func describe(ps *parts) PluginManifest {
	p := PluginManifest{Name: ps.plugin, Active: true, Transforms: len(ps.transforms)}
	for _, k := range ps.keys {
		p.Keys = append(p.Keys, KeyManifest{k.Name(), k.Scope(), k.Merge()})
	}
	for _, k := range ps.profileKeys {
		p.ProfileKeys = append(p.ProfileKeys, k.Name())
	}
	for _, k := range ps.sections {
		p.Sections = append(p.Sections, k.Name())
	}
	for _, h := range ps.hooks {
		p.Hooks = append(p.Hooks, HookManifest{
			ID: h.id, Phase: h.phase, Tier: h.opts.tier, Timeout: span(h.opts.timeout), OnError: h.opts.onError,
			Reads: keyNames(h.opts.reads), Writes: keyNames(h.opts.writes),
		})
	}
	for _, g := range ps.gates {
		p.Gates = append(p.Gates, GateManifest{g.id, g.policy, span(g.opts.timeout), g.opts.failOpen})
	}
	for _, a := range ps.actions {
		p.Actions = append(p.Actions, ActionManifest{a.Name(), a.Phase(), a.ReplaySafe()})
	}
	for _, e := range ps.effects {
		p.Effects = append(p.Effects, e.Name())
	}
	for _, t := range ps.tools {
		var spec inference.ToolSpec
		if guard(ps.plugin, 0, func() error { spec = t.Spec(); return nil }) == nil {
			p.Tools = append(p.Tools, ToolManifest{spec.Name, spec.Kind, spec.Description})
		}
	}
	return p
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

// potentialConflicts groups the declarations of hooks by phase, tier and key.
func potentialConflicts(hooks []*hookEntry) []PotentialConflict {
	type place struct {
		phase phase.Phase
		tier  int
		key   string
	}
	found := map[place]*PotentialConflict{}
	add := func(h *hookEntry, keys []state.AnyKey, list func(*PotentialConflict) *[]string) {
		for _, k := range keys {
			if k == nil {
				continue
			}
			p := place{h.phase, h.opts.tier, k.Name()}
			if found[p] == nil {
				found[p] = &PotentialConflict{Phase: p.phase, Tier: p.tier, Key: p.key, Merge: k.Merge()}
			}
			if ids := list(found[p]); !slices.Contains(*ids, h.id) {
				*ids = append(*ids, h.id)
			}
		}
	}
	for _, h := range hooks {
		add(h, h.opts.writes, func(c *PotentialConflict) *[]string { return &c.Hooks })
		add(h, h.opts.reads, func(c *PotentialConflict) *[]string { return &c.Readers })
	}
	var out []PotentialConflict
	for _, c := range found {
		if c.possible() {
			out = append(out, *c)
		}
	}
	slices.SortFunc(out, func(a, b PotentialConflict) int {
		return cmp.Or(cmp.Compare(a.Phase, b.Phase), cmp.Compare(a.Tier, b.Tier), cmp.Compare(a.Key, b.Key))
	})
	return out
}
