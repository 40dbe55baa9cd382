package deferred

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Name is the plugin's name.
const Name = "deferred"

// Settings is the content of the section.
type Settings struct {
	// Results is how many tools one search loads at most, 1 to MaxResults. The
	// default is 5.
	Results int `json:"results"`
	// Always lists patterns, as path.Match takes them, of tools that are offered from
	// the start.
	Always []string `json:"always"`
	// Keep says how long a loaded tool stays: KeepRun, the default, or KeepThread.
	Keep Keep `json:"keep"`
}

// MaxResults is the largest number of tools that one search may load.
const MaxResults = 50

// Keep says how long a loaded tool stays loaded.
type Keep string

// How long.
const (
	KeepRun    Keep = "run"
	KeepThread Keep = "thread"
)

// Section is the section that holds the settings.
var Section = engine.NewConfigKey(Name, engine.ConfigOptions[Settings]{
	Default: func() Settings { return Settings{Results: 5, Keep: KeepRun} },
	Check:   Settings.Validate,
})

// Validate returns what is wrong with the settings, or nil.
func (s Settings) Validate() error {
	if s.Results < 1 || s.Results > MaxResults {
		return fmt.Errorf("deferred: results is %d; want 1 to %d", s.Results, MaxResults)
	}
	if s.Keep != KeepRun && s.Keep != KeepThread {
		return fmt.Errorf("deferred: keep is %q; use %q or %q", s.Keep, KeepRun, KeepThread)
	}
	for _, pattern := range s.Always {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("deferred: always has %q, which is no pattern as path.Match takes it: %w", pattern, err)
		}
	}
	return nil
}

var (
	// LoadedInRun holds the names of the tools that were loaded for the run.
	LoadedInRun = state.NewSet[string]("deferred.loaded_in_run", state.Options[string]{})
	// LoadedInThread holds the names of the tools that were loaded for the thread.
	LoadedInThread = state.NewSet[string]("deferred.loaded_in_thread", state.Options[string]{Scope: state.ScopeThread})

	// barred holds, by agent, the deferred tools that its spec does not permit. Tools
	// and gates do not see the spec.
	barred = state.NewTable[string]("deferred.barred", state.Options[[]string]{Clone: slices.Clone[[]string]})
)

// Options adjust the plugin.
type Options struct {
	// Tools are those that the model has to search for. Their names are unique per
	// engine, as those of all tools.
	Tools []engine.Tool
	// About says in a few words what the tools are good for, so that the model knows
	// when to search. It becomes part of the description of search_tools.
	About string
}

// New returns the plugin. It holds nothing that belongs to a run and is safe for
// concurrent use, as the tools have to be.
func New(o Options) engine.Plugin {
	o.Tools = slices.Clone(o.Tools)
	return plugin{o}
}

type plugin struct{ Options }

func (plugin) Name() string { return Name }

func (p plugin) Register(r *engine.Registrar) error {
	c := newCatalog(p.Tools)
	r.Key(LoadedInRun, LoadedInThread, barred)
	r.Section(Section)
	r.Tool(newSearch(c, p.About))
	r.Tool(p.Tools...)
	r.Gate(gate.Func(c.check))
	r.Transform(inference.TransformFunc(c.hide))
	return nil
}

// OnActivate notes which of the tools the agent may not use.
func (p plugin) OnActivate(spec engine.AgentSpec, b *engine.Batch) error {
	var not []string
	if !permits(spec, SearchTool) {
		not = append(not, SearchTool)
	}
	for _, t := range p.Tools {
		if name := t.Spec().Name; !permits(spec, name) {
			not = append(not, name)
		}
	}
	if len(not) > 0 {
		b.Update(barred.Put(spec.ID, not))
	}
	return nil
}

// permits reports whether the agent may use the tool.
func permits(spec engine.AgentSpec, tool string) bool {
	open := len(spec.AllowedTools)+len(spec.AllowedToolPatterns) == 0
	return (open || slices.Contains(spec.AllowedTools, tool) || matches(spec.AllowedToolPatterns, tool)) &&
		!slices.Contains(spec.ExcludedTools, tool) && !matches(spec.ExcludedToolPatterns, tool)
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, _ := path.Match(pattern, name) // malformed ones were refused
		return ok
	})
}

// view is what is deferred at one moment of a run.
type view struct {
	snap   *state.Snapshot
	always []string
	barred []string
}

func look(pc *phase.Context, s Settings) view {
	not, _ := barred.Get(pc.Snapshot(), pc.Agent().ID)
	return view{pc.Snapshot(), s.Always, not}
}

// offers reports whether the deferred tool is to be offered, if the agent may use it.
func (v view) offers(tool string) bool {
	return slices.Contains(v.barred, SearchTool) || matches(v.always, tool) ||
		LoadedInRun.Has(v.snap, tool) || LoadedInThread.Has(v.snap, tool)
}

// hide takes the deferred tools out of the request that are not to be offered.
func (c *catalog) hide(ctx context.Context, r inference.Request) (inference.Request, error) {
	pc, ok := phase.FromContext(ctx)
	if !ok {
		return r, errors.New("deferred: the transform is for requests of an engine")
	}
	v := look(pc, Section.Get(pc))
	r.Tools = slices.DeleteFunc(r.Tools, func(t inference.ToolSpec) bool { return c.has(t.Name) && !v.offers(t.Name) })
	return r, nil
}

// check turns away calls of tools that the model has not seen. Calls of a delegate
// are judged here too, but are not this run's business.
func (c *catalog) check(_ context.Context, pc *phase.Context) (gate.Decision, error) {
	call := pc.Call()
	own, known := engine.ToolCalls.Get(pc.Snapshot(), call.ID)
	if !c.has(call.Name) || pc.Tool().Name == "" || !known || own.Call.Name != call.Name ||
		look(pc, Section.Get(pc)).offers(call.Name) {
		return gate.Abstain(), nil
	}
	return gate.Block(fmt.Sprintf("%s is not loaded yet; call %s with its name, or with words that say what you need, and call it in your next step",
		call.Name, SearchTool)), nil
}
