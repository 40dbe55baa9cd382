// Package recording is the model of what happened in runs: it takes in the events of
// runs that go on, or the traces that were written of them, and says who wrote a value
// and why a tool call went as it did.
//
//	rec := recording.New("night shift")
//	eng, err := engine.New(engine.Config{Observers: []engine.Observer{rec}, Plugins: plugins})
//	...
//	why, err := rec.Explain(recording.Query{Key: "board", Entry: "door"})
//	fmt.Println(why) // who wrote it, in which phase and round, over what, and who lost
//
// A trace that is a file is given to [Recording.Add], line by line.
//
// [Recording.Explain] is about a key, or an entry of one, at a revision, [Recording.Why]
// about a tool call, and [Recording.State] puts the state of a thread at a revision
// together. Their answers are data, and texts of plain sentences in which nothing that
// comes from outside can steer a terminal. [Recording.View] is all that is known, for a
// page or a report, and [Recording.Since] what changed in it. What is told later, such as
// how the retry of a conflict went, changes what is known of earlier things, too.
//
// A recording needs memory in proportion to its events and takes in each in little time,
// whatever came before. It keeps what the events say of values, which the rules of
// package trace have cut or hidden; to forget, drop it and make a new one.
//
// What is not known is not made up. A span whose end was not told stays open, or is of
// status "unknown" once it cannot be open any more. Events that are missing are counted
// and noted, and an explanation says which revisions the recording knows nothing of and
// what could be different with them. It knows the values of a transient key from its
// updates only, since no export has them.
//
// The same events give the same recording, and those of runs that go on at the same time
// may come in any order between each other.
package recording
