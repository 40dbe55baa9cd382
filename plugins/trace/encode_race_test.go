//go:build race

package trace_test

// encodedSeeds is how many seeds TestEncoderIsDetailed makes events from; the race
// detector makes each about fifteen times as slow, and finds nothing in one goroutine.
const encodedSeeds = 24
