package engine

import (
	"fmt"

	"github.com/ddd26017/fixpoint/internal/drawing"
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
	for p := range phase.All() {
		d.Node(phaseNode(p), drawing.Stadium, "", p.String())
	}
	for p := phase.RunStart; p < phase.RunEnd; p++ {
		d.Edge(phaseNode(p), "-->", "", phaseNode(p+1))
	}
	d.Edge(phaseNode(phase.StepEnd), "-->", "next step", phaseNode(phase.StepStart))
	for i, p := range m.Plugins {
		d.plugin(fmt.Sprintf("p%d", i), p)
	}
	d.Class("fought", "stroke-width:3px")
	d.Class("inactive", "stroke-dasharray:4 4")
	return d.String()
}

// diagram numbers the nodes, since names may hold anything.
type diagram struct {
	drawing.Flowchart
	keys   map[string]string // node by key name
	fought map[string]bool
}

func (d *diagram) plugin(id string, p PluginManifest) {
	class := drawing.When(!p.Active, "inactive")
	for _, k := range p.Keys {
		d.key(k.Name)
	}
	for i, h := range p.Hooks {
		node := fmt.Sprintf("%sh%d", id, i)
		d.Node(node, drawing.Box, class, h.ID, fmt.Sprintf("tier %d", h.Tier))
		d.Edge(phaseNode(h.Phase), "---", "", node)
		for _, k := range h.Reads {
			d.Edge(d.key(k), "-.->", "read by", node)
		}
		for _, k := range h.Writes {
			d.Edge(node, "-->", "writes", d.key(k))
		}
	}
	for i, g := range p.Gates {
		node := fmt.Sprintf("%sg%d", id, i)
		d.Node(node, drawing.Hexagon, class, g.ID, drawing.When(g.Policy, "policy"))
		d.Edge(phaseNode(g.Phase), "---", "", node)
	}
}

// key returns the node of a key, drawing it when it is first met.
func (d *diagram) key(name string) string {
	node, drawn := d.keys[name]
	if !drawn {
		node = fmt.Sprintf("k%d", len(d.keys))
		d.keys[name] = node
		d.Node(node, drawing.Cylinder, drawing.When(d.fought[name], "fought"), name)
	}
	return node
}

// phaseNode is a number too: "end" in a node's name is a word of the language.
func phaseNode(p phase.Phase) string { return fmt.Sprintf("phase%d", uint8(p)) }
