//go:build !race

package trace_test

// encodedSeeds is how many seeds TestEncoderIsDetailed makes events from.
const encodedSeeds = 60
