// Package faultstore puts a faulty connection between an engine and its store, to
// test what an engine does when a store fails, answers late or not at all, or dies.
//
//	store, err := faultstore.New(memstore.New(memstore.Options{}), faultstore.Config{
//		Seed: 7,
//		Rate: map[faultstore.Fault]float64{faultstore.FailBefore: 0.1, faultstore.FailAfter: 0.1},
//	})
//
// The store behind it stays correct, so that after any faults its promises can be
// checked: no fork, and every acknowledged commit kept.
//
// # Replay
//
// Which fault strikes depends only on the seed, the operation, the thread (or lane, or topic)
// and on how often that operation was asked of that thread before. So a failure
// replays from its seed, also when threads are served at the same time. Callers that
// fight over one thread get the same faults in the same order, but which caller gets
// which is up to the scheduler; use testing/synctest or one goroutine to fix that too.
//
// Nothing here sleeps or looks at a clock. A commit that is to arrive late arrives
// just before a later call on its thread, or when Flush is called.
package faultstore
