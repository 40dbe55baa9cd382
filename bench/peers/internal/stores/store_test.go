package stores_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/bench/peers/internal/stores"
)

// TestViewsStay shows that all stores keep the views that they handed out: without
// that, none of them does what a snapshot does.
func TestViewsStay(t *testing.T) {
	for _, b := range stores.All() {
		t.Run(b.ID, func(t *testing.T) {
			s, err := b.Fill(100, stores.Large)
			require.NoError(t, err)
			before := s.View()
			require.NoError(t, s.Commit([]stores.Update{{Key: 7, Value: 1}, {Key: 8, Value: 2}}))
			after := s.View()
			for key := range 100 {
				require.NoError(t, stores.Want(before, key, stores.Large(key)))
			}
			require.NoError(t, stores.Want(after, 7, 1))
			require.NoError(t, stores.Want(after, 8, 2))
			require.NoError(t, stores.Want(after, 9, stores.Large(9)))
			_, err = after.Get(100)
			require.EqualError(t, err, "stores: there is no key 100")
		})
	}
}

// TestReadersDuringCommits has goroutines that read while others commit. A commit is
// seen as a whole or not at all.
func TestReadersDuringCommits(t *testing.T) {
	const writers, readers, turns = 2, 3, 200
	for _, b := range stores.All() {
		t.Run(b.ID, func(t *testing.T) {
			s, err := b.Fill(20, stores.Zero)
			require.NoError(t, err)
			errs := make([]error, writers+readers)
			var all sync.WaitGroup
			for w := range writers {
				all.Go(func() {
					for i := range turns {
						value := w*turns + i
						errs[w] = errors.Join(errs[w], s.Commit([]stores.Update{{Key: 3, Value: value}, {Key: 17, Value: value}}))
					}
				})
			}
			for r := range readers {
				all.Go(func() {
					for range turns {
						v := s.View()
						value, err := v.Get(3)
						errs[writers+r] = errors.Join(errs[writers+r], err, stores.Want(v, 17, value))
					}
				})
			}
			all.Wait()
			require.NoError(t, errors.Join(errs...))
		})
	}
}
