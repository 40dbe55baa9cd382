package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func Example() {
	main()
	// Output:
	// {"A":2,"B":3} is 5
	// done natural 1 <nil>
}

// The README shows this program as it is.
func TestREADMEHoldsThisProgram(t *testing.T) {
	program, err := os.ReadFile("main.go")
	require.NoError(t, err)
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme), "```go\n"+string(program)+"```")
}
