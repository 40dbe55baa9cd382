package engine

import (
	"errors"
	"fmt"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Registrar receives the parts of one plugin while its Register runs. Keys,
// profile keys, sections, actions and effects are structural: they always work.
// Hooks, gates, policies, transforms and tools are behavioural: they work for an
// agent whose active_hook_filter lists the plugin or is empty.
//
// Mistakes are collected, named after the plugin and returned together by New;
// a plugin with a mistake leaves nothing registered. A registrar is dead after
// Register returned: using it later changes nothing, and it is not safe for
// concurrent use.
type Registrar struct {
	plugin string
	closed bool
	parts  *parts
	errs   []error
}

// parts is what one plugin registered.
type parts struct {
	plugin      string
	impl        Plugin
	keys        []state.AnyKey
	profileKeys []state.AnyProfileKey
	sections    []AnyConfigKey
	actions     []phase.ActionHandler
	effects     []effects.Handler
	hooks       []*hookEntry
	gates       []*gateEntry
	transforms  []*transformEntry
	tools       []Tool
}

type hookEntry struct {
	plugin string
	id     string // plugin/phase/index: the hook's identity in reports and events
	phase  phase.Phase
	hook   phase.Hook
	opts   hookOptions
}

type gateEntry struct {
	plugin string
	id     string
	gate   gate.Gate
	policy bool
	opts   gateOptions
}

type transformEntry struct {
	plugin    string
	transform inference.Transform
	opts      transformOptions
}

// live reports whether parts may still be registered, and records a mistake.
func (r *Registrar) live(mistake error) bool {
	if r.closed {
		return false
	}
	if mistake != nil {
		r.errs = append(r.errs, fmt.Errorf("%w: plugin %s: %w", ErrRegistration, r.plugin, mistake))
	}
	return true
}

// Plugin returns the name of the plugin that is being registered.
func (r *Registrar) Plugin() string { return r.plugin }

// Key registers state keys.
func (r *Registrar) Key(keys ...state.AnyKey) {
	for _, k := range keys {
		if k == nil {
			r.live(errors.New("nil key"))
		} else if r.live(nil) {
			r.parts.keys = append(r.parts.keys, k)
		}
	}
}

// ProfileKey registers profile keys.
func (r *Registrar) ProfileKey(keys ...state.AnyProfileKey) {
	for _, k := range keys {
		if k == nil {
			r.live(errors.New("nil profile key"))
		} else if r.live(nil) {
			r.parts.profileKeys = append(r.parts.profileKeys, k)
		}
	}
}

// Section registers a section of the agent spec that the plugin reads.
func (r *Registrar) Section(keys ...AnyConfigKey) {
	for _, k := range keys {
		if k == nil || k.Name() == "" {
			r.live(errors.New("section key without a name; make it with NewConfigKey"))
		} else if r.live(nil) {
			r.parts.sections = append(r.parts.sections, k)
		}
	}
}

// Action registers action handlers, one per kind of action in an engine.
func (r *Registrar) Action(handlers ...phase.ActionHandler) {
	for _, h := range handlers {
		switch {
		case h.Name() == "":
			r.live(errors.New("action handler without a name; make it with ActionSpec.Handle"))
		case !h.Phase().Valid():
			r.live(fmt.Errorf("action %s: %w", h.Name(), unknownPhase(h.Phase())))
		case r.live(nil):
			r.parts.actions = append(r.parts.actions, h)
		}
	}
}

// Effect registers effect handlers, one per kind of effect in an engine.
func (r *Registrar) Effect(handlers ...effects.Handler) {
	for _, h := range handlers {
		if h.Name() == "" {
			r.live(errors.New("effect handler without a name; make it with Spec.Handle"))
		} else if r.live(nil) {
			r.parts.effects = append(r.parts.effects, h)
		}
	}
}

// Hook registers a hook on a phase. Tool calls are decided by gates, so the
// ToolGate phase takes none: use Gate or Policy.
func (r *Registrar) Hook(p phase.Phase, h phase.Hook, options ...HookOption) {
	switch {
	case !p.Valid():
		r.live(unknownPhase(p))
		return
	case p == phase.ToolGate:
		r.live(errors.New("a hook on tool_gate; register a Gate or a Policy instead"))
		return
	case h == nil:
		r.live(errors.New("nil hook on " + p.String()))
		return
	}
	if !r.live(nil) {
		return
	}
	var o hookOptions
	for _, opt := range options {
		if opt != nil {
			opt.hook(&o)
		}
	}
	if err := o.validate(); err != nil {
		r.live(fmt.Errorf("hook on %s: %w", p, err))
		return
	}
	r.parts.hooks = append(r.parts.hooks, &hookEntry{
		plugin: r.plugin, phase: p, hook: h, opts: o,
		id: fmt.Sprintf("%s/%s/%d", r.plugin, p, r.countHooks(p)),
	})
}

func (r *Registrar) countHooks(p phase.Phase) int {
	n := 0
	for _, h := range r.parts.hooks {
		if h.phase == p {
			n++
		}
	}
	return n
}

// Gate registers a gate over tool calls.
func (r *Registrar) Gate(g gate.Gate, options ...GateOption) {
	if g == nil {
		r.live(errors.New("nil gate"))
		return
	}
	r.addGate(g, false, options)
}

// Policy registers a typed gate over tool calls.
func (r *Registrar) Policy(p gate.Policy, options ...GateOption) {
	if p == nil {
		r.live(errors.New("nil policy"))
		return
	}
	r.addGate(gate.FromPolicy(p), true, options)
}

func (r *Registrar) addGate(g gate.Gate, policy bool, options []GateOption) {
	if !r.live(nil) {
		return
	}
	var o gateOptions
	for _, opt := range options {
		if opt != nil {
			opt.gate(&o)
		}
	}
	if o.timeout < 0 {
		r.live(errors.New("gate: negative timeout"))
		return
	}
	r.parts.gates = append(r.parts.gates, &gateEntry{
		plugin: r.plugin, gate: g, policy: policy, opts: o,
		id: fmt.Sprintf("%s/%s/%d", r.plugin, phase.ToolGate, len(r.parts.gates)),
	})
}

// Transform registers a request transform. Transforms of active plugins run in
// registration order, each on the result of the one before.
func (r *Registrar) Transform(t inference.Transform, options ...TransformOption) {
	if t == nil {
		r.live(errors.New("nil transform"))
		return
	}
	if !r.live(nil) {
		return
	}
	var o transformOptions
	for _, opt := range options {
		if opt != nil {
			opt.transform(&o)
		}
	}
	if o.timeout < 0 {
		r.live(errors.New("transform: negative timeout"))
		return
	}
	r.parts.transforms = append(r.parts.transforms, &transformEntry{plugin: r.plugin, transform: t, opts: o})
}

// Tool registers tools. Their names are unique per engine.
func (r *Registrar) Tool(tools ...Tool) {
	for _, t := range tools {
		if t == nil {
			r.live(errors.New("nil tool"))
		} else if p, err := pin(t); err != nil {
			r.live(err)
		} else if r.live(nil) {
			r.parts.tools = append(r.parts.tools, p)
		}
	}
}

// register runs p.Register and returns its parts, or every mistake it made.
func register(p Plugin) (ps *parts, err error) {
	name, err := pluginName(p)
	if err != nil {
		return nil, err
	}
	r := &Registrar{plugin: name, parts: &parts{plugin: name, impl: p}}
	defer func() { r.closed = true }()
	if err := guard(name, 0, func() error { return p.Register(r) }); err != nil {
		r.errs = append(r.errs, fmt.Errorf("%w: plugin %s: %w", ErrRegistration, name, err))
	}
	if len(r.errs) > 0 {
		return nil, errors.Join(r.errs...)
	}
	return r.parts, nil
}

func pluginName(p Plugin) (name string, err error) {
	if p == nil {
		return "", fmt.Errorf("%w: nil plugin", ErrRegistration)
	}
	err = guard("?", 0, func() error { name = p.Name(); return nil })
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: a plugin (%T) did not tell its name: %w", ErrRegistration, p, err)
	case name == "":
		return "", fmt.Errorf("%w: a plugin without a name (%T)", ErrRegistration, p)
	}
	return name, nil
}

func unknownPhase(p phase.Phase) error {
	return fmt.Errorf("%w %d: use one of the declared constants", phase.ErrUnknownPhase, uint8(p))
}
