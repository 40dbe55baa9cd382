package sim_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/faults/sim"
)

// enough is how many seeds it may take to find a mistake.
const enough = 40

// The simulation can fail: it finds each of these mistakes of a store within a few
// seeds.
func TestMutantsAreFound(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(sim.Mutants)) {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed <= enough; seed++ {
				r := world(t, seed, sim.Options{}.WithMutant(sim.Mutants[name]))
				if len(r.Violations) > 0 {
					t.Logf("found by seed %d: %s", seed, r.Violations[0])
					return
				}
			}
			t.Fatalf("not found in %d seeds", enough)
		})
	}
}

// Without faults, nothing is wrong, nobody is refused and everything comes to its end
// on its own.
func TestCalmWorlds(t *testing.T) {
	var all sim.Stats
	for seed := range uint64(20) {
		r := world(t, seed, sim.Options{Calm: true})
		require.Empty(t, r.Violations, "seed %d", seed)
		all.Add(r.Stats)
	}
	require.Zero(t, all.Repeats+all.StoreCrashes+all.Deaths)
	require.Positive(t, all.Natural)
}

// The same seed makes the same world: the same journal, but for the ids of commits,
// the same counts and the same violations. FIXPOINT_REPLAYS is how many seeds are tried.
func TestReplay(t *testing.T) {
	for seed := range number(t, "FIXPOINT_REPLAYS", standardReplays) {
		first := world(t, seed, sim.Options{})
		for range 2 {
			again := world(t, seed, sim.Options{})
			require.Equal(t, first.Journal, again.Journal, "seed %d", seed)
			require.Equal(t, first.Stats, again.Stats, "seed %d", seed)
			require.Equal(t, first.Violations, again.Violations, "seed %d", seed)
		}
	}
}

// Capability A14. A process that dies at any of its appends, before or after the
// store has it, and a store that does, leave a thread that goes on where it was.
func TestCrashAtEveryAppend(t *testing.T) {
	points := 0
	for seed := uint64(1); seed <= crashedSeeds; seed++ {
		n := world(t, seed, sim.Options{}.CrashAt(0, false)).Stats.Acked
		require.Positive(t, n)
		for at := 1; at <= n; at++ {
			for name, o := range map[string]sim.Options{
				"the process dies before it":      sim.Options{}.CrashAt(at, false),
				"the process dies after it":       sim.Options{}.CrashAt(at, true),
				"the store crashes, one or other": sim.Options{}.StoreCrashAt(at),
			} {
				r := world(t, seed, o)
				require.Empty(t, r.Violations, "seed %d, append %d: %s", seed, at, name)
				points++
			}
		}
	}
	t.Logf("%d crashes", points)
}
