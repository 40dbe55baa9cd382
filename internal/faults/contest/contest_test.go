package contest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/faults/contest"
)

// Each revision of a thread has one winner, however many try.
func TestContest(t *testing.T) {
	t.Parallel()
	for store, commits := range map[string]int{"memstore": 3000, "bolt": 400} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			f, err := contest.Run(t.Context(), t.TempDir(), contest.Plan{Store: store, Commits: commits, Seed: 1})
			require.NoError(t, err)
			require.NoError(t, f.Err())
			t.Log(f)
			f.Beaten = 0
			require.Error(t, f.Err(), "a contest without rivals shows nothing")
		})
	}
}
