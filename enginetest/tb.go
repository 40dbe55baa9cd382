package enginetest

import "context"

// TB is what this package needs of a test. Every testing.TB is one. It is an
// interface so that programs can use the rest of the package without package
// testing, and so that the checkers themselves can be tested.
type TB interface {
	Helper()
	Name() string
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	// Fatalf must not return.
	Fatalf(format string, args ...any)
	Failed() bool
	Cleanup(func())
	Context() context.Context
}
