package storetest

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

// Fixture is an empty store that is open, and what the kit may do with it.
type Fixture struct {
	// Journal is the store. The kit may close it; the opener registers its own cleanup.
	Journal store.Journal

	// Reopen closes the store, unless the kit did, and opens it again with what it kept.
	// Nil: nothing outlives a Close.
	Reopen func(t *testing.T) store.Journal

	// Advance moves the store's clock forward. Nil: the store has the real clock, and
	// the kit waits for it where it has to.
	Advance func(d time.Duration)

	// Child calls Serve on the same store in another process, with in as its standard
	// input and out as its standard output, and returns when the process has ended. It
	// must not be nil where Caps.MultiProcess is set; then the store has the real clock. In
	// ends when the kit has no more jobs; exec.Cmd.WaitDelay lets a child that died be
	// noticed before that.
	Child func(ctx context.Context, in io.Reader, out io.Writer) error

	// Break cuts all connections of Journal to its server, or does what else makes calls
	// that are under way fail, and returns at once. The store gets over it by itself, and
	// errors are allowed until it has. The kit calls it at random moments. Nil: there is
	// nothing to cut.
	Break func()
}

// Opener makes a fixture. Each call makes a store of its own.
type Opener func(t *testing.T) Fixture

// Run runs the whole kit as subtests. It takes a few seconds for a store that syncs.
func Run(t *testing.T, open Opener) {
	t.Helper()
	probe := open(t).Journal
	_, leases := probe.(store.Leaser)
	_, outbox := probe.(store.Outbox)
	_, queue := probe.(store.Queue)
	_, notifier := probe.(store.Notifier)
	caps := probe.Caps()

	group := func(name string, wanted bool, tests []test) {
		if !wanted {
			t.Logf("the store has no %s: those tests are left out", name)
			return
		}
		t.Run(name, func(t *testing.T) {
			for _, test := range tests {
				t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
			}
		})
	}
	group("journal", true, journalTests)
	group("history", true, pruneTests)
	group("race", true, raceTests)
	group("unknown", true, unknownTests)
	group("model", true, modelTests)
	group("bytes", true, byteTests)
	group("close", true, closeTests)
	group("processes", caps.MultiProcess, processTests)
	group("size limit", caps.MaxBytes > 0, sizeTests)
	group("leases", leases, leaseTests)
	group("outbox", outbox, outboxTests)
	group("queue", queue, queueTests)
	group("notices", notifier, noticeTests)
	group("connections to cut", open(t).Break != nil, breakTests)
	group("durability", open(t).Reopen != nil, durableTests)
}

type test struct {
	name string
	run  func(t *testing.T, f Fixture)
}

// wait lets time pass for the store.
func (f Fixture) wait(d time.Duration) {
	if f.Advance != nil {
		f.Advance(d)
		return
	}
	<-time.After(d + 5*time.Millisecond)
}

// ttl returns a time to live that does not run out by itself during a test, and one
// that the kit can wait for.
func (f Fixture) ttl() (long, short time.Duration) {
	return time.Hour, 50 * time.Millisecond
}
