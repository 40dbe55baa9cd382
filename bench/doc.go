// Package bench holds the pieces of work that Fixpoint is measured by, each with the
// baseline that it is measured against and the target for the two.
//
// A Row is one line of that table; Rows returns them all, P1 to P12. Package
// bench/report measures them, and its command prints the table:
//
//	go run ./bench/cmd/report
//	go run ./bench/cmd/report -rows P1,P10 -only work -cpuprofile cpu.out
//
// It lets both sides of a row take turns in one process, since only ratios within one
// process and counts of allocations mean anything: absolute times depend on the machine
// and on what else it does. The command of bench/peers, a module of its own, prints the
// same table with other libraries doing the same work. The rows are benchmarks too:
//
//	go test -run '^$' -bench . -count 10 ./bench | tee new.txt
//	benchstat -col /impl new.txt
//
// There, names are key=value pairs, impl=fixpoint beside
//
//	impl=errgroup  spawn and join of as many closures: what any fan-out costs
//	impl=loop      the same work by hand, without the engine
//	impl=few, one  the same work on fewer things, or on one
//	impl=atomic    one load of an atomic pointer
//	impl=slice     values in a slice
//	impl=idle      the same while nothing else happens
//	impl=parts     the parts of a step, each alone
//	impl=serial    one run after another on one core
//
// A Work checks what it did, so that one that does not do what it says is an error and
// no number. What a work may allocate is held by a test of this package.
package bench
