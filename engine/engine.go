package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/internal/fanout"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Engine runs agents. It is immutable after New and safe for concurrent use by
// any number of runs, which share nothing but its plugins and models.
type Engine struct {
	config  Config
	parts   []*parts
	schema  *state.Schema // of every thread
	actions map[string]actionEntry
	effects *effects.Handlers
	catalog *catalog
	specs   map[string]AgentSpec // Config.Agents
	agents  map[string]*agent    // Config.Agents, made ready
	opens   bool                 // a plugin has an Open
	opening atomic.Bool          // Open was called
	opened  atomic.Bool
	closed  atomic.Bool

	gatherings sync.Pool // of *gathering
	scratch    sync.Pool // of *CallState
	born       time.Time
	ownClock   bool // no other one is configured

	underway sync.Map // EffectRefs of outbox entries that runs deliver themselves
	leased   sync.Map // ids of threads whose lease this engine has
}

// clock is the time since the engine was made, by the clock of the configuration. The
// machine's own is read without its date, which is half the price.
func (e *Engine) clock() time.Duration {
	if e.ownClock {
		return time.Since(e.born)
	}
	return e.config.Now().Sub(e.born)
}

type actionEntry struct {
	plugin  string
	handler phase.ActionHandler
}

// New builds an engine. It registers every plugin and checks every agent spec in
// c; all faults found are returned joined, each naming its plugin or position.
func New(c Config) (*Engine, error) {
	ownClock := c.Now == nil
	c, err := c.withDefaults()
	e := &Engine{
		born: c.Now(), ownClock: ownClock,
		config:  c,
		actions: map[string]actionEntry{},
		agents:  map[string]*agent{},
	}
	e.config.Plugins = slices.Clone(c.Plugins)
	e.config.Models = maps.Clone(c.Models)
	e.config.Observers = slices.Clone(c.Observers)
	if c.Logger != nil {
		e.config.Observers = append(e.config.Observers, LogObserver(c.Logger))
	}
	if err := errors.Join(append([]error{err}, e.registerPlugins()...)...); err != nil {
		return nil, err
	}
	if err := e.addAgents(c.Agents); err != nil {
		return nil, err
	}
	return e, nil
}

// registerPlugins runs every Register and merges what came of it.
func (e *Engine) registerPlugins() (errs []error) {
	seen := map[string]bool{}
	builtin, err := register(builtins{})
	errs = append(errs, err)
	builtin.keys = append(engineKeys(), builtin.keys...)
	all := []*parts{builtin}
	for _, p := range e.config.Plugins {
		ps, err := register(p)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if seen[ps.plugin] || ps.plugin == engineName {
			errs = append(errs, fmt.Errorf("%w: plugin %s is registered twice; names are unique per engine", ErrRegistration, ps.plugin))
			continue
		}
		seen[ps.plugin] = true
		all = append(all, ps)
	}
	cat := &catalog{sections: map[string]sectionInfo{}}
	var handlers []effects.Registered
	var keys []state.AnyKey
	taken := map[[2]string]string{} // the plugin by kind of part and name
	for _, ps := range all {
		// claim reports whether the plugin is the first with a part of that name.
		claim := func(kind, name string) bool {
			id := [2]string{kind, name}
			first, found := taken[id]
			if !found {
				taken[id] = ps.plugin
				return true
			}
			err := fmt.Errorf("%w: plugin %s: %s %q is already registered by plugin %s", ErrRegistration, ps.plugin, kind, name, first)
			if kind == "key" {
				err = fmt.Errorf("%w: %w", err, state.ErrDuplicateKey)
			}
			errs = append(errs, err)
			return false
		}
		for _, k := range ps.keys {
			if claim("key", k.Name()) {
				keys = append(keys, k)
			}
		}
		for _, k := range ps.profileKeys {
			claim("profile key", k.Name())
		}
		for _, s := range ps.sections {
			if claim("section", s.Name()) {
				cat.sections[s.Name()] = sectionInfo{plugin: ps.plugin, key: s}
			}
		}
		for _, h := range ps.actions {
			if claim("action", h.Name()) {
				e.actions[h.Name()] = actionEntry{ps.plugin, h}
			}
		}
		for _, h := range ps.effects {
			handlers = append(handlers, effects.Registered{Plugin: ps.plugin, Handler: h})
		}
		for _, t := range ps.tools {
			if name := t.Spec().Name; claim("tool", name) {
				cat.tools = append(cat.tools, name)
			}
		}
		for _, x := range ps.extras {
			claim(x.Kind, x.Name)
		}
		_, opens := ps.impl.(Opener)
		e.opens = e.opens || opens
		if ps.plugin != engineName {
			cat.plugins = append(cat.plugins, ps.plugin)
		}
	}
	for _, ps := range all {
		for _, g := range ps.gates {
			if name := g.action.Action(); name != "" && e.actions[name].plugin == "" {
				errs = append(errs, fmt.Errorf("%w: plugin %s: a gate on action %q, which no plugin handles (nearest known: %q)",
					ErrRegistration, ps.plugin, name, e.nearestAction(name)))
			}
		}
	}
	if e.effects, err = effects.NewHandlers(handlers); err != nil {
		errs = append(errs, fmt.Errorf("%w: %w", ErrRegistration, err))
	}
	if e.schema, err = state.NewSchema(keys...); err != nil {
		errs = append(errs, fmt.Errorf("%w: %w", ErrRegistration, err))
	}
	if e.config.Model == nil {
		cat.models = slices.Sorted(maps.Keys(e.config.Models))
	}
	e.parts = all[1:]
	e.catalog = cat
	return errs
}

func (e *Engine) addAgents(specs []AgentSpec) error {
	var errs []error
	byID := map[string]AgentSpec{}
	for _, s := range specs {
		if _, taken := byID[s.ID]; taken {
			errs = append(errs, fmt.Errorf("%w: agent id %q is given twice; ids are unique per engine", ErrConfig, s.ID))
			continue
		}
		byID[s.ID] = s
	}
	// All specs first: agents may delegate to each other.
	e.specs = byID
	e.catalog.agents = slices.Sorted(maps.Keys(byID))
	for _, id := range e.catalog.agents {
		a, err := e.resolve(byID[id])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		e.agents[id] = a
	}
	return errors.Join(errs...)
}

// Check reports what is wrong with an agent spec for this engine: unknown plugins,
// tools, sections, agents and models, and section contents. Nil means that Run
// would accept it.
func (e *Engine) Check(spec AgentSpec) error {
	_, err := e.prepare(spec)
	return err
}

// prepare returns the spec made ready to run, which for one of Config.Agents it is
// already.
func (e *Engine) prepare(spec AgentSpec) (*agent, error) {
	if a, ok := e.agents[spec.ID]; ok && reflect.DeepEqual(&a.spec, &spec) {
		return a, nil
	}
	return e.resolve(spec)
}

// Describe returns the manifest: what each plugin registered and which hooks
// could conflict.
func (e *Engine) Describe() Manifest { return buildManifest(e.parts) }

// Run runs the agent on a new thread with a single input and returns when the run
// ended. The error is non-nil only when nothing ran: a bad spec or input, a closed
// engine. How the run itself went, also when it failed or was cancelled, is in
// the Result.
func (e *Engine) Run(ctx context.Context, spec AgentSpec, in Input) (*Result, error) {
	th, err := e.NewThread("")
	if err != nil {
		return nil, err
	}
	return th.Run(ctx, spec, in)
}

// tier is the hooks of one phase that run together.
type tier struct {
	n    int
	jobs []job
	pace fanout.Pace
}

// agent is a spec made ready to run: what is active in it, sorted and looked up once.
type agent struct {
	spec       AgentSpec
	info       *phase.AgentInfo
	active     map[string]bool
	tiers      [phase.Count + 1][]*tier
	gates      map[string][]*gateEntry // by kind of action; "" for those over tool calls
	asked      fanout.Pace             // of the gates over tool calls
	transforms []*transformEntry
	tools      []Tool // in registration order
	toolByName map[string]Tool
	model      inference.Model
	extras     []extraEntry
	stops      []stopRule
}

// resolve checks spec and picks the parts that are active in it.
func (e *Engine) resolve(spec AgentSpec) (*agent, error) {
	sections, err := e.catalog.check(spec)
	if err != nil {
		return nil, err
	}
	spec = spec.Clone()
	a := &agent{
		spec:       spec,
		info:       phase.NewAgentInfo(spec.ID, spec.Description, spec.ModelID, sections),
		active:     map[string]bool{},
		gates:      map[string][]*gateEntry{},
		toolByName: map[string]Tool{},
	}
	if a.model = e.config.Models[spec.ModelID]; a.model == nil {
		a.model = e.config.Model
	}
	if a.stops, err = stopRules(spec); err != nil {
		return nil, err
	}
	for _, ps := range e.parts {
		if !spec.Active(ps.plugin) {
			continue
		}
		a.active[ps.plugin] = true
		for _, g := range ps.gates {
			if name := g.action.Action(); a.has(g.tool) {
				a.gates[name] = append(a.gates[name], g)
			}
		}
		a.transforms = append(a.transforms, ps.transforms...)
		for _, t := range ps.tools {
			a.addTool(t)
		}
		for _, h := range ps.hooks {
			if a.has(h.tool) {
				a.addHook(h, e.config.Limits)
			}
		}
		for _, x := range ps.extras {
			if a.has(x.tool) {
				a.extras = append(a.extras, x)
			}
		}
	}
	for _, id := range spec.Delegates {
		a.addTool(newDelegate(e.specs[id]))
	}
	return a, nil
}

// has reports whether the parts that a tool brought are active; "" is for those that
// no tool brought.
func (a *agent) has(tool string) bool { return tool == "" || a.spec.permitsTool(tool) }

func (a *agent) addTool(t Tool) {
	name := t.Spec().Name
	if a.spec.permitsTool(name) {
		a.tools = append(a.tools, t)
		a.toolByName[name] = t
	}
}

func (a *agent) addHook(h *hookEntry, l Limits) {
	tiers := a.tiers[h.phase]
	i, found := slices.BinarySearchFunc(tiers, h.opts.tier, func(t *tier, n int) int { return cmp.Compare(t.n, n) })
	if !found {
		tiers = slices.Insert(tiers, i, &tier{n: h.opts.tier})
	}
	call := h.hook.Run
	if f, ok := h.hook.(phase.HookFunc); ok {
		call = f // a call less
	}
	tiers[i].jobs = append(tiers[i].jobs, job{
		owner:   h.plugin,
		id:      h.id,
		tier:    h.opts.tier,
		timeout: cmp.Or(h.opts.timeout, l.HookTimeout),
		rule:    h.opts.onError,
		reads:   h.opts.reads,
		call:    call,
	})
	a.tiers[h.phase] = tiers
}
