// Package drawing writes facts about named things for people: as an outline, or as
// a flowchart in the Mermaid language. Names may hold anything; what would break a
// line, steer a terminal or mean something to Mermaid or HTML is made harmless.
//
//	var o drawing.Outline
//	o.Head("plugin audit")
//	o.Line("hook audit/step_end/0", drawing.When(slow, "slow"))
//
// It imports the standard library only.
package drawing
