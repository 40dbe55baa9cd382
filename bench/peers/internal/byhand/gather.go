// Package byhand is the least that one would write to run hooks on a store: an
// errgroup, and a commit of what the hooks return.
package byhand

import (
	"golang.org/x/sync/errgroup"

	"github.com/ddd26017/fixpoint/bench/peers/internal/stores"
)

// Hook is one of the functions that a phase runs: it reads the state and says what
// to write.
type Hook func(v stores.View) (stores.Update, error)

// Increment is a hook that adds 1 to a key.
func Increment(key int) Hook {
	return func(v stores.View) (stores.Update, error) {
		value, err := v.Get(key)
		return stores.Update{Key: key, Value: value + 1}, err
	}
}

// OwnKeys is n hooks that each increment a key of their own.
func OwnKeys(n int) []Hook {
	hooks := make([]Hook, n)
	for i := range hooks {
		hooks[i] = Increment(i)
	}
	return hooks
}

// OneKey is n hooks that all increment the key 0.
func OneKey(n int) []Hook {
	hooks := make([]Hook, n)
	for i := range hooks {
		hooks[i] = Increment(0)
	}
	return hooks
}

// AddOne is n hooks that read nothing and say by how much the key 0 grows.
func AddOne(n int) []Hook {
	hooks := make([]Hook, n)
	for i := range hooks {
		hooks[i] = func(stores.View) (stores.Update, error) { return stores.Update{Key: 0, Value: 1}, nil }
	}
	return hooks
}

// runAll runs all hooks at once on one view and returns what they write, in the
// order of the hooks.
func runAll(v stores.View, hooks []Hook) ([]stores.Update, error) {
	updates := make([]stores.Update, len(hooks))
	var g errgroup.Group
	for i, h := range hooks {
		g.Go(func() (err error) {
			updates[i], err = h(v)
			return err
		})
	}
	return updates, g.Wait()
}

// CommitAll is one gather of hooks that never write the same key, and its commit.
func CommitAll(s stores.Store, hooks []Hook) error {
	updates, err := runAll(s.View(), hooks)
	if err != nil {
		return err
	}
	return s.Commit(updates)
}

// CommitSum is one gather of hooks that all add to one key, and the commit of the
// sum.
func CommitSum(s stores.Store, hooks []Hook) error {
	base := s.View()
	updates, err := runAll(base, hooks)
	if err != nil {
		return err
	}
	total, err := base.Get(0)
	if err != nil {
		return err
	}
	for _, u := range updates {
		total += u.Value
	}
	return s.Commit([]stores.Update{{Key: 0, Value: total}})
}

// CommitRetry is one gather of hooks that may write the same Key: those that come
// first commit together, and each of the others runs again by itself on the state
// as it is then.
func CommitRetry(s stores.Store, hooks []Hook) error {
	updates, err := runAll(s.View(), hooks)
	if err != nil {
		return err
	}
	var first []stores.Update
	var again []Hook
	taken := make(map[int]bool, len(updates))
	for i, u := range updates {
		if taken[u.Key] {
			again = append(again, hooks[i])
			continue
		}
		taken[u.Key] = true
		first = append(first, u)
	}
	if err := s.Commit(first); err != nil {
		return err
	}
	for _, h := range again {
		if err := CommitAlone(s, h); err != nil {
			return err
		}
	}
	return nil
}

// CommitAlone runs one hook on the state as it is now and commits what it writes.
func CommitAlone(s stores.Store, h Hook) error {
	u, err := h(s.View())
	if err != nil {
		return err
	}
	return s.Commit([]stores.Update{u})
}

// Rounds is a queue of one action that increments the key 0 and queues the next,
// until there were as many as rounds.
func Rounds(s stores.Store, rounds int) error {
	add := Increment(0)
	queue := []int{rounds}
	for len(queue) > 0 {
		left := queue[0]
		queue = queue[1:]
		if err := CommitAlone(s, add); err != nil {
			return err
		}
		if left > 1 {
			queue = append(queue, left-1)
		}
	}
	return nil
}
