package engine

import (
	"path"
	"slices"
)

// permitsTool reports whether the spec's lists offer a tool: it is allowed by name
// or pattern, or nothing is, and it is not excluded by either.
func (s AgentSpec) permitsTool(name string) bool {
	allowed := len(s.AllowedTools)+len(s.AllowedToolPatterns) == 0 ||
		slices.Contains(s.AllowedTools, name) || matchesAny(s.AllowedToolPatterns, name)
	return allowed && !slices.Contains(s.ExcludedTools, name) && !matchesAny(s.ExcludedToolPatterns, name)
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return ok && err == nil // the patterns were checked with the spec
	})
}
