package drawing

import (
	"fmt"
	"strings"
)

// Shape is the outline of a node.
type Shape string

// The shapes.
const (
	Box      Shape = "[%s]"
	Stadium  Shape = "([%s])"
	Hexagon  Shape = "{{%s}}"
	Cylinder Shape = "[(%s)]"
)

// Flowchart is a chart in the Mermaid language, from top to bottom. The zero
// Flowchart is empty and ready. It must not be copied, and is not safe for
// concurrent use.
//
// Ids, links, classes and styles are written as they are and must be plain words
// of the language; labels may hold anything.
type Flowchart struct{ text strings.Builder }

// Node draws a node with the lines of its label that are not empty. The class is
// one of Class, or "".
func (c *Flowchart) Node(id string, s Shape, class string, label ...string) {
	var lines []string
	for _, l := range label {
		if l != "" {
			lines = append(lines, labelEscapes.Replace(oneLine(l)))
		}
	}
	text := `"` + strings.Join(lines, "<br/>") + `"`
	c.line("%s"+string(s)+"%s", id, text, When(class != "", ":::"+class))
}

// Edge draws a link such as --> between two nodes, with a label or "".
func (c *Flowchart) Edge(from, link, label, to string) {
	c.line("%s %s%s %s", from, link, When(label != "", "|"+label+"|"), to)
}

// Class says how the nodes of a class look, as CSS.
func (c *Flowchart) Class(name, style string) { c.line("classDef %s %s", name, style) }

// String returns the chart.
func (c *Flowchart) String() string { return "flowchart TD\n" + c.text.String() }

func (c *Flowchart) line(format string, args ...any) {
	fmt.Fprintf(&c.text, "    "+format+"\n", args...)
}

// labelEscapes write a name so that neither Mermaid nor the page that it ends up
// on reads anything into it.
var labelEscapes = strings.NewReplacer(
	"#", "#35;", "&", "#amp;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "`", "#96;", "\\", "#92;", "%", "#37;",
)
