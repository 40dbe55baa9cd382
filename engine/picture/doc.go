// Package picture shows what the plugins of an engine registered: as text, as a
// drawing, and as a report of what its hooks could fight over, before anything runs.
//
//	m := eng.Describe()
//	fmt.Print(picture.Text(m))
//
// Text lists every part, Mermaid draws phases, hooks, gates and keys. Names may hold
// anything: what would break a line, steer a terminal or mean something to the language
// of a drawing is made harmless.
//
// All functions are pure: the same manifest gives the same bytes, and they may be called
// from many goroutines.
package picture
