package bench_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/bench"
)

// The table has every target, in order, and no two rows of one name.
func TestRowsAreComplete(t *testing.T) {
	var ids []string
	keys := map[string]bool{}
	for _, r := range bench.Rows() {
		if len(ids) == 0 || ids[len(ids)-1] != r.ID {
			ids = append(ids, r.ID)
		}
		require.False(t, keys[r.Key()], "two rows are called %s", r.Key())
		keys[r.Key()] = true
		for part := range strings.SplitSeq(r.Key()[len(r.ID)+1:], "/") {
			require.Regexp(t, `^[a-z]+=[a-z0-9]+$`, part, r.Key())
		}
		require.NotEmpty(t, r.Name)
		require.NotEmpty(t, r.Baseline)
		require.Regexp(t, `^[a-z]+$`, r.Impl)
		require.NotNil(t, r.Work)
		require.GreaterOrEqual(t, r.Limit, 0.0)
		if r.Limit > 0 {
			require.NotNil(t, r.Base, "%s has a target and nothing to compare with", r.Key())
		}
	}
	want := make([]string, 12)
	for i := range want {
		want[i] = fmt.Sprintf("P%d", i+1)
	}
	require.Equal(t, want, ids)
}

// Every work and every baseline does what it says, at least once. The works check
// themselves: they return an error when a write, a step or an event is missing.
func TestWorksRun(t *testing.T) {
	for _, r := range bench.Rows() {
		for side, work := range map[string]bench.Work{"fixpoint": r.Work, r.Impl: r.Base} {
			if work == nil || r.Case == "runs=10000" {
				continue // that many runs are for the report; a test below has fewer
			}
			t.Run(r.Key()+"/impl="+side, func(t *testing.T) {
				called := false
				require.NoError(t, work(func(step func(int) error) error {
					called = true
					return step(1)
				}))
				require.True(t, called, "the work did not ask to be measured")
			})
		}
	}
}

func TestRunsRun(t *testing.T) {
	cores := runtime.GOMAXPROCS(0)
	for name, work := range map[string]bench.Work{"concurrent": bench.ConcurrentRuns(20), "serial": bench.SerialRuns(20)} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, work(func(step func(int) error) error { return step(2) }))
			require.Equal(t, cores, runtime.GOMAXPROCS(0), "the number of cores is as it was")
		})
	}
}

// A work is not done when its measure says that it failed.
func TestWorksReturnTheErrorOfMeasure(t *testing.T) {
	boom := errors.New("boom")
	for _, r := range bench.Rows() {
		for side, work := range map[string]bench.Work{"fixpoint": r.Work, r.Impl: r.Base} {
			if work != nil {
				require.ErrorIs(t, work(func(func(int) error) error { return boom }), boom, "%s impl=%s", r.Key(), side)
			}
		}
	}
}
