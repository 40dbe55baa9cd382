package faultstore_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/store"
	"github.com/ddd26017/fixpoint/store/faultstore"
	"github.com/ddd26017/fixpoint/store/memstore"
)

func TestFaultsOfTheQueue(t *testing.T) {
	t.Parallel()
	ctx, ref := t.Context(), store.EffectRef{Thread: "t", Revision: 1}
	for _, tt := range []struct {
		fault faultstore.Fault
		want  error
	}{{faultstore.FailBefore, faultstore.ErrInjected}, {faultstore.FailAfter, store.ErrUnknownOutcome}} {
		inner := memstore.New(memstore.Options{})
		_, err := inner.Append(ctx, store.Commit{ID: [16]byte{1}, Thread: "t", Effects: []store.Effect{{Lane: "mail"}}})
		require.NoError(t, err)
		claims, err := inner.Claim(ctx, "mail", "w", 1, time.Hour)
		require.NoError(t, err)
		require.NoError(t, inner.Settle(ctx, claims[0], store.Settlement{Dead: true}))

		faulty := over(t, inner, faultstore.Config{Rate: map[faultstore.Fault]float64{tt.fault: 1}})
		_, err = faulty.Lanes(ctx, "")
		require.ErrorIs(t, err, faultstore.ErrInjected)
		_, err = faulty.Depth(ctx, "mail")
		require.ErrorIs(t, err, faultstore.ErrInjected)
		_, err = faulty.Dead(ctx, "mail", 1)
		require.ErrorIs(t, err, faultstore.ErrInjected)
		_, err = faulty.Listen(ctx, "wake")
		require.ErrorIs(t, err, faultstore.ErrInjected)
		require.ErrorIs(t, faulty.Requeue(ctx, ref), tt.want)
		names, err := inner.Lanes(ctx, "")
		require.NoError(t, err)
		require.Equal(t, tt.fault == faultstore.FailAfter, len(names) == 1, "it was requeued")

		heard, err := inner.Listen(ctx, "wake")
		require.NoError(t, err)
		require.ErrorIs(t, faulty.Notify(ctx, "wake", []byte("x")), tt.want)
		require.Equal(t, tt.fault == faultstore.FailAfter, len(heard) == 1, "it was heard")
		require.Len(t, faulty.Trace(), 6)
	}
}

// A lost notice is one that nobody can tell from a slow one.
func TestLose(t *testing.T) {
	t.Parallel()
	lost := 0
	for seed := range uint64(20) {
		faulty := over(t, memstore.New(memstore.Options{}), faultstore.Config{Seed: seed, Rate: map[faultstore.Fault]float64{faultstore.Lose: 0.5}})
		heard, err := faulty.Listen(t.Context(), "wake")
		require.NoError(t, err)
		_, err = faulty.Append(t.Context(), commit(0))
		require.NoError(t, err)
		require.NoError(t, faulty.Notify(t.Context(), "wake", nil))
		lost += 1 - len(heard)
		require.Equal(t, 1-len(heard), faulty.Counts().Faults[faultstore.Lose])
	}
	require.Greater(t, lost, 0)
	require.Less(t, lost, 20)
}

func TestCrashEndsListeners(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := memstore.New(memstore.Options{})
		faulty := over(t, inner, faultstore.Config{At: map[int]faultstore.Fault{1: faultstore.Crash}})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		heard, err := faulty.Listen(ctx, "wake")
		require.NoError(t, err)
		_, err = faulty.Append(ctx, commit(0))
		require.ErrorIs(t, err, faultstore.ErrCrashed)
		_, open := <-heard
		require.False(t, open)
		_, err = faulty.Listen(ctx, "wake")
		require.ErrorIs(t, err, faultstore.ErrCrashed)

		faulty.Reopen(nil)
		heard, err = faulty.Listen(ctx, "wake")
		require.NoError(t, err)
		require.NoError(t, faulty.Notify(ctx, "wake", []byte("x")))
		require.Equal(t, "x", string(<-heard))
		require.NoError(t, faulty.Close())
		_, open = <-heard
		require.False(t, open)
	})
}

func TestStoreWithoutQueue(t *testing.T) {
	t.Parallel()
	faulty := over(t, plain{memstore.New(memstore.Options{})}, faultstore.Config{})
	_, err := faulty.Lanes(t.Context(), "")
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorIs(t, faulty.Requeue(t.Context(), store.EffectRef{}), errors.ErrUnsupported)
	require.ErrorIs(t, faulty.Notify(t.Context(), "wake", nil), errors.ErrUnsupported)
	_, err = faulty.Listen(t.Context(), "wake")
	require.ErrorIs(t, err, errors.ErrUnsupported)
}
