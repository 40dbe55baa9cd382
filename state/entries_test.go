package state_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/state"
)

// The model of a table is a Go map, and of when its entries changed another one that
// forgets nothing.
type tableModel struct {
	live     map[int]int
	changed  map[int]uint64
	reset    uint64 // revision of the last reset
	removals int    // how many deletions there were
}

func (m tableModel) clone() tableModel {
	m.live, m.changed = maps.Clone(m.live), maps.Clone(m.changed)
	return m
}

func (m tableModel) changedAt(k int) uint64 { return max(m.changed[k], m.reset) }

// remembered is how many deletions a table must know exactly.
const remembered = 64

var errTestCheck = errors.New("negative")

// playTable makes the commits that data encodes on a table and on the model, and
// compares them after each.
func playTable(t *testing.T, data []byte) {
	table := state.NewTable[int]("t", state.Options[int]{Check: func(_, v int) error {
		if v < 0 {
			return errTestCheck
		}
		return nil
	}})
	s := newStore(t, table)
	type version struct {
		snap *state.Snapshot
		tableModel
	}
	now := version{s.Snapshot(), tableModel{live: map[int]int{}, changed: map[int]uint64{}}}
	all := []version{now}
	for i := 0; i+2 < len(data); i += 3 {
		op, arg, more := data[i], int(data[i+1]), int(data[i+2])
		next := now.clone()
		var updates []state.Update
		put := func(k, v int) {
			updates = append(updates, table.Put(k, v))
			next.live[k], next.changed[k] = v, now.snap.Revision()+1
		}
		remove := func(k int) {
			updates = append(updates, table.Delete(k))
			delete(next.live, k)
			next.changed[k] = now.snap.Revision() + 1
			next.removals++
		}
		keys := slices.Sorted(maps.Keys(now.live))
		switch op % 8 {
		case 0, 1:
			put(arg, more)
		case 2:
			for k := range more % 40 { // behind the others
				put(1000*i+k, arg)
			}
		case 3:
			for _, k := range keys[:min(len(keys), more%24)] { // as from a queue
				remove(k)
			}
		case 4:
			remove(arg)
			put(more, arg)
		case 5:
			for _, k := range keys {
				if (k+arg)%3 == 0 {
					remove(k)
				}
			}
		case 6:
			if arg%16 == 0 {
				updates = append(updates, table.Reset())
				next.live, next.reset = map[int]int{}, now.snap.Revision()+1
			}
			put(more, arg)
		case 7: // taken back by the check
			_, err := s.Commit(state.Batch{Updates: []state.Update{table.Delete(arg), table.Delete(more), table.Put(arg, -1)}})
			require.ErrorIs(t, err, errTestCheck)
		}

		// Somebody who is late loses if the entry changed, and else hardly ever.
		late := all[(arg+more)%len(all)]
		r, err := s.Commit(state.Batch{Base: late.snap, Updates: []state.Update{table.Put(more, 7)}})
		require.NoError(t, err)
		if now.changedAt(more) > late.snap.Revision() {
			require.NotEmpty(t, r.Rejected, "entry %d changed at %d, after %d", more, now.changedAt(more), late.snap.Revision())
		} else if now.removals-late.removals <= remembered {
			require.Empty(t, r.Rejected, "entry %d changed at %d, before %d", more, now.changedAt(more), late.snap.Revision())
		}
		if r.Committed {
			now.snap, now.tableModel = r.Snapshot, now.clone()
			now.live[more], now.changed[more] = 7, r.Snapshot.Revision()
			all = append(all, now)
			continue
		}
		if len(updates) == 0 {
			continue
		}
		after := version{commit(t, s, updates...), next}
		require.Equal(t, diffOf(now.live, after.live, now.changed, after.changed, after.reset > now.snap.Revision()), diffs(now.snap, after.snap))
		now = after
		all = append(all, now)
	}
	for _, v := range all {
		require.Equal(t, len(v.live), table.Len(v.snap))
		keys := slices.Sorted(maps.Keys(v.live))
		require.Equal(t, keys, slices.Collect(keysOf(table.All(v.snap))))
		require.Equal(t, v.live, maps.Collect(table.All(v.snap)))
		from := len(v.live) * 7 % 256
		at, _ := slices.BinarySearch(keys, from)
		require.Equal(t, collect(slices.Values(keys[at:])), collect(keysOf(table.From(v.snap, from))))
		for k := range 256 {
			got, ok := table.Get(v.snap, k)
			want, has := v.live[k]
			require.Equal(t, want, got)
			require.Equal(t, has, ok)
			require.GreaterOrEqual(t, table.ChangedAt(v.snap, k), v.changedAt(k))
		}
	}
	dump, err := now.snap.Export()
	require.NoError(t, err)
	other := newStore(t, table)
	res, err := other.Import(dump, state.RefuseUnknown)
	require.NoError(t, err)
	require.Equal(t, now.live, maps.Collect(table.All(res.Snapshot)))
}

type entryDiff struct {
	entry, before, after int
	had, has             bool
}

func diffs(a, b *state.Snapshot) (out []entryDiff) {
	for c := range state.Diff(a, b) {
		d := entryDiff{entry: c.Entry.(int), had: c.Had, has: c.Has}
		d.before, _ = c.Before.(int)
		d.after, _ = c.After.(int)
		out = append(out, d)
	}
	return out
}

func diffOf(a, b map[int]int, changedA, changedB map[int]uint64, reset bool) (out []entryDiff) {
	both := maps.Clone(a)
	maps.Copy(both, b)
	for _, k := range slices.Sorted(maps.Keys(both)) {
		before, had := a[k]
		after, has := b[k]
		if had != has || changedA[k] != changedB[k] || reset && has {
			out = append(out, entryDiff{k, before, after, had, has})
		}
	}
	return out
}

func TestTablesOfAllSizesAgainstAModel(t *testing.T) {
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 1))
		data := make([]byte, 600)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		playTable(t, data)
	}
}

func FuzzTable(f *testing.F) {
	f.Add([]byte{2, 0, 39, 2, 0, 39, 2, 0, 39, 3, 0, 20, 3, 0, 20, 0, 3, 3, 5, 1, 1, 7, 2, 9, 3, 0, 23, 3, 0, 23, 6, 16, 5})
	f.Fuzz(func(t *testing.T, data []byte) {
		playTable(t, data[:min(len(data), 900)])
	})
}

// A table from which the first entries go, as from a queue, and one of which many
// drafts are made at once, share memory that each of them must leave to the others.
func TestMapsOfOneOriginAtOnce(t *testing.T) {
	var m state.Map[int, int]
	for i := range 100 {
		m = m.With(i, i)
	}
	done := make(chan map[int]int)
	for g := range 4 {
		go func() {
			own := m
			for i := range 90 {
				own = own.Without(i).With(1000*g+1000+i, g)
			}
			done <- maps.Collect(own.All())
		}()
	}
	for range 4 {
		got := <-done
		require.Len(t, got, 100)
		for i := 90; i < 100; i++ {
			require.Equal(t, i, got[i])
		}
	}
	require.Equal(t, 100, m.Len())
	require.Equal(t, 0, slices.Collect(keysOf(m.All()))[0])
}

// What later commits remember of deletions, in memory that they share with a sealed
// snapshot, is no change of its values.
func TestSealOfATableWithDeletions(t *testing.T) {
	table := state.NewTable[int]("t", state.Options[*int]{Shared: true})
	s := newStore(t, table)
	value := new(int)
	commit(t, s, table.Put(1, value), table.Put(2, value), table.Put(3, value))
	seal := state.SealSnapshot(commit(t, s, table.Delete(1)))
	commit(t, s, table.Delete(2))
	require.NoError(t, seal.Verify())
	*value = 7
	var changed *state.MutationError
	require.ErrorAs(t, seal.Verify(), &changed)
}
