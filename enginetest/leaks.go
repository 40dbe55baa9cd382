package enginetest

import (
	"bytes"
	"runtime"
	"strings"
	"time"
)

// leakPatience is how long goroutines may take to end after a test.
const leakPatience = 2 * time.Second

const modulePath = "github.com/ddd26017/fixpoint/"

// CheckLeaks fails the test when goroutines that the engine started, or that were
// started from tests of this module, are still there two seconds after its end.
// Call it first in the test, so that it looks last. It sees all goroutines of the
// process, so the test must not run in parallel with others.
//
// A hook or tool that ignores its context keeps its goroutine as long as it runs,
// which no engine can change; it counts as a leak.
func CheckLeaks(t TB) {
	t.Helper()
	before := goroutines()
	t.Cleanup(func() {
		var left []string
		for end := time.Now().Add(leakPatience); ; {
			left = left[:0]
			for id, stack := range goroutines() {
				if _, old := before[id]; !old {
					left = append(left, stack)
				}
			}
			if len(left) == 0 {
				return
			}
			if time.Now().After(end) {
				break
			}
			time.Sleep(time.Millisecond)
		}
		t.Errorf("enginetest: %d goroutines are left:\n%s", len(left), strings.Join(left, "\n\n"))
	})
}

// goroutines returns the stacks of the engine's goroutines by their headers' ids,
// without those of tests themselves.
func goroutines() map[string]string {
	out := map[string]string{}
	for i, stack := range strings.Split(stacks(), "\n\n") {
		// The first is the caller's own.
		if i == 0 || !strings.Contains(stack, modulePath) || strings.Contains(stack, "\ntesting.tRunner(") {
			continue
		}
		id, _, _ := strings.Cut(stack, " [")
		out[id] = stack
	}
	return out
}

func stacks() string {
	buf := make([]byte, 1<<16)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			return string(bytes.TrimSpace(buf[:n]))
		}
		buf = make([]byte, 2*len(buf))
	}
}
