//go:build race

package worker_test

// How much go test tries; the race detector makes each world about ten times as slow.
const standardSeeds = 30
