//go:build race

package enginetest_test

// timings is how many times TestOneEventSequenceWhateverTheTiming runs its scenario; the
// race detector makes each run about ten times as slow.
const timings = 60
