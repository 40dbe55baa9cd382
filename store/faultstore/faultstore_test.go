package faultstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/store/faultstore"
	"github.com/ddd26017/fixpoint/store/memstore"
	"github.com/ddd26017/fixpoint/store/storetest"
)

func TestConformanceWithoutFaults(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Fixture {
		return storetest.Fixture{Journal: over(t, memstore.New(memstore.Options{MaxBytes: 1 << 20}), faultstore.Config{})}
	})
}

func over(t testing.TB, inner engine.Journal, c faultstore.Config) *faultstore.Store {
	store, err := faultstore.New(inner, c)
	require.NoError(t, err)
	return store
}

func commit(base uint64) engine.JournalCommit {
	return engine.JournalCommit{ID: [16]byte{1, byte(base)}, Thread: "t", Base: base, Record: []byte{1, byte(base)}}
}

func revision(t testing.TB, j engine.Journal) uint64 {
	image, err := j.Load(context.Background(), "t", 0)
	require.NoError(t, err)
	return image.Revision
}

func TestFaultsOfAnAppend(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		fault  faultstore.Fault
		errs   []error
		landed bool
		late   int // taken by the store when the rest arrives
	}{
		{faultstore.None, nil, true, 0},
		{faultstore.FailBefore, []error{faultstore.ErrInjected}, false, 0},
		{faultstore.FailAfter, []error{engine.ErrUnknownOutcome}, true, 0},
		{faultstore.Repeat, nil, true, 0},
		{faultstore.Delay, []error{engine.ErrUnknownOutcome}, false, 1},
		{faultstore.Stale, nil, true, 1},
	} {
		t.Run(tt.fault.String(), func(t *testing.T) {
			t.Parallel()
			inner := memstore.New(memstore.Options{})
			store := over(t, inner, faultstore.Config{At: map[int]faultstore.Fault{1: tt.fault}})
			c := commit(0)
			_, err := store.Append(t.Context(), c)
			if tt.errs == nil {
				require.NoError(t, err)
			}
			for _, want := range tt.errs {
				require.ErrorIs(t, err, want)
			}
			require.Equal(t, tt.landed, revision(t, inner) == 1)
			c.Record[0] = 9 // the caller may reuse its bytes
			require.Equal(t, tt.late, store.Flush(t.Context()))
			if tt.landed || tt.late > 0 {
				image, err := inner.Load(t.Context(), "t", 1)
				require.NoError(t, err)
				require.Equal(t, []byte{1, 0}, image.Tail[0].Record)
			}
		})
	}
}

// cancelling ends a context when it has passed on an append.
type cancelling struct {
	engine.Journal
	cancel func()
}

func (c cancelling) Append(ctx context.Context, commit engine.JournalCommit) (uint64, error) {
	defer c.cancel()
	return c.Journal.Append(ctx, commit)
}

// That one of two copies of an append came to nothing does not mean that the other did
// not land, so the outcome is unknown.
func TestOneOfTwoCopiesIsNotDone(t *testing.T) {
	t.Parallel()
	t.Run("repeat", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		inner := cancelling{memstore.New(memstore.Options{}), cancel}
		store := over(t, inner, faultstore.Config{At: map[int]faultstore.Fault{1: faultstore.Repeat}})
		_, err := store.Append(ctx, commit(0))
		require.ErrorIs(t, err, engine.ErrUnknownOutcome)
		require.ErrorIs(t, err, context.Canceled)
		require.EqualValues(t, 1, revision(t, inner))
	})
	t.Run("stale", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		inner := memstore.New(memstore.Options{})
		store := over(t, inner, faultstore.Config{At: map[int]faultstore.Fault{1: faultstore.Stale}})
		_, err := store.Append(ctx, commit(0))
		require.ErrorIs(t, err, engine.ErrUnknownOutcome)
		require.ErrorIs(t, err, context.Canceled)
		require.Zero(t, revision(t, inner))
		require.Equal(t, 1, store.Flush(t.Context()), "the late copy lands")
	})
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		store := over(t, memstore.New(memstore.Options{}), faultstore.Config{At: map[int]faultstore.Fault{1: faultstore.Stale}})
		_, err := store.Append(t.Context(), commit(7))
		require.ErrorIs(t, err, engine.ErrJournalConflict)
		require.NotErrorIs(t, err, engine.ErrUnknownOutcome)
	})
}

func TestNeverAnswer(t *testing.T) {
	t.Parallel()
	landed := map[bool]int{}
	for seed := range uint64(32) {
		synctest.Test(t, func(t *testing.T) {
			inner := memstore.New(memstore.Options{})
			store := over(t, inner, faultstore.Config{Seed: seed, Rate: map[faultstore.Fault]float64{faultstore.NeverAnswer: 1}})
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			start := time.Now()
			_, err := store.Append(ctx, commit(0))
			require.ErrorIs(t, err, engine.ErrUnknownOutcome)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, time.Hour, time.Since(start))
			landed[revision(t, inner) == 1]++

			hung := make(chan error)
			go func() {
				_, err := store.Load(context.Background(), "t", 0)
				hung <- err
			}()
			synctest.Wait()
			require.NoError(t, store.Close())
			require.ErrorIs(t, <-hung, engine.ErrJournalClosed)
		})
	}
	require.Len(t, landed, 2, "some land and some do not")
}

func TestCrashAtEveryAppend(t *testing.T) {
	t.Parallel()
	landed := map[bool]int{}
	for n := 1; n <= 20; n++ {
		inner := memstore.New(memstore.Options{})
		store := over(t, inner, faultstore.Config{Seed: uint64(n), At: map[int]faultstore.Fault{n: faultstore.Crash}})
		acked := uint64(0)
		for {
			_, err := store.Append(t.Context(), commit(acked))
			if err != nil {
				require.ErrorIs(t, err, faultstore.ErrCrashed)
				require.ErrorIs(t, err, engine.ErrUnknownOutcome)
				break
			}
			acked++
		}
		require.Equal(t, uint64(n-1), acked)
		landed[revision(t, inner) > acked]++

		ctx := t.Context()
		_, err := store.Append(ctx, commit(acked))
		require.ErrorIs(t, err, faultstore.ErrCrashed)
		require.NotErrorIs(t, err, engine.ErrUnknownOutcome)
		_, err = store.Load(ctx, "t", 0)
		require.ErrorIs(t, err, engine.ErrJournalClosed)
		_, err = store.Acquire(ctx, "t", "ann", 0)
		require.ErrorIs(t, err, faultstore.ErrCrashed)

		store.Reopen(nil)
		_, err = store.Append(ctx, commit(acked))
		require.NoError(t, err)
		require.Equal(t, uint64(n), revision(t, store))
	}
	require.Len(t, landed, 2, "some land and some do not")
}

// story runs the same calls on four threads and tells what came of each.
func story(t *testing.T, seed uint64, parallel bool) (map[string][]string, faultstore.Counts) {
	rates := map[faultstore.Fault]float64{}
	for _, f := range []faultstore.Fault{faultstore.FailBefore, faultstore.FailAfter, faultstore.Repeat, faultstore.Delay, faultstore.Stale} {
		rates[f] = 0.12
	}
	store := over(t, memstore.New(memstore.Options{}), faultstore.Config{Seed: seed, Rate: rates})
	told := make([][]string, 4)
	var group sync.WaitGroup
	for n := range told {
		run := func() {
			thread := fmt.Sprint("thread ", n)
			base := uint64(0)
			for range 40 {
				c := commit(base)
				c.Thread = thread
				revision, err := store.Append(context.Background(), c)
				if err == nil {
					base = revision
				}
				image, loadErr := store.Load(context.Background(), thread, 0)
				told[n] = append(told[n], fmt.Sprint(revision, err, image.Revision, loadErr))
			}
		}
		if parallel {
			group.Go(run)
		} else {
			run()
		}
	}
	group.Wait()
	all := map[string][]string{}
	for n := range told {
		all[fmt.Sprint(n)] = told[n]
	}
	return all, store.Counts()
}

func TestReplayFromSeed(t *testing.T) {
	t.Parallel()
	first, counts := story(t, 1, false)
	again, countsAgain := story(t, 1, true)
	require.Equal(t, first, again, "order of the threads does not matter")
	require.Equal(t, counts, countsAgain)
	other, _ := story(t, 2, false)
	require.NotEqual(t, first, other)
	for _, f := range []faultstore.Fault{faultstore.FailBefore, faultstore.FailAfter, faultstore.Repeat, faultstore.Delay, faultstore.Stale} {
		require.Positive(t, counts.Faults[f], "%s", f)
	}
	require.Equal(t, 160, counts.Calls[faultstore.OpAppend])
	require.Positive(t, counts.Late)
}

func TestRates(t *testing.T) {
	t.Parallel()
	store := over(t, memstore.New(memstore.Options{}), faultstore.Config{Seed: 3, Rate: map[faultstore.Fault]float64{
		faultstore.FailBefore: 0.25, faultstore.Crash: 0, faultstore.Repeat: 0.5,
	}})
	const calls = 4000
	base := uint64(0)
	for range calls {
		c := commit(base)
		if revision, err := store.Append(t.Context(), c); err == nil {
			base = revision
		}
	}
	counts := store.Counts()
	require.InDelta(t, calls/4, counts.Faults[faultstore.FailBefore], 150)
	require.InDelta(t, calls/2, counts.Faults[faultstore.Repeat], 150)
	require.Len(t, store.Trace(), calls)
}

// Every operation that can fail does, and none loses its way.
func TestFaultsOfOtherCalls(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		fault faultstore.Fault
		want  error
	}{{faultstore.FailBefore, faultstore.ErrInjected}, {faultstore.FailAfter, engine.ErrUnknownOutcome}} {
		inner := memstore.New(memstore.Options{})
		store := over(t, inner, faultstore.Config{Rate: map[faultstore.Fault]float64{tt.fault: 1}})
		ctx := t.Context()
		_, err := store.Acquire(ctx, "t", "ann", time.Hour)
		require.ErrorIs(t, err, tt.want)
		_, err = store.Renew(ctx, engine.Lease{Thread: "t"}, time.Hour)
		require.ErrorIs(t, err, tt.want)
		require.ErrorIs(t, store.Release(ctx, engine.Lease{Thread: "t"}), tt.want)
		_, err = store.Claim(ctx, "mail", "w", 1, time.Hour)
		require.ErrorIs(t, err, tt.want)
		require.ErrorIs(t, store.Settle(ctx, engine.Claim{}, engine.Settlement{}), tt.want)
		require.ErrorIs(t, store.Prune(ctx, "t", engine.PrunePolicy{}), tt.want)
		_, err = store.Load(ctx, "t", 0)
		require.ErrorIs(t, err, faultstore.ErrInjected)
		_, err = store.Threads(ctx, "", 1)
		require.ErrorIs(t, err, faultstore.ErrInjected)
		require.Equal(t, tt.fault == faultstore.FailAfter, revision(t, inner) == 1, "the lease")
		require.ErrorIs(t, store.Delete(ctx, "t"), tt.want)
		require.Equal(t, uint64(0), revision(t, inner))
		require.Len(t, store.Trace(), 9)
	}
}

// plain hides the optional parts of a store.
type plain struct{ engine.Journal }

func TestStoreWithoutOptionalParts(t *testing.T) {
	t.Parallel()
	store := over(t, plain{memstore.New(memstore.Options{})}, faultstore.Config{})
	_, err := store.Acquire(t.Context(), "t", "ann", time.Hour)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	_, err = store.Claim(t.Context(), "t", "ann", 1, time.Hour)
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]faultstore.Config{
		"negative rate":    {Rate: map[faultstore.Fault]float64{faultstore.Crash: -0.1}},
		"sum above one":    {Rate: map[faultstore.Fault]float64{faultstore.Crash: 0.6, faultstore.Delay: 0.6}},
		"rate of none":     {Rate: map[faultstore.Fault]float64{faultstore.None: 0.6}},
		"rate of unknown":  {Rate: map[faultstore.Fault]float64{99: 0.6}},
		"append before 1":  {At: map[int]faultstore.Fault{0: faultstore.Crash}},
		"unknown at 1":     {At: map[int]faultstore.Fault{1: 99}},
		"not even a share": {Rate: map[faultstore.Fault]float64{faultstore.Crash: 2}},
	} {
		_, err := faultstore.New(memstore.New(memstore.Options{}), c)
		require.ErrorContains(t, err, "faultstore: ", name)
	}
	_, err := faultstore.New(nil, faultstore.Config{})
	require.ErrorContains(t, err, "no store")
}
