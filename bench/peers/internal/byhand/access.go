package byhand

import (
	"errors"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/bench/peers/internal/stores"
	"github.com/ddd26017/fixpoint/bench/peers/internal/trial"
)

// stride is a prime that divides none of the sizes. Steps of it visit the keys in an
// order without neighbours, or a large tree would be met in the cache.
const stride = 7919

// CommitOne is a commit to one of n keys while the view before it is held.
func CommitOne(b stores.Backend, n int) (trial.Trial, error) {
	s, err := b.Fill(n, stores.Large)
	var held stores.View
	key, value := 0, stores.Large(n)
	return trial.Trial{
		Run: trial.Each(func() error {
			key = (key + stride) % n
			value++
			held = s.View()
			return s.Commit([]stores.Update{{Key: key, Value: value}})
		}),
		Verify: func(done int) error {
			if done == 0 {
				return errors.New("byhand: nothing was committed")
			}
			now, before := make([]int, n), 0
			for at := range now {
				now[at] = stores.Large(at)
			}
			at := 0
			for i := range done {
				at = (at + stride) % n
				before, now[at] = now[at], stores.Large(n)+i+1
			}
			errs := []error{stores.Want(held, at, before)}
			v := s.View()
			for at, value := range now {
				errs = append(errs, stores.Want(v, at, value))
			}
			return errors.Join(errs...)
		},
	}, err
}

// TakeView is the taking of a view of 16 keys.
func TakeView(b stores.Backend) (trial.Trial, error) {
	s, err := b.Fill(readKeys, stores.Large)
	var last stores.View
	return trial.Trial{
		Run: func(n int) error {
			for range n {
				last = s.View()
			}
			return nil
		},
		Verify: func(int) error {
			if last == nil {
				return errors.New("byhand: no view was taken")
			}
			return stores.Want(last, 1, stores.Large(1))
		},
	}, err
}

// readKeys is how many keys a store has that is read from; a power of two.
const readKeys = 16

// ReadHeld is the read of one of 16 keys of a view.
func ReadHeld(b stores.Backend) (trial.Trial, error) {
	s, err := b.Fill(readKeys, stores.Large)
	if err != nil {
		return trial.Trial{}, err
	}
	v := s.View()
	sum, expected := 0, 0
	return trial.Trial{
		Run: func(n int) error {
			for i := range n {
				value, err := v.Get(i & (readKeys - 1))
				if err != nil {
					return err
				}
				sum += value
			}
			expected += sumOfReads(n)
			return nil
		},
		Verify: func(int) error { return trial.Equal("the sum of what was read", sum, expected) },
	}, nil
}

// ReadBusy is the taking of a view and the read of one of 16 keys, while another
// goroutine commits to a key beside them once in every interval.
func ReadBusy(b stores.Backend, interval time.Duration) (trial.Trial, error) {
	s, err := b.Fill(readKeys+1, stores.Large)
	sum, expected, commits := 0, 0, 0
	return trial.Trial{
		Run: func(n int) error {
			stop := CommitEvery(interval, s, readKeys, &commits)
			for i := range n {
				value, err := s.View().Get(i & (readKeys - 1))
				if err != nil {
					return errors.Join(err, stop())
				}
				sum += value
			}
			expected += sumOfReads(n)
			return stop()
		},
		Verify: func(int) error {
			return errors.Join(
				trial.Equal("the sum of what was read", sum, expected),
				stores.Want(s.View(), readKeys, stores.Large(readKeys)+commits))
		},
	}, err
}

// sumOfReads is what n reads of the keys in turn add up to.
func sumOfReads(n int) int {
	sum := 0
	for key := range readKeys {
		sum += n / readKeys * stores.Large(key)
		if key < n%readKeys {
			sum += stores.Large(key)
		}
	}
	return sum
}

// CommitEvery increments the key in the background, and counts, until stop is called.
func CommitEvery(interval time.Duration, s stores.Store, key int, commits *int) (stop func() error) {
	add := Increment(key)
	quit := make(chan struct{})
	var errs []error
	var writer sync.WaitGroup
	writer.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				if err := CommitAlone(s, add); err != nil {
					errs = append(errs, err)
					continue
				}
				*commits++
			}
		}
	})
	return func() error {
		close(quit)
		writer.Wait()
		return errors.Join(errs...)
	}
}
