package engine

import (
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/inference"
)

// Validate reports what is wrong with the spec by itself, each fault a
// *SpecError, all joined. Whether the names in it exist, Engine.Check says.
func (s AgentSpec) Validate() error {
	f := &faults{source: s.source, agent: s.ID}
	s.rules(f)
	return f.err()
}

// rules reports values that no engine could accept.
func (s *AgentSpec) rules(f *faults) {
	var root *specPath
	if s.ID == "" {
		f.value(root.field("id"), "an agent needs an id")
	}
	if s.MaxRounds < 0 {
		f.value(root.field("max_rounds"), "want 0 (for %d) or more, got %d", DefaultMaxRounds, s.MaxRounds)
	}
	for i, c := range s.StopConditions {
		c.rules(f, root.field("stop_conditions").item(i))
	}
	switch s.ToolExecution {
	case "", ToolsSequential, ToolsParallel:
	default:
		f.unknownValue(root.field("tool_execution"), "tool execution", string(s.ToolExecution), []string{string(ToolsSequential), string(ToolsParallel)})
	}
	s.paramRules(f)
	for _, list := range s.lists() {
		seen := map[string]int{}
		for i, name := range *list.names {
			at := root.field(list.field).item(i)
			first, twice := seen[name]
			switch {
			case name == "":
				f.value(at, "an empty name")
			case twice:
				f.value(at, "%q is listed twice, first at [%d]; keep one", name, first)
			case strings.HasSuffix(list.field, "_patterns"):
				if _, err := path.Match(name, ""); err != nil {
					f.value(at, "%q is not a pattern as path.Match takes it: %v", name, err).Err = err
				}
			case list.field == "delegates" && name == s.ID:
				f.value(at, "an agent cannot delegate to itself")
			case list.field == "active_hook_filter" && !s.uses(name):
				f.unknownValue(at, "plugin in plugin_ids named", name, s.PluginIDs)
			}
			if !twice {
				seen[name] = i
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Sections)) {
		if at := root.field("sections").field(name); name == "" {
			f.name(at, "a section without a name")
		} else if !s.Sections[name].Valid() {
			f.value(at, "not JSON")
		}
	}
}

func (s *AgentSpec) paramRules(f *faults) {
	at := (*specPath)(nil).field("params")
	if s.ReasoningEffort.IsSet() && s.Params.ReasoningEffort.IsSet() {
		f.value(at.field("reasoning_effort"), "reasoning_effort is set outside params too; keep one")
	}
	s.effortRule(f, (*specPath)(nil).field("reasoning_effort"), s.ReasoningEffort)
	s.effortRule(f, at.field("reasoning_effort"), s.Params.ReasoningEffort)
	for _, one := range []inference.Params{
		{Temperature: s.Params.Temperature},
		{MaxTokens: s.Params.MaxTokens},
		{TopP: s.Params.TopP},
	} {
		var bad *inference.FieldError
		if errors.As(one.Validate(), &bad) {
			f.value(at.field(string(bad.Field)), "want %s, got %s", bad.Want, bad.Value).Err = bad
		}
	}
	for name, v := range s.Params.Extra.All() {
		if name == "" || !v.Valid() {
			f.value(at.field("extra").field(name), "want a name and one JSON value")
		}
	}
}

func (s *AgentSpec) effortRule(f *faults, at *specPath, effort inference.Opt[inference.Effort]) {
	if e, ok := effort.Get(); ok {
		if _, err := inference.ParseEffort(string(e)); err != nil {
			f.unknownValue(at, "reasoning effort", string(e), []string{"none", "low", "medium", "high", "max"})
		}
	}
}

// catalog is what an engine knows by name. It is not changed once specs are
// checked against it.
type catalog struct {
	plugins  []string // in registration order
	sections map[string]sectionInfo
	tools    []string
	models   []string // empty: any model id will do
	agents   []string
}

type sectionInfo struct {
	plugin string
	key    AnyConfigKey
}

// check reports every fault of s by itself and every name in it that the engine
// does not know. Without faults it returns the decoded sections by name, one for
// each section key of the engine.
func (c *catalog) check(s AgentSpec) (map[string]any, error) {
	f := &faults{source: s.source, agent: s.ID}
	s.rules(f)
	var root *specPath
	tools := slices.Clone(c.tools)
	for _, id := range s.Delegates {
		tools = append(tools, DelegatePrefix+id)
	}
	for _, list := range s.lists() {
		what, known := c.namesFor(list.field, tools)
		if what == "" {
			continue
		}
		for i, name := range *list.names {
			if !slices.Contains(known, name) {
				f.unknownValue(root.field(list.field).item(i), what, name, known)
			}
		}
	}
	if len(c.models) > 0 && s.ModelID == "" {
		f.value(root.field("model_id"), "name a model; known: %s", listed(c.models))
	} else if len(c.models) > 0 && !slices.Contains(c.models, s.ModelID) {
		f.unknownValue(root.field("model_id"), "model", s.ModelID, c.models)
	}
	for i, stop := range s.StopConditions {
		if stop.Type == StopTypeStopOnTool && !slices.Contains(tools, stop.Tool) {
			f.unknownValue(root.field("stop_conditions").item(i).field("tool"), "tool", stop.Tool, tools)
		}
	}
	sections := c.decode(s, f)
	if err := f.err(); err != nil {
		return nil, err
	}
	return sections, nil
}

func (c *catalog) namesFor(field string, tools []string) (what string, known []string) {
	switch field {
	case "plugin_ids", "active_hook_filter":
		return "plugin", c.plugins
	case "allowed_tools", "excluded_tools":
		return "tool", tools
	case "delegates":
		return "agent", c.agents
	}
	return "", nil
}

func (c *catalog) decode(s AgentSpec, f *faults) map[string]any {
	at := (*specPath)(nil).field("sections")
	known := slices.Sorted(maps.Keys(c.sections))
	for _, name := range slices.Sorted(maps.Keys(s.Sections)) {
		if info, ok := c.sections[name]; !ok {
			f.unknownName(at.field(name), "section", known)
		} else if !s.uses(info.plugin) {
			f.name(at.field(name), "the section belongs to plugin %q, which plugin_ids does not list", info.plugin)
		}
	}
	decoded := make(map[string]any, len(known))
	for _, name := range known {
		info := c.sections[name]
		raw, given := s.Sections[name]
		// The settings of a plugin that nobody asked for need not be complete.
		check := given || s.Active(info.plugin)
		decoded[name] = info.key.decode(f, at.field(name), info.plugin, raw, check)
	}
	return decoded
}
