package engine

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Text returns the manifest for people to read: a block for each plugin, one
// line for each part, and then what could conflict.
func (m Manifest) Text() string {
	var b strings.Builder
	if m.Agent != "" {
		fmt.Fprintf(&b, "agent %s\n", oneLine(m.Agent))
	}
	for _, p := range m.Plugins {
		p.text(&b)
	}
	if len(m.Conflicts) > 0 {
		b.WriteString("could conflict\n")
	}
	for _, c := range m.Conflicts {
		line(&b, c.Phase.String(), fmt.Sprintf("tier %d", c.Tier), c.Merge.String()+" key "+c.Key,
			names("written by ", c.Hooks), names("read by ", c.Readers))
	}
	if len(m.Undeclared) > 0 {
		b.WriteString("declare no writes, so could conflict with any hook of their phase and tier\n")
	}
	for _, id := range m.Undeclared {
		line(&b, id)
	}
	return b.String()
}

func (p PluginManifest) text(b *strings.Builder) {
	fmt.Fprintf(b, "plugin %s%s\n", oneLine(p.Name), when(!p.Active, " (inactive)"))
	for _, k := range p.Keys {
		line(b, "key "+k.Name, k.Scope.String(), k.Merge.String())
	}
	for _, name := range p.ProfileKeys {
		line(b, "profile key "+name)
	}
	for _, name := range p.Sections {
		line(b, "section "+name)
	}
	for _, h := range p.Hooks {
		line(b, "hook "+h.ID, fmt.Sprintf("tier %d", h.Tier), prefixed("timeout ", h.Timeout),
			"on error "+h.OnError.String(), names("reads ", h.Reads), names("writes ", h.Writes))
	}
	for _, g := range p.Gates {
		line(b, "gate "+g.ID, when(g.Policy, "policy"), prefixed("timeout ", g.Timeout), when(g.FailOpen, "fails open"))
	}
	for _, a := range p.Actions {
		line(b, "action "+a.Name, "at "+a.Phase.String(), when(a.ReplaySafe, "replay-safe"))
	}
	for _, name := range p.Effects {
		line(b, "effect "+name)
	}
	if p.Transforms > 0 {
		line(b, "transforms "+strconv.Itoa(p.Transforms))
	}
	for _, t := range p.Tools {
		line(b, "tool "+t.Name, prefixed("kind ", t.Kind), t.Description)
	}
}

// line writes the facts that are not empty, indented and separated.
func line(b *strings.Builder, facts ...string) {
	lead := "  "
	for _, fact := range facts {
		if fact != "" {
			b.WriteString(lead + oneLine(fact))
			lead = "; "
		}
	}
	b.WriteByte('\n')
}

func when(ok bool, fact string) string {
	if ok {
		return fact
	}
	return ""
}

func prefixed(lead, fact string) string { return when(fact != "", lead+fact) }

func names(lead string, list []string) string { return prefixed(lead, strings.Join(list, ", ")) }

// oneLine replaces what would break a line or steer a terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}
