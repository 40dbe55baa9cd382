// Package pushseq is about values that are pushed while work goes on. Of turns a
// function that pushes into a sequence that a loop pulls from; breaking out of the
// loop stops the work.
//
//	for v, err := range pushseq.Of(ctx, work, pushseq.Causes{}) {
//		...
//	}
//
// A Tap lets somebody else look on. A Feed is for a consumer that is a function: it gets the values in order, beside
// the work, which waits for it only so long.
//
//	feed := pushseq.NewFeed(watch, 64, time.Second)
//	feed.Push(v)
//	feed.Rouse()
//	feed.Shut()
//	feed.Join(time.Now())
//
// A Relay passes them on to any number of functions in the goroutines of those who have
// the values, and a Pile keeps them until somebody takes them all. A Line works on them one
// at a time, in an order of theirs. Map and Keys make another sequence of one.
//
// It imports the standard library only.
package pushseq
