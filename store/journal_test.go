package store_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/store"
)

func TestLeaseHeld(t *testing.T) {
	err := &store.LeaseHeld{Thread: "t1", Owner: "ann", Until: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)}
	require.ErrorIs(t, err, store.ErrLeaseHeld)
	require.NotErrorIs(t, err, store.ErrConflict)
	require.EqualError(t, err, "store: thread t1 is leased to ann until 2030-01-02T03:04:05Z")
}

// A text that is read is the one that String writes, and no other spelling is read.
func FuzzParseEffectRef(f *testing.F) {
	for _, text := range []string{"", "/", "//", "t/1/2", "/0/0", "a/b/1/2", "t/01/2", "t/1/+2", "t/1/4294967296", "t/-1/0", "1/2"} {
		f.Add(text)
	}
	f.Add(store.EffectRef{Thread: "t", Revision: math.MaxUint64, Index: math.MaxUint32}.String())
	f.Fuzz(func(t *testing.T, text string) {
		ref, err := store.ParseEffectRef(text)
		if err != nil {
			require.Zero(t, ref)
			return
		}
		require.Equal(t, text, ref.String())
	})
}
