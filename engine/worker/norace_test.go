//go:build !race

package worker_test

// How much go test tries.
const standardSeeds = 100
