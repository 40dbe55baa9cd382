//go:build !race

package enginetest_test

// timings is how many times TestOneEventSequenceWhateverTheTiming runs its scenario.
const timings = 200
