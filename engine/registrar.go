package engine

import (
	"cmp"
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
// Hooks, gates, policies, transforms, tools and extras are behavioural: they work for
// an agent whose active_hook_filter lists the plugin or is empty.
//
// Mistakes are collected, named after the plugin and returned together by New;
// a plugin with a mistake leaves nothing registered. A registrar is dead after
// Register returned: using it later changes nothing, and it is not safe for
// concurrent use.
type Registrar struct {
	plugin string
	tool   string // whose parts are registered now, see WithParts
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
	extras      []extraEntry
}

type hookEntry struct {
	plugin string
	tool   string // that brought it, or ""
	id     string // plugin/phase/index: the hook's identity in reports and events
	phase  phase.Phase
	hook   phase.Hook
	opts   hookOptions
}

type gateEntry struct {
	plugin string
	tool   string // that brought it, or ""
	id     string
	gate   gate.Gate
	action gate.ActionGate // instead, for a gate on actions
	policy bool
	opts   gateOptions
}

type transformEntry struct {
	plugin    string
	transform inference.Transform
	opts      transformOptions
}

// add registers a part of the plugin, or records the mistake in it.
func add[T any](r *Registrar, list *[]T, part T, mistake error) {
	switch {
	case r.closed:
	case mistake != nil:
		r.errs = append(r.errs, fmt.Errorf("%w: plugin %s: %w", ErrRegistration, r.plugin, mistake))
	default:
		*list = append(*list, part)
	}
}

func unless(fine bool, mistake string) error {
	if fine {
		return nil
	}
	return errors.New(mistake)
}

// chosen returns what the options that are not nil make of zero settings.
func chosen[T, S any](options []T, apply func(T, *S)) (s S) {
	for _, o := range options {
		if any(o) != nil {
			apply(o, &s)
		}
	}
	return s
}

// Plugin returns the name of the plugin that is being registered.
func (r *Registrar) Plugin() string { return r.plugin }

// Key registers state keys.
func (r *Registrar) Key(keys ...state.AnyKey) {
	for _, k := range keys {
		add(r, &r.parts.keys, k, unless(k != nil, "nil key"))
	}
}

// ProfileKey registers profile keys.
func (r *Registrar) ProfileKey(keys ...state.AnyProfileKey) {
	for _, k := range keys {
		add(r, &r.parts.profileKeys, k, unless(k != nil, "nil profile key"))
	}
}

// Section registers a section of the agent spec that the plugin reads.
func (r *Registrar) Section(keys ...AnyConfigKey) {
	for _, k := range keys {
		named := k != nil && k.Name() != ""
		add(r, &r.parts.sections, k, unless(named, "section key without a name; make it with NewConfigKey"))
	}
}

// Action registers action handlers, one per kind of action in an engine.
func (r *Registrar) Action(handlers ...phase.ActionHandler) {
	for _, h := range handlers {
		mistake := unless(h.Name() != "", "action handler without a name; make it with ActionSpec.Handle")
		if mistake == nil && !h.Phase().Valid() {
			mistake = fmt.Errorf("action %s: %w", h.Name(), unknownPhase(h.Phase()))
		}
		add(r, &r.parts.actions, h, mistake)
	}
}

// Effect registers effect handlers, one per kind of effect in an engine.
func (r *Registrar) Effect(handlers ...effects.Handler) {
	for _, h := range handlers {
		add(r, &r.parts.effects, h, unless(h.Name() != "", "effect handler without a name; make it with Spec.Handle"))
	}
}

// Hook registers a hook on a phase. Tool calls are decided by gates, so the
// ToolGate phase takes none: use Gate or Policy.
func (r *Registrar) Hook(p phase.Phase, h phase.Hook, options ...HookOption) {
	o := chosen(options, HookOption.hook)
	var mistake error
	switch {
	case !p.Valid():
		mistake = unknownPhase(p)
	case p == phase.ToolGate:
		mistake = errors.New("a hook on tool_gate; register a Gate or a Policy instead")
	case h == nil:
		mistake = errors.New("nil hook on " + p.String())
	case o.timeout < 0:
		mistake = fmt.Errorf("hook on %s: negative timeout", p)
	}
	earlier := 0
	for _, other := range r.parts.hooks {
		if other.phase == p {
			earlier++
		}
	}
	id := fmt.Sprintf("%s/%s/%d", r.plugin, p, earlier)
	add(r, &r.parts.hooks, &hookEntry{plugin: r.plugin, tool: r.tool, id: id, phase: p, hook: h, opts: o}, mistake)
}

// Gate registers a gate over tool calls.
func (r *Registrar) Gate(g gate.Gate, options ...GateOption) {
	r.addGate(gateEntry{gate: g}, unless(g != nil, "nil gate"), options)
}

// Policy registers a typed gate over tool calls.
func (r *Registrar) Policy(p gate.Policy, options ...GateOption) {
	r.addGate(gateEntry{gate: gate.FromPolicy(p), policy: true}, unless(p != nil, "nil policy"), options)
}

// ActionGate registers a gate over the scheduled actions of one kind, which some
// plugin of the engine has to handle. Actions that have a gate run one at a time.
func (r *Registrar) ActionGate(g gate.ActionGate, options ...GateOption) {
	r.addGate(gateEntry{action: g}, unless(g.Action() != "", "an action gate without action or check; make it with gate.OnAction"), options)
}

func (r *Registrar) addGate(g gateEntry, mistake error, options []GateOption) {
	g.opts = chosen(options, GateOption.gate)
	mistake = cmp.Or(mistake, unless(g.opts.timeout >= 0, "gate: negative timeout"))
	g.plugin, g.tool = r.plugin, r.tool
	g.id = fmt.Sprintf("%s/%s/%d", r.plugin, cmp.Or(g.action.Action(), phase.ToolGate.String()), len(r.parts.gates))
	add(r, &r.parts.gates, &g, mistake)
}

// Transform registers a request transform. Transforms of active plugins run in
// registration order, each on the result of the one before.
func (r *Registrar) Transform(t inference.Transform, options ...TransformOption) {
	o := chosen(options, TransformOption.transform)
	mistake := cmp.Or(unless(t != nil, "nil transform"), unless(o.timeout >= 0, "transform: negative timeout"))
	add(r, &r.parts.transforms, &transformEntry{plugin: r.plugin, transform: t, opts: o}, mistake)
}

// Tool registers tools. Their names are unique per engine.
func (r *Registrar) Tool(tools ...Tool) {
	for _, t := range tools {
		if t == nil {
			add(r, &r.parts.tools, nil, errors.New("nil tool"))
			continue
		}
		pinned, err := pin(t)
		add(r, &r.parts.tools, Tool(pinned), err)
		if err == nil && pinned.bring != nil {
			outer := r.tool
			r.tool = pinned.spec.Name
			err = guard(r.plugin, 0, func() error { return pinned.bring(r) })
			if r.tool = outer; err != nil {
				r.errs = append(r.errs, fmt.Errorf("%w: plugin %s: the parts of tool %s: %w", ErrRegistration, r.plugin, pinned.spec.Name, err))
			}
		}
	}
}

// Extra registers parts for the program around the engine. Names are unique per kind.
func (r *Registrar) Extra(extras ...Extra) {
	for _, x := range extras {
		if x == nil || x.Kind() == "" || x.Name() == "" {
			add(r, &r.parts.extras, extraEntry{}, errors.New("an extra without kind or name"))
			continue
		}
		add(r, &r.parts.extras, extraEntry{r.plugin, r.tool, x, ExtraManifest{x.Kind(), x.Name(), x.Description()}}, nil)
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
