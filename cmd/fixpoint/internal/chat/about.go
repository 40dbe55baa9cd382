package chat

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/ddd26017/fixpoint/engine"
)

// help writes the commands of the agent.
func (s *Session) help(b *strings.Builder) error {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for c := range s.commands.All() {
		from := ""
		if c.Plugin() != Name {
			from = " (" + c.Plugin() + ")"
		}
		if _, err := fmt.Fprintf(w, "%s\t%s%s\n", c.Usage(), c.Description(), from); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	b.WriteString("\nEverything else is a prompt; // begins one with a slash, and a space in front keeps it out of\n" +
		"the history. Tab completes, Alt-Enter breaks the line, Ctrl-C cancels, Ctrl-D leaves.\n")
	return nil
}

// tools writes the tools that plugins bring for the agent.
func (s *Session) tools(b *strings.Builder) error {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	found := false
	for _, p := range s.eng.Describe().For(s.agent).Plugins {
		for _, t := range p.Tools {
			if !p.Active || !offered(s.agent, t.Name) {
				continue
			}
			found = true
			if _, err := fmt.Fprintf(w, "%s\t%s\t%s\n", t.Name, cmp.Or(t.Kind, "-"), t.Description); err != nil {
				return err
			}
		}
	}
	if !found {
		b.WriteString("none")
	}
	return w.Flush()
}

// offered reports whether the lists of a spec leave a tool to its agent.
func offered(spec engine.AgentSpec, tool string) bool {
	fits := func(names, patterns []string) bool {
		return slices.Contains(names, tool) || slices.ContainsFunc(patterns, func(p string) bool {
			ok, err := path.Match(p, tool)
			return ok && err == nil
		})
	}
	all := len(spec.AllowedTools)+len(spec.AllowedToolPatterns) == 0
	return (all || fits(spec.AllowedTools, spec.AllowedToolPatterns)) && !fits(spec.ExcludedTools, spec.ExcludedToolPatterns)
}

// plugins writes the manifest in short.
func (s *Session) plugins(b *strings.Builder) error {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, p := range s.eng.Describe().For(s.agent).Plugins {
		active := "active"
		if !p.Active {
			active = "-"
		}
		var brings []string
		for _, part := range []struct {
			what string
			n    int
		}{
			{"key", len(p.Keys)}, {"hook", len(p.Hooks)}, {"gate", len(p.Gates)}, {"action", len(p.Actions)}, {"effect", len(p.Effects)},
			{"transform", p.Transforms}, {"tool", len(p.Tools)}, {"section", len(p.Sections)}, {"command", len(p.Extras)},
		} {
			if part.n == 1 {
				brings = append(brings, "1 "+part.what)
			} else if part.n > 1 {
				brings = append(brings, fmt.Sprintf("%d %ss", part.n, part.what))
			}
		}
		if _, err := fmt.Fprintf(w, "%s\t%s\t%s\n", p.Name, active, cmp.Or(strings.Join(brings, ", "), "nothing")); err != nil {
			return err
		}
	}
	return w.Flush()
}
