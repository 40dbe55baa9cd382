package screening

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"

	"github.com/ddd26017/fixpoint/engine"
)

// Mode says what becomes of a result in which something was found.
type Mode string

// The modes.
const (
	Off   Mode = "off"
	Warn  Mode = "warn"
	Block Mode = "block"
)

func (m Mode) validate() error {
	if m != Off && m != Warn && m != Block {
		return fmt.Errorf("screening: mode is %q; use off, warn or block", m)
	}
	return nil
}

// Settings is the content of the section.
type Settings struct {
	// Mode is for tools that no entry of Tools matches. The default is Warn.
	Mode Mode `json:"mode"`
	// Tools sets the mode by tool; the first match counts.
	Tools []ToolMode `json:"tools"`
	// Patterns are looked for besides the built-in rules.
	Patterns []Pattern `json:"patterns"`
	// Without lists the built-in rules that are not wanted.
	Without []string `json:"without"`
}

// ToolMode is the mode for some tools.
type ToolMode struct {
	Match string `json:"match"` // a pattern of tool names, as path.Match takes it
	Mode  Mode   `json:"mode"`
}

// Pattern is a rule of the user's own.
type Pattern struct {
	Name   string   `json:"name"`
	Regexp string   `json:"regexp"` // as package regexp takes it
	Tools  []string `json:"tools"`  // patterns of tool names, as path.Match takes them; empty means all
}

// Section is the section that holds the settings.
var Section = engine.NewConfigKey(Name, engine.ConfigOptions[Settings]{
	Default: func() Settings { return Settings{Mode: Warn} },
	Check:   Settings.Validate,
})

// mostPatterns and longestPattern bound what a result is compared with.
const (
	mostPatterns   = 100
	longestPattern = 1000
)

// Validate returns what is wrong with the settings, or nil.
func (s Settings) Validate() error {
	errs := []error{s.Mode.validate()}
	for _, t := range s.Tools {
		errs = append(errs, t.Mode.validate(), validatePattern("tools", t.Match))
	}
	names := Rules()
	for _, name := range s.Without {
		if !slices.Contains(names, name) {
			errs = append(errs, fmt.Errorf("screening: without has %q, which is no rule; there are %q", name, names))
		}
	}
	if len(s.Patterns) > mostPatterns {
		errs = append(errs, fmt.Errorf("screening: there are %d patterns; want at most %d", len(s.Patterns), mostPatterns))
	}
	for _, p := range s.Patterns {
		if p.Name == "" || slices.Contains(names, p.Name) {
			errs = append(errs, fmt.Errorf("screening: a pattern has the name %q; each needs one that no other and no rule has", p.Name))
		}
		names = append(names, p.Name)
		if p.Regexp == "" || len(p.Regexp) > longestPattern {
			errs = append(errs, fmt.Errorf("screening: pattern %q has a regexp of %d bytes; want 1 to %d", p.Name, len(p.Regexp), longestPattern))
		} else if _, err := regexp.Compile(p.Regexp); err != nil {
			errs = append(errs, fmt.Errorf("screening: pattern %q: %w", p.Name, err))
		}
		for _, tool := range p.Tools {
			errs = append(errs, validatePattern("pattern "+p.Name, tool))
		}
	}
	return errors.Join(errs...)
}

func validatePattern(of, pattern string) error {
	if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
		return fmt.Errorf("screening: %s: %q is no pattern of tool names as path.Match takes it", of, pattern)
	}
	return nil
}

// of returns the mode for a tool.
func (s Settings) of(tool string) Mode {
	for _, t := range s.Tools {
		if matches(t.Match, tool) {
			return t.Mode
		}
	}
	return s.Mode
}

func (p Pattern) covers(tool string) bool {
	return len(p.Tools) == 0 || slices.ContainsFunc(p.Tools, func(pattern string) bool { return matches(pattern, tool) })
}

func matches(pattern, tool string) bool {
	ok, _ := path.Match(pattern, tool) // Validate refused malformed patterns
	return ok
}
