package enginetest_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/enginetest"
)

// fakeT stands in for a test whose failures are looked at.
type fakeT struct {
	ctx      context.Context //nolint:containedctx // as every testing.T has one
	faults   []string
	logs     []string
	cleanups []func()
}

// try runs a test in its own goroutine, with its clean-ups, and returns what it
// said.
func try(ctx context.Context, test func(t enginetest.TB)) *fakeT {
	ctx, cancel := context.WithCancel(ctx)
	t := &fakeT{ctx: ctx}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			cancel()
			for _, clean := range slices.Backward(t.cleanups) {
				clean()
			}
		}()
		test(t)
	}()
	<-done
	return t
}

func (t *fakeT) text() string             { return strings.Join(t.faults, "\n") }
func (t *fakeT) Helper()                  {}
func (t *fakeT) Name() string             { return "fake" }
func (t *fakeT) Failed() bool             { return len(t.faults) > 0 }
func (t *fakeT) Cleanup(fn func())        { t.cleanups = append(t.cleanups, fn) }
func (t *fakeT) Context() context.Context { return t.ctx }

func (t *fakeT) Logf(format string, args ...any) {
	t.logs = append(t.logs, fmt.Sprintf(format, args...))
}

func (t *fakeT) Errorf(format string, args ...any) {
	t.faults = append(t.faults, fmt.Sprintf(format, args...))
}

func (t *fakeT) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	runtime.Goexit()
}
