package byhand

import (
	"errors"

	"github.com/ddd26017/fixpoint/bench/peers/internal/stores"
	"github.com/ddd26017/fixpoint/bench/peers/internal/trial"
)

// Gather is a gather of n hooks that each increment a key of their own.
func Gather(b stores.Backend, n int) (trial.Trial, error) {
	s, err := b.Fill(n, stores.Zero)
	hooks := OwnKeys(n)
	return trial.Trial{
		Run: trial.Each(func() error { return CommitAll(s, hooks) }),
		Verify: func(done int) error {
			v := s.View()
			var errs []error
			for key := range n {
				errs = append(errs, stores.Want(v, key, done))
			}
			return errors.Join(errs...)
		},
	}, err
}

// Counter is a gather of n hooks that each add 1 to the key 0.
func Counter(b stores.Backend, n int) (trial.Trial, error) {
	s, err := b.Fill(1, stores.Zero)
	hooks := AddOne(n)
	return trial.Trial{
		Run:    trial.Each(func() error { return CommitSum(s, hooks) }),
		Verify: func(done int) error { return stores.Want(s.View(), 0, n*done) },
	}, err
}

// Conflict is a gather of n hooks that all increment the key 0, n-1 of them by
// being run again.
func Conflict(b stores.Backend, n int) (trial.Trial, error) {
	s, err := b.Fill(1, stores.Zero)
	hooks := OneKey(n)
	return trial.Trial{
		Run:    trial.Each(func() error { return CommitRetry(s, hooks) }),
		Verify: func(done int) error { return stores.Want(s.View(), 0, n*done) },
	}, err
}

// Cascade is a queue of rounds that each increment the key 0.
func Cascade(b stores.Backend, rounds int) (trial.Trial, error) {
	s, err := b.Fill(1, stores.Zero)
	return trial.Trial{
		Run:    trial.Each(func() error { return Rounds(s, rounds) }),
		Verify: func(done int) error { return stores.Want(s.View(), 0, rounds*done) },
	}, err
}
