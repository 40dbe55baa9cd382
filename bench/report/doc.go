// Package report measures the rows of package bench and prints what came of them: a
// table, a drawing of it and its numbers as JSON.
//
// Both sides of a row run in one process, in slices of some ms that alternate. What
// counts is the ratio within a pair of slices: a machine that is slow for a while is
// slow for both. The ratio of a row is the median of its pairs. Garbage is collected
// before each slice, outside of its time. What is kept in memory is measured three times
// over 10,000 things, first of the one side and then of the other.
//
//	go run ./bench/cmd/report -rows P1,P10 -svg docs/performance.svg
//
// A command of another module can add rivals: see Main.
package report
