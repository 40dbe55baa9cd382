package exechook

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// plainMatcher tells a list of exact names from a regular expression, as agents do:
// by the characters that are in it.
var plainMatcher = regexp.MustCompile(`^[A-Za-z0-9_\-, |]*$`)

// matcher says which tools, sources, reasons or agents a rule is about.
type matcher struct {
	all   bool
	names []string
	re    *regexp.Regexp
}

func newMatcher(pattern string) (m matcher, err error) {
	switch {
	case strings.TrimSpace(pattern) == "" || pattern == "*":
		m.all = true
	case plainMatcher.MatchString(pattern):
		for _, name := range strings.FieldsFunc(pattern, func(r rune) bool { return r == '|' || r == ',' }) {
			if name = strings.TrimSpace(name); name != "" {
				m.names = append(m.names, name)
			}
		}
		if len(m.names) == 0 {
			return m, fmt.Errorf("the matcher %q names nothing; use \"*\" for everything", pattern)
		}
	default:
		if m.re, err = regexp.Compile(pattern); err != nil {
			return m, fmt.Errorf("the matcher is no regular expression of Go's syntax (RE2, without lookaround): %w", err)
		}
	}
	return m, nil
}

// fits reports whether one of the names that a thing goes by is meant. A regular
// expression need not match all of it.
func (m matcher) fits(names ...string) bool {
	return m.all || slices.ContainsFunc(names, func(name string) bool {
		return m.re != nil && m.re.MatchString(name) || slices.Contains(m.names, name)
	})
}

// lonelyServer returns a name that looks as if all tools of an MCP server were meant,
// which it does not mean.
func (m matcher) lonelyServer() string {
	for _, name := range m.names {
		if server, ok := strings.CutPrefix(name, "mcp__"); ok && !strings.Contains(server, "__") {
			return name
		}
	}
	return ""
}
