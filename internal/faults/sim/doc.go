// Package sim runs whole worlds of engines on one faulty store, deterministically.
//
// A seed makes a world: a store in memory behind a faultstore, one to three processes
// with an engine each, that run, answer, fork and cancel the same threads, while
// the store fails, hangs, answers twice and crashes, processes die in the middle of
// an append and are replaced, pause beyond their leases, and see clocks that jump.
// Beside them a ledger keeps what was acknowledged and what landed; whatever
// contradicts it is a violation. After the faults one last process must bring every
// thread to its end and deliver every effect.
//
// A world lives in a bubble of testing/synctest, so it needs no real time:
//
//	synctest.Test(t, func(*testing.T) { report = sim.Run(seed, sim.Options{}) })
//
// # Replay
//
// Everything that is decided at random is a function of the seed and of what is
// decided about, never of a shared generator. Each process touches the store and the
// ledger only in its own time slots, some nanoseconds apart from those of the others,
// so that there is one order of events per seed, for any scheduling of goroutines.
// The same seed leaves the same bytes in the journal; only commit ids differ.
//
//	go test -run TestSimulation ./internal/faults/sim                        # 2,000 seeds
//	FIXPOINT_SEEDS=100000 go test -timeout 0 -run TestSimulation ./internal/faults/sim
//	FIXPOINT_SEED=123 go test -v -run TestSimulation ./internal/faults/sim   # one, with its story
package sim
