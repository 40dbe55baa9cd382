package picture

import (
	"fmt"
	"strings"
)

// shape is the outline of a node.
type shape string

const (
	boxed    shape = "[%s]"
	stadium  shape = "([%s])"
	hexagon  shape = "{{%s}}"
	cylinder shape = "[(%s)]"
)

// flowchart is a chart in the Mermaid language, from top to bottom. The zero
// flowchart is empty and ready.
//
// Ids, links, classes and styles are written as they are and must be plain words
// of the language; labels may hold anything.
type flowchart struct{ text strings.Builder }

// node draws a node with the lines of its label that are not empty. The class is
// one of class, or "".
func (c *flowchart) node(id string, s shape, class string, label ...string) {
	var lines []string
	for _, l := range label {
		if l != "" {
			lines = append(lines, mermaidEscapes.Replace(oneLine(l)))
		}
	}
	text := `"` + strings.Join(lines, "<br/>") + `"`
	c.line("%s"+string(s)+"%s", id, text, when(class != "", ":::"+class))
}

// edge draws a link such as --> between two nodes, with a label or "".
func (c *flowchart) edge(from, link, label, to string) {
	c.line("%s %s%s %s", from, link, when(label != "", "|"+label+"|"), to)
}

// class says how the nodes of a class look, as CSS.
func (c *flowchart) class(name, style string) { c.line("classDef %s %s", name, style) }

// String returns the chart.
func (c *flowchart) String() string { return "flowchart TD\n" + c.text.String() }

func (c *flowchart) line(format string, args ...any) {
	fmt.Fprintf(&c.text, "    "+format+"\n", args...)
}

// mermaidEscapes write a name so that neither Mermaid nor the page that it ends up
// on reads anything into it.
var mermaidEscapes = strings.NewReplacer(
	"#", "#35;", "&", "#amp;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "`", "#96;", "\\", "#92;", "%", "#37;",
)
