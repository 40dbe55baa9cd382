package engine

import (
	"fmt"
	"strings"

	"github.com/ddd26017/fixpoint/phase"
)

// Mermaid returns the manifest as a flowchart in the Mermaid language: the
// phases in order, the hooks and gates on each, and the keys that the hooks
// declare. Keys that hooks could fight over and parts of inactive plugins stand
// out.
func (m Manifest) Mermaid() string {
	d := diagram{keys: map[string]string{}, fought: map[string]bool{}}
	for _, c := range m.Conflicts {
		d.fought[c.Key] = true
	}
	d.line("flowchart TD")
	for p := range phase.All() {
		d.line("    %s([\"%s\"])", phaseNode(p), p)
	}
	for p := range phase.All() {
		if p < phase.RunEnd {
			d.line("    %s --> %s", phaseNode(p), phaseNode(p+1))
		}
	}
	d.line("    %s -->|next step| %s", phaseNode(phase.StepEnd), phaseNode(phase.StepStart))
	for i, p := range m.Plugins {
		d.plugin(fmt.Sprintf("p%d", i), p)
	}
	d.line("    classDef fought stroke-width:3px")
	d.line("    classDef inactive stroke-dasharray:4 4")
	return d.text.String()
}

// diagram numbers the nodes, since names may hold anything.
type diagram struct {
	text   strings.Builder
	keys   map[string]string // node by key name
	fought map[string]bool
}

func (d *diagram) line(format string, args ...any) {
	fmt.Fprintf(&d.text, format+"\n", args...)
}

func (d *diagram) plugin(id string, p PluginManifest) {
	class := when(!p.Active, ":::inactive")
	for _, k := range p.Keys {
		d.key(k.Name)
	}
	for i, h := range p.Hooks {
		node := fmt.Sprintf("%sh%d", id, i)
		d.line("    %s[\"%s<br/>tier %d\"]%s", node, label(h.ID), h.Tier, class)
		d.line("    %s --- %s", phaseNode(h.Phase), node)
		for _, k := range h.Reads {
			d.line("    %s -.->|read by| %s", d.key(k), node)
		}
		for _, k := range h.Writes {
			d.line("    %s -->|writes| %s", node, d.key(k))
		}
	}
	for i, g := range p.Gates {
		node := fmt.Sprintf("%sg%d", id, i)
		d.line("    %s{{\"%s%s\"}}%s", node, label(g.ID), when(g.Policy, "<br/>policy"), class)
		d.line("    %s --- %s", phaseNode(phase.ToolGate), node)
	}
}

// key returns the node of a key, drawing it when it is first met.
func (d *diagram) key(name string) string {
	node, drawn := d.keys[name]
	if !drawn {
		node = fmt.Sprintf("k%d", len(d.keys))
		d.keys[name] = node
		d.line("    %s[(\"%s\")]%s", node, label(name), when(d.fought[name], ":::fought"))
	}
	return node
}

// phaseNode is a number too: "end" in a node's name is a word of the language.
func phaseNode(p phase.Phase) string { return fmt.Sprintf("phase%d", uint8(p)) }

var labelEscapes = strings.NewReplacer(
	"#", "#35;", "&", "#amp;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "`", "#96;", "\\", "#92;", "%", "#37;",
)

// label writes a name so that neither Mermaid nor the page that it ends up on
// reads anything into it.
func label(name string) string { return labelEscapes.Replace(oneLine(name)) }
