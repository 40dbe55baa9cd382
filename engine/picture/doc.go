// Package picture shows what the plugins of an engine registered: as text, as a
// drawing, and as a report of what its hooks could fight over, before anything runs.
//
//	m := eng.Describe().For(spec)
//	fmt.Print(picture.Conflicts(m, nil))
//
// Text lists every part. Mermaid, DOT and SVG draw phases, hooks, gates and keys; SVG
// needs no other program. Conflicts reports what could happen by what hooks declare, and
// with an Observed also by what they were seen to do:
//
//	var seen picture.Observed
//	config.Observers = append(config.Observers, &seen)
//
// Names may hold anything: what would break a line, steer a terminal or mean something
// to the language of a drawing is made harmless.
//
// The same manifest and observations give the same bytes. All functions may be called
// from many goroutines.
package picture
