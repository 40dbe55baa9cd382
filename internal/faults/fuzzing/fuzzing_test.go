package fuzzing_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/faults/fuzzing"
)

// The targets are tests of their packages; this reads what go test says of them.
func TestReadOutput(t *testing.T) {
	const list = "FuzzA\nFuzzB\nok  \texample.org/one\t0.01s\nok  \texample.org/none\t0.01s\nFuzzC\nok  \texample.org/two\t0.02s\n"
	require.Equal(t, []fuzzing.Figures{
		{Package: "example.org/one", Target: "FuzzB"}, {Package: "example.org/two", Target: "FuzzC"},
	}, fuzzing.ReadList(list, regexp.MustCompile("B|C")))

	const output = "fuzz: elapsed: 0s, gathering baseline coverage: 0/7 completed\nfuzz: elapsed: 3s, execs: 100 (33/sec)\nfuzz: elapsed: 5s, execs: 250 (50/sec), new interesting: 2\n"
	require.Equal(t, 250, fuzzing.ReadRuns(output))
	require.Zero(t, fuzzing.ReadRuns("ok"))

	require.True(t, fuzzing.OnlyLate(output+"--- FAIL: FuzzA (5.01s)\n    context deadline exceeded\n"))
	require.False(t, fuzzing.OnlyLate(output+"--- FAIL: FuzzA (5.01s)\n    a_test.go:7: wrong\n    context deadline exceeded\n"))
	require.False(t, fuzzing.OnlyLate(output+"panic: no"))
}
