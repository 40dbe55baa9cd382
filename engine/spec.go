package engine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/internal/jsonpos"
)

// DefaultMaxRounds is the number of steps after which a run stops when its spec
// does not say.
const DefaultMaxRounds = 25

// ToolExecution says how the tool calls of one step run. The zero value means
// ToolsSequential.
type ToolExecution string

// The ways.
const (
	// ToolsSequential runs one call after the other; each sees the state that the
	// one before left.
	ToolsSequential ToolExecution = "sequential"
	// ToolsParallel runs all calls at the same time on one snapshot.
	ToolsParallel ToolExecution = "parallel"
)

// AgentSpec describes an agent as plain data. Make one in Go, or read one with
// ParseSpec; the same rules hold for both, but only the errors about a spec that
// was read have positions.
//
// An engine takes a deep copy, so changing a spec later changes no engine. A
// spec may be read by many goroutines at once.
type AgentSpec struct {
	// ID names the agent. It is required and unique per engine.
	ID          string `json:"id"`
	Description string `json:"description,omitempty"`
	// ModelID names the model to ask; "" means the engine's default.
	ModelID      string `json:"model_id,omitempty"`
	SystemPrompt string `json:"system_prompt,omitempty"`
	// MaxRounds bounds the steps of a run; 0 means DefaultMaxRounds.
	MaxRounds int `json:"max_rounds,omitempty"`
	// StopConditions end a run early; the first that holds does.
	StopConditions []StopCondition `json:"stop_conditions,omitempty"`
	// ReasoningEffort is the same as Params.ReasoningEffort; set one of the two.
	ReasoningEffort inference.Opt[inference.Effort] `json:"reasoning_effort,omitzero"`
	// Params are the model parameters that overrides are laid over.
	Params        inference.Params `json:"params,omitzero"`
	ToolExecution ToolExecution    `json:"tool_execution,omitempty"`
	// PluginIDs lists the plugins that the agent may use; empty means all.
	PluginIDs []string `json:"plugin_ids,omitempty"`
	// ActiveHookFilter lists the plugins whose behavioural parts (hooks, gates,
	// policies, transforms, tools) are active; empty means all.
	ActiveHookFilter []string `json:"active_hook_filter,omitempty"`
	// AllowedTools and AllowedToolPatterns list the tools that the model is
	// offered, by name and by path.Match pattern. When both are empty, all are.
	AllowedTools        []string `json:"allowed_tools,omitempty"`
	AllowedToolPatterns []string `json:"allowed_tool_patterns,omitempty"`
	// ExcludedTools and ExcludedToolPatterns take tools away again.
	ExcludedTools        []string `json:"excluded_tools,omitempty"`
	ExcludedToolPatterns []string `json:"excluded_tool_patterns,omitempty"`
	// Delegates lists the agents that this one may hand work to, each by a tool of its
	// own, DelegatePrefix and the agent's id. They work on threads of their own, under
	// the gates and token budgets of the run that called them besides their own, and in
	// the background if the call asks for it.
	Delegates []string `json:"delegates,omitempty"`
	// Sections holds the settings of plugins by section name; see ConfigKey.
	Sections map[string]inference.JSON `json:"sections,omitempty"`

	source specSource // zero for a spec made in Go
}

// Active reports whether the behavioural parts of that plugin are active for
// the agent.
func (s AgentSpec) Active(plugin string) bool {
	return s.uses(plugin) && (len(s.ActiveHookFilter) == 0 || slices.Contains(s.ActiveHookFilter, plugin))
}

func (s AgentSpec) uses(plugin string) bool {
	return len(s.PluginIDs) == 0 || slices.Contains(s.PluginIDs, plugin)
}

// Parameters returns the model parameters with the reasoning effort in its place.
func (s AgentSpec) Parameters() inference.Params {
	p := s.Params
	if s.ReasoningEffort.IsSet() {
		p.ReasoningEffort = s.ReasoningEffort
	}
	return p
}

// Clone returns a copy that shares nothing that can be changed.
func (s AgentSpec) Clone() AgentSpec {
	s.StopConditions = slices.Clone(s.StopConditions)
	for _, list := range s.lists() {
		*list.names = slices.Clone(*list.names)
	}
	s.Sections = maps.Clone(s.Sections)
	return s
}

// specText is AgentSpec without its methods, for encoding/json.
type specText AgentSpec

// MarshalJSON writes the spec in its canonical form, which ParseSpec reads back
// to an equal spec: members in a fixed order, unset ones left out, sections
// compact and sorted. A section that is not JSON is an error.
func (s AgentSpec) MarshalJSON() ([]byte, error) {
	s.Sections = maps.Clone(s.Sections)
	for name, raw := range s.Sections {
		c, err := raw.Canonical()
		if err != nil {
			return nil, fmt.Errorf("engine: section %q of agent %q: %w", name, s.ID, err)
		}
		s.Sections[name] = c
	}
	text, err := inference.ToJSON(specText(s))
	return []byte(text), err
}

// UnmarshalJSON reads what ParseSpec reads, as strictly. Its errors have no
// positions, because it cannot tell where in its text the spec begins.
func (s *AgentSpec) UnmarshalJSON(text []byte) error {
	read, f := readSpec("", jsonpos.Parse(text))
	for _, fault := range f.Faults() {
		fault.Line, fault.Column = 0, 0
	}
	if err := f.err(); err != nil {
		return err
	}
	read.source = specSource{}
	*s = read
	return nil
}

// nameList is a field that is a list of names.
type nameList struct {
	field string
	names *[]string
	what  string // they name; "" for patterns
}

// lists returns the fields that are lists of names, in the order of the form.
func (s *AgentSpec) lists() []nameList {
	return []nameList{
		{"plugin_ids", &s.PluginIDs, "plugin"},
		{"active_hook_filter", &s.ActiveHookFilter, "plugin"},
		{"allowed_tools", &s.AllowedTools, "tool"},
		{"allowed_tool_patterns", &s.AllowedToolPatterns, ""},
		{"excluded_tools", &s.ExcludedTools, "tool"},
		{"excluded_tool_patterns", &s.ExcludedToolPatterns, ""},
		{"delegates", &s.Delegates, "agent"},
	}
}
