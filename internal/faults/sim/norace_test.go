//go:build !race

package sim_test

// How much go test tries.
const (
	standardSeeds   = 2000
	standardReplays = 60
	crashedSeeds    = 3
)
