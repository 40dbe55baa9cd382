//go:build race

package sim_test

// How much go test tries; the race detector makes each world about ten times as slow.
const (
	standardSeeds   = 250
	standardReplays = 8
	crashedSeeds    = 1
)
