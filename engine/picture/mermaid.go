package picture

import (
	"fmt"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
)

// Mermaid returns the manifest as a flowchart in the Mermaid language: the
// phases in order, the hooks and gates on each, and the keys that the hooks
// declare. Keys that hooks could fight over and parts of inactive plugins stand
// out.
func Mermaid(m engine.Manifest) string {
	d := diagram{keys: map[string]string{}, fought: fought(m)}
	for p := range phase.All() {
		d.node(phaseNode(p), stadium, "", p.String())
	}
	for p := phase.RunStart; p < phase.RunEnd; p++ {
		d.edge(phaseNode(p), "-->", "", phaseNode(p+1))
	}
	d.edge(phaseNode(phase.StepEnd), "-->", "next step", phaseNode(phase.StepStart))
	for i, p := range m.Plugins {
		d.plugin(fmt.Sprintf("p%d", i), p)
	}
	d.class("fought", "stroke-width:3px")
	d.class("inactive", "stroke-dasharray:4 4")
	return d.String()
}

// fought returns the names of the keys that hooks could fight over.
func fought(m engine.Manifest) map[string]bool {
	keys := map[string]bool{}
	for _, c := range m.Conflicts {
		keys[c.Key] = true
	}
	return keys
}

// diagram numbers the nodes, since names may hold anything.
type diagram struct {
	flowchart
	keys   map[string]string // node by key name
	fought map[string]bool
}

func (d *diagram) plugin(id string, p engine.PluginManifest) {
	class := when(!p.Active, "inactive")
	for _, k := range p.Keys {
		d.key(k.Name)
	}
	for i, h := range p.Hooks {
		node := fmt.Sprintf("%sh%d", id, i)
		d.node(node, boxed, class, h.ID, fmt.Sprintf("tier %d", h.Tier))
		d.edge(phaseNode(h.Phase), "---", "", node)
		for _, k := range h.Reads {
			d.edge(d.key(k), "-.->", "read by", node)
		}
		for _, k := range h.Writes {
			d.edge(node, "-->", "writes", d.key(k))
		}
	}
	for i, g := range p.Gates {
		node := fmt.Sprintf("%sg%d", id, i)
		d.node(node, hexagon, class, g.ID, when(g.Policy, "policy"))
		d.edge(phaseNode(g.Phase), "---", "", node)
	}
}

// key returns the node of a key, drawing it when it is first met.
func (d *diagram) key(name string) string {
	node, drawn := d.keys[name]
	if !drawn {
		node = fmt.Sprintf("k%d", len(d.keys))
		d.keys[name] = node
		d.node(node, cylinder, when(d.fought[name], "fought"), name)
	}
	return node
}

// phaseNode is a number too: "end" in a node's name is a word of the language.
func phaseNode(p phase.Phase) string { return fmt.Sprintf("phase%d", uint8(p)) }
