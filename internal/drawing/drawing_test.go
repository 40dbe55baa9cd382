package drawing_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/drawing"
)

func ExampleOutline() {
	var o drawing.Outline
	o.Head("plugin audit")
	o.Line("hook audit/step_end/0", drawing.When(false, "slow"), drawing.List("reads ", "a", "b"))
	o.Lines("effect ", []string{"mail", "page"})
	fmt.Print(o.String())
	// Output:
	// plugin audit
	//   hook audit/step_end/0; reads a, b
	//   effect mail
	//   effect page
}

func ExampleFlowchart() {
	var c drawing.Flowchart
	c.Node("a", drawing.Stadium, "", "start")
	c.Node("b", drawing.Box, "odd", `a "quoted" name`, "", "second line")
	c.Edge("a", "-->", "leads to", "b")
	c.Class("odd", "stroke-width:3px")
	fmt.Print(c.String())
	// Output:
	// flowchart TD
	//     a(["start"])
	//     b["a #quot;quoted#quot; name<br/>second line"]:::odd
	//     a -->|leads to| b
	//     classDef odd stroke-width:3px
}

func TestNamesAreHarmless(t *testing.T) {
	var o drawing.Outline
	o.Head("a\nb")
	o.Line("c\x1b[2J", "\u202e")
	require.Equal(t, "a b\n  c [2J;  \n", o.String())

	var c drawing.Flowchart
	c.Node("n", drawing.Hexagon, "", "%s\n<b>&#35;`\\")
	require.Equal(t, "flowchart TD\n    n{{\"#37;s #lt;b#gt;#amp;#35;35;#96;#92;\"}}\n", c.String())
}

func TestEmptyFactsAreLeftOut(t *testing.T) {
	var o drawing.Outline
	o.Line("", drawing.List("reads "), drawing.List("timeout ", ""), "only")
	require.Equal(t, "  only\n", o.String())
	require.Equal(t, "flowchart TD\n", new(drawing.Flowchart).String())
}
