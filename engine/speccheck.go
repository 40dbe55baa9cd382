package engine

import (
	"cmp"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/internal/jsonpos"
)

// Validate reports what is wrong with the spec by itself, each fault a
// *SpecError, all joined. Whether the names in it exist, Engine.Check says.
func (s AgentSpec) Validate() error {
	f := newFaults(s.source, s.ID)
	s.rules(f)
	return f.err()
}

// rules reports values that no engine could accept.
func (s *AgentSpec) rules(f *faults) {
	if s.ID == "" {
		f.Value(jsonpos.Path{"id"}, "an agent needs an id")
	}
	if s.MaxRounds < 0 {
		f.Value(jsonpos.Path{"max_rounds"}, "want 0 (for %d) or more, got %d", DefaultMaxRounds, s.MaxRounds)
	}
	for i, c := range s.StopConditions {
		c.rules(f, jsonpos.Path{"stop_conditions", i})
	}
	f.OneOf(jsonpos.Path{"tool_execution"}, "tool execution", string(cmp.Or(s.ToolExecution, ToolsSequential)),
		string(ToolsSequential), string(ToolsParallel))
	s.paramRules(f)
	for _, list := range s.lists() {
		for i, name := range *list.names {
			at := jsonpos.Path{list.field, i}
			first := slices.Index(*list.names, name)
			_, err := path.Match(name, "")
			switch {
			case name == "":
				f.Value(at, "an empty name")
			case first < i:
				f.Value(at, "%q is listed twice, first at [%d]; keep one", name, first)
			case list.what == "" && err != nil:
				f.Value(at, "%q is not a pattern as path.Match takes it: %v", name, err).Err = err
			case list.what == "agent" && name == s.ID:
				f.Value(at, "an agent cannot delegate to itself")
			case list.field == "active_hook_filter" && !s.uses(name):
				f.OneOf(at, "plugin in plugin_ids named", name, s.PluginIDs...)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Sections)) {
		if at := (jsonpos.Path{"sections", name}); name == "" {
			f.Name(at, "a section without a name")
		} else if !s.Sections[name].Valid() {
			f.Value(at, "not JSON")
		}
	}
}

func (s *AgentSpec) paramRules(f *faults) {
	p, at := s.Params, jsonpos.Path{"params"}
	if s.ReasoningEffort.IsSet() && p.ReasoningEffort.IsSet() {
		f.Value(at.To("reasoning_effort"), "reasoning_effort is set outside params too; keep one")
	}
	efforts := []string{"none", "low", "medium", "high", "max"}
	f.OneOf(jsonpos.Path{"reasoning_effort"}, "reasoning effort", string(s.ReasoningEffort.Or("none")), efforts...)
	f.OneOf(at.To("reasoning_effort"), "reasoning effort", string(p.ReasoningEffort.Or("none")), efforts...)
	for _, one := range []inference.Params{{Temperature: p.Temperature}, {MaxTokens: p.MaxTokens}, {TopP: p.TopP}, {Extra: p.Extra}} {
		var bad *inference.FieldError
		if !errors.As(one.Validate(), &bad) {
			continue
		}
		field := at.To(string(bad.Field))
		if name, extra := strings.CutPrefix(string(bad.Field), string(inference.ExtraField(""))); extra {
			field = at.To("extra", name)
		}
		f.Value(field, "want %s, got %s", bad.Want, bad.Value).Err = bad
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
	f := newFaults(s.source, s.ID)
	s.rules(f)
	known := map[string][]string{"plugin": c.plugins, "tool": slices.Clone(c.tools), "agent": c.agents}
	for _, id := range s.Delegates {
		known["tool"] = append(known["tool"], DelegatePrefix+id)
	}
	for _, list := range s.lists() {
		for i, name := range *list.names {
			if list.what != "" {
				f.OneOf(jsonpos.Path{list.field, i}, list.what, name, known[list.what]...)
			}
		}
	}
	if len(c.models) > 0 && s.ModelID == "" {
		f.Value(jsonpos.Path{"model_id"}, "name a model; known: %s", jsonpos.Listed(c.models))
	} else if len(c.models) > 0 {
		f.OneOf(jsonpos.Path{"model_id"}, "model", s.ModelID, c.models...)
	}
	for i, stop := range s.StopConditions {
		if stop.Type == StopTypeStopOnTool {
			f.OneOf(jsonpos.Path{"stop_conditions", i, "tool"}, "tool", stop.Tool, known["tool"]...)
		}
	}
	sections := c.decode(s, f)
	if err := f.err(); err != nil {
		return nil, err
	}
	return sections, nil
}

func (c *catalog) decode(s AgentSpec, f *faults) map[string]any {
	at := jsonpos.Path{"sections"}
	known := slices.Sorted(maps.Keys(c.sections))
	for _, name := range slices.Sorted(maps.Keys(s.Sections)) {
		if info, ok := c.sections[name]; !ok {
			f.NoSuch(at.To(name), "section", name, known)
		} else if !s.uses(info.plugin) {
			f.Name(at.To(name), "the section belongs to plugin %q, which plugin_ids does not list", info.plugin)
		}
	}
	decoded := make(map[string]any, len(known))
	for _, name := range known {
		info := c.sections[name]
		raw, given := s.Sections[name]
		// The settings of a plugin that nobody asked for need not be complete.
		check := given || s.Active(info.plugin)
		decoded[name] = info.key.decode(f, at.To(name), info.plugin, raw, check)
	}
	return decoded
}
