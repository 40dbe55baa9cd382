// Package recording is the model of what happened in runs: it takes in the events of a
// run that goes on, or of traces that were written, and says who wrote a value and why a
// tool call went as it did.
//
//	rec := recording.New("night shift")
//	eng, err := engine.New(engine.Config{Observers: []engine.Observer{rec}, Plugins: plugins})
//	...
//	why, err := rec.Explain(recording.Query{Key: "board", Entry: "door"})
//	fmt.Println(why) // who wrote it, in which phase and round, over what, and who lost
//
// For a trace that is a file, give its lines to [Recording.Add].
//
// [Recording.View] is all that is known as data, for a page or a report, and
// [Recording.Since] what changed in it. A recording needs memory in proportion to its
// events, and a moment for each, whatever came before.
//
// What is not known is not made up: a span whose end was not told stays open, events
// that are missing are counted and noted, and an explanation says when it could be
// different with them.
package recording
