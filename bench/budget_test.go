//go:build !race

package bench_test

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/bench"
)

// budgets are the most allocations that a row's work may make each time. They do not
// depend on the machine, so they hold what the ratios show. The race detector adds
// allocations of its own; this file is left out there. Lower a number when the work
// makes fewer; raise one only with a reason beside it.
//
// What they are, as profiles show them (-only work -memprofile of the report):
//
//   - 6 that every phase with a hook makes: the report, the context that the hooks read,
//     the update that a hook returns, and three of the commit (the snapshot, its list of
//     slots, the stamp)
//   - P1 and P2: an update for each hook, which is also the new value's cell; 4 for a
//     fan-out (its state, what tells that it is over, and two closures), and a list of
//     slots for each 16 keys that are written
//   - P3: the same with a smaller commit, since only one value is written
//   - P4: for each of the 7 hooks that run again 7: its conflict, another context and
//     update, and a commit with its three, of which one is the list of the batches' fates;
//     and 5 for a goroutine that they run on
//   - P5: for each round about 15: the list of what is pending, the action with its boxed
//     payload and its entry in the queue, the context, the command's second part, the
//     updates, the report, and a commit that writes the queue's slice, what remembers the
//     entry that left, and three keys
//   - P7: none, since reads make none
var budgets = []struct {
	row    string
	allocs float64
}{
	{"P1/hooks=64", 79},
	{"P2/hooks=8", 18},
	{"P2/hooks=1", 6},
	{"P3/hooks=64", 74},
	{"P4/hooks=8", 71},
	{"P5/rounds=16", 244},
	{"P7/read=snapshot", 0},
	{"P7/read=key", 0},
}

func TestAllocationBudgets(t *testing.T) {
	works := map[string]bench.Work{}
	for _, r := range bench.Rows() {
		works[r.Key()] = r.Work
	}
	for _, budget := range budgets {
		t.Run(budget.row, func(t *testing.T) {
			require.Contains(t, works, budget.row)
			var allocs float64
			require.NoError(t, works[budget.row](func(step func(int) error) (failed error) {
				allocs = math.Inf(1)
				for range 5 { // what a collection or the scheduler adds now and then does not count
					allocs = min(allocs, testing.AllocsPerRun(100, func() { failed = errors.Join(failed, step(1)) }))
				}
				return failed
			}))
			t.Logf("%.0f allocations", allocs)
			require.LessOrEqual(t, allocs, budget.allocs)
		})
	}
}
