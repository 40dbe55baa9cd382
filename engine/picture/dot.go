package picture

import (
	"fmt"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
)

// DOT returns the manifest as a directed graph in the language of Graphviz: the phases
// in order, each with the hooks and gates on it, and the keys that plugins register and
// hooks declare. Keys that hooks could fight over and parts of inactive plugins stand
// out.
func DOT(m engine.Manifest) string {
	g := graph{keys: map[string]string{}, fought: fought(m)}
	g.line("digraph manifest {")
	g.line("  rankdir=LR")
	g.line(`  node [fontname="sans-serif", fontsize=11]`)
	g.line(`  edge [fontname="sans-serif", fontsize=9]`)
	for p := range phase.All() {
		g.line("  phase%d [shape=box, style=\"rounded,filled\", fillcolor=\"#dbe7f5\", label=%s]", p, quote(p.String()))
	}
	for p := phase.RunStart; p < phase.RunEnd; p++ {
		g.line("  phase%d -> phase%d [weight=10]", p, p+1)
	}
	g.line("  phase%d -> phase%d [label=\"next step\", constraint=false]", phase.StepEnd, phase.StepStart)
	var ranks []string
	for p := range phase.All() {
		ranks = append(ranks, fmt.Sprintf("phase%d", p))
	}
	g.line("  { rank=same; %s }", strings.Join(ranks, "; "))
	for i, p := range m.Plugins {
		g.plugin(fmt.Sprintf("p%d", i), p)
	}
	g.line("}")
	return g.text.String()
}

// graph numbers the nodes, since names may hold anything.
type graph struct {
	text   strings.Builder
	keys   map[string]string // node by key name
	fought map[string]bool
}

func (g *graph) plugin(id string, p engine.PluginManifest) {
	style := when(!p.Active, ", style=dashed")
	for _, k := range p.Keys {
		g.key(k.Name)
	}
	for i, h := range p.Hooks {
		node := fmt.Sprintf("%sh%d", id, i)
		unknown := when(len(h.Writes) == 0 && !h.Silent, "declares no writes")
		g.line("  %s [shape=box%s, label=%s]", node, style, quote(h.ID, fmt.Sprintf("tier %d", h.Tier), unknown))
		g.line("  phase%d -> %s [arrowhead=none]", h.Phase, node)
		for _, k := range h.Reads {
			key := g.key(k) // first, as a node is drawn where it is met
			g.line("  %s -> %s [dir=back, style=dashed, label=\"read by\"%s]", node, key, g.edge(k))
		}
		for _, k := range h.Writes {
			key := g.key(k)
			g.line("  %s -> %s [label=\"writes\"%s]", node, key, g.edge(k))
		}
	}
	for i, at := range p.Gates {
		node := fmt.Sprintf("%sg%d", id, i)
		g.line("  %s [shape=hexagon%s, label=%s]", node, style, quote(at.ID, list("on action ", at.Action), when(at.Policy, "policy")))
		g.line("  phase%d -> %s [arrowhead=none]", at.Phase, node)
	}
}

// key returns the node of a key, drawing it when it is first met.
func (g *graph) key(name string) string {
	node, drawn := g.keys[name]
	if !drawn {
		node = fmt.Sprintf("k%d", len(g.keys))
		g.keys[name] = node
		g.line("  %s [shape=cylinder%s, label=%s]", node, when(g.fought[name], `, penwidth=3, color="#c0392b"`), quote(name))
	}
	return node
}

func (g *graph) edge(key string) string {
	return when(g.fought[key], `, penwidth=2, color="#c0392b"`)
}

func (g *graph) line(format string, args ...any) {
	fmt.Fprintf(&g.text, format+"\n", args...)
}

// quote writes the lines of a label that are not empty as a string of the language. In
// one a backslash begins an escape, and & may begin an entity.
func quote(label ...string) string {
	var lines []string
	for _, l := range label {
		if l != "" {
			lines = append(lines, dotEscapes.Replace(oneLine(l)))
		}
	}
	return `"` + strings.Join(lines, `\n`) + `"`
}

var dotEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "&", "&amp;")
