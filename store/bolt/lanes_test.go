package bolt_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/store"
	"github.com/ddd26017/fixpoint/store/bolt"
)

// fill appends commits of effects to a thread.
func fill(t *testing.T, j *bolt.Journal, thread string, base uint64, lanes ...string) store.EffectRef {
	c := store.Commit{ID: [16]byte{1, byte(base)}, Thread: thread, Base: base, Time: time.Date(2029, 1, 1, 0, 0, 0, 0, time.UTC)}
	for _, lane := range lanes {
		c.Effects = append(c.Effects, store.Effect{Lane: lane, Body: []byte("body")})
	}
	revision, err := j.Append(t.Context(), c)
	require.NoError(t, err)
	return store.EffectRef{Thread: thread, Revision: revision}
}

// What lanes cost does not follow from what is in them. Allocations are counted, so no
// other test may run beside it.
func TestLanesSeek(t *testing.T) {
	j := open(t, newPath(t), bolt.Options{NoSync: true})
	const lanes = 10
	cost := func() float64 {
		return testing.AllocsPerRun(5, func() {
			names, err := j.Lanes(t.Context(), "")
			require.NoError(t, err)
			require.Len(t, names, lanes)
		})
	}
	var all []string
	for n := range lanes {
		all = append(all, fmt.Sprint("lane ", n))
	}
	fill(t, j, "t", 0, all...)
	few := cost()
	for base := range uint64(20) {
		var many []string
		for n := range 200 {
			many = append(many, all[n%lanes])
		}
		fill(t, j, "t", base+1, many...)
	}
	require.Less(t, cost(), 3*few, "allocations with 400 effects a lane and with one")
}

// A file of a version that did not write since when an effect that is ready is due tells
// by its commit.
func TestOldestOfOldFiles(t *testing.T) {
	t.Parallel()
	c, path := newClock(), newPath(t)
	j := open(t, path, bolt.Options{Now: c.Now})
	ref := fill(t, j, "t", 0, "mail")
	require.NoError(t, j.ForgetDue(ref))
	fill(t, j, "t", 1, "mail")
	require.NoError(t, j.Close())
	_, err := bolt.Verify(path, bolt.Options{})
	require.NoError(t, err)

	j = open(t, path, bolt.Options{Now: c.Now})
	depth, err := j.Depth(t.Context(), "mail")
	require.NoError(t, err)
	require.Equal(t, store.Depth{Due: 2, Oldest: time.Date(2029, 1, 1, 0, 0, 0, 0, time.UTC)}, depth)

	// Without the commit's record nobody knows, and the other is the oldest known.
	_, err = j.Append(t.Context(), store.Commit{ID: [16]byte{9}, Thread: "t", Base: 2, Snapshot: []byte("x")})
	require.NoError(t, err)
	require.NoError(t, j.Prune(t.Context(), "t", store.PrunePolicy{KeepSnapshots: 1}))
	depth, err = j.Depth(t.Context(), "mail")
	require.NoError(t, err)
	require.Equal(t, store.Depth{Due: 2, Oldest: c.Now()}, depth)
	claims, err := j.Claim(t.Context(), "mail", "w", 10, time.Hour)
	require.NoError(t, err)
	require.Len(t, claims, 2)
}

// An effect and its index that do not fit are damage, which is found before anything is
// made of it.
func TestRequeueOfDamage(t *testing.T) {
	t.Parallel()
	j := open(t, newPath(t), bolt.Options{})
	ref := fill(t, j, "t", 0, "mail")
	claims, err := j.Claim(t.Context(), "mail", "w", 1, time.Hour)
	require.NoError(t, err)
	require.NoError(t, j.Settle(t.Context(), claims[0], store.Settlement{Dead: true}))
	require.NoError(t, j.Unindex(ref))
	require.ErrorIs(t, j.Requeue(t.Context(), ref), store.ErrCorrupt)
	dead, err := j.Dead(t.Context(), "mail", 10)
	require.NoError(t, err)
	require.Empty(t, dead)
}
