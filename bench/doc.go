// Package bench holds the scenarios that Fixpoint is measured with and the
// baselines that they are measured against.
//
// Every benchmark has its baseline beside it, as a sub-benchmark of the same
// function, so that both run in one process:
//
//	go test -run '^$' -bench . -count 10 ./bench | tee new.txt
//	benchstat -col /impl new.txt
//
// Only ratios within one run and the allocation counts mean anything: absolute
// times depend on the machine and on what else it does. Names are key=value
// pairs, impl=fixpoint beside impl=errgroup, impl=loop and so on:
//
//	errgroup   spawn and join of as many empty closures: what any fan-out costs
//	loop       the same work by hand, without the engine
//	atomic     one load of an atomic pointer
//	map        a Go map that is copied for each change, so that old views stay valid
package bench
