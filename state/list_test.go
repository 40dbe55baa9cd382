package state_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/state"
)

// A property: however appends come, in pieces of any size, repeated, with other lists
// grown from the same ones meanwhile, each list keeps what it was made of.
func TestLogsThatGrowFromEachOther(t *testing.T) {
	for seed := range uint64(20) {
		dice := rand.New(rand.NewPCG(seed, 2))
		clone := func(v []int) []int { return slices.Clone(v) }
		log := state.NewLog("log", state.Options[[]int]{Clone: clone})
		schema, err := state.NewSchema(log)
		require.NoError(t, err)
		type grown struct {
			store *state.Store
			want  [][]int
		}
		type kept struct {
			list state.List[[]int]
			want [][]int
		}
		var stores []*grown
		var olds []kept
		for range 3 {
			store, err := state.NewStore(state.Config{Schema: schema})
			require.NoError(t, err)
			stores = append(stores, &grown{store: store})
		}
		for i := range 120 {
			more := make([][]int, 1+dice.IntN(3))
			if dice.IntN(20) == 0 {
				more = make([][]int, 1+dice.IntN(70))
			}
			for j := range more {
				more[j] = []int{i, j}
			}
			update, want := log.Append(more...), [][]int{}
			for j := range more {
				want = append(want, []int{i, j})
				more[j][0] = -1 // the caller's own again
			}
			for range 1 + dice.IntN(3) { // one update, in several places and more than once
				g := stores[dice.IntN(len(stores))]
				switch list := log.Get(g.store.Snapshot()); {
				case dice.IntN(30) == 0:
					commit(t, g.store, log.Replace(more...), log.Reset(), update)
					g.want = want
				case dice.IntN(4) == 0:
					// A branch beside the log, longer than what the log has next.
					mine := clones(more)
					olds = append(olds, kept{list.Append(mine...), slices.Concat(g.want, clones(more))})
					mine[0][0] = -4
					clear(mine)
					fallthrough
				default:
					commit(t, g.store, update)
					g.want = slices.Concat(g.want, want)
				}
				olds = append(olds, kept{log.Get(g.store.Snapshot()), g.want})
			}
			for _, item := range log.Get(stores[0].store.Snapshot()).Tail(2) {
				item[0] = -2 // a copy
			}
			for _, item := range update.Arg().([][]int) {
				item[0] = -3 // one too
			}
		}
		for _, old := range olds {
			require.Equal(t, len(old.want), old.list.Len())
			require.Equal(t, append([][]int{}, old.want...), old.list.Slice())
			if n := len(old.want); n > 0 {
				require.Equal(t, old.want[n-1], old.list.At(n-1))
			}
		}
	}
}

func clones(items [][]int) (own [][]int) {
	for _, item := range items {
		own = append(own, slices.Clone(item))
	}
	return own
}

// What a commit appends to a long log is saved as that, and not as the whole log again.
func TestLongLogsAreSavedInPieces(t *testing.T) {
	log := state.NewLog("log", state.Options[int]{})
	whole := 0
	store, err := state.NewStore(state.Config{Keys: []state.AnyKey{log}, Persist: func(_ *state.Snapshot, d state.Delta, _ []any) error {
		for _, e := range d.Entries {
			var items []int
			if e.Part == state.PartWhole {
				if err := json.Unmarshal(e.Raw, &items); err != nil {
					return err
				}
				whole += len(items)
			}
		}
		return nil
	}})
	require.NoError(t, err)
	for i := range 1000 {
		commit(t, store, log.Append(i))
	}
	require.Less(t, whole, 64, "elements saved with those that were there")
}

// An update can be committed again, elsewhere and in one batch with itself, whatever its
// size, and no state sees another's values.
func TestUpdatesAreValues(t *testing.T) {
	small := state.NewKey("small", state.KeyConfig[int, int]{Apply: func(v, u int) int { return v + u }})
	large := state.NewKey("large", state.KeyConfig[int, [9]int]{Apply: func(v int, u [9]int) int { return v + u[8] }})
	a, b := newStore(t, small, large), newStore(t, small, large)
	updates := []state.Update{small.With(1), large.With([9]int{8: 1})}
	var snaps []*state.Snapshot
	for range 5 {
		snaps = append(snaps, commit(t, a, slices.Concat(updates, updates)...))
		commit(t, b, updates...)
	}
	for i, snap := range snaps {
		require.Equal(t, []int{2 * (i + 1), 2 * (i + 1)}, []int{small.Get(snap), large.Get(snap)}, fmt.Sprint(i))
	}
	require.Equal(t, []int{5, 5}, []int{small.Get(b.Snapshot()), large.Get(b.Snapshot())})
}

// A state keeps its values and not the updates that they were made with.
func TestStatesLetGoOfUpdates(t *testing.T) {
	type order struct {
		note *[1 << 10]byte
		n    [4]int
	}
	sum := state.NewKey("sum", state.KeyConfig[int, order]{Shared: true, Apply: func(v int, u order) int { return v + u.n[0] }})
	store := newStore(t, sum)
	note := func() weak.Pointer[[1 << 10]byte] {
		big := new([1 << 10]byte)
		commit(t, store, sum.With(order{big, [4]int{1}}))
		return weak.Make(big)
	}()
	commit(t, store, state.Update{}) // the draft of a commit is used again
	runtime.GC()
	require.Nil(t, note.Value())
	require.Equal(t, 1, sum.Get(store.Snapshot()))
}
