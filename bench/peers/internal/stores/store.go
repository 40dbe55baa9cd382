// Package stores is what the peers that only keep state have in common: views that
// stay as they are, and commits.
package stores

import "fmt"

// Update is one write of a batch.
type Update struct{ Key, Value int }

// View is a store's state at one moment. It stays as it is while the store moves
// on, and any number of goroutines may read it.
type View interface {
	// Get returns the value of a key that the store was filled with. It fails when
	// the key is not there.
	Get(key int) (int, error)
}

// Store is what the hand-written scheduler needs of a peer. It is safe for concurrent
// use. Keys are small integers, which every store handles best; programs would rather
// have names.
type Store interface {
	// View returns the state as of now.
	View() View
	// Commit makes a new state of the former one and the updates, all or none. No
	// view that was taken before changes.
	Commit(updates []Update) error
}

// Backend is a kind of store.
type Backend struct {
	ID     string // in one word
	Name   string
	Module string // that it is from; empty for what is written here
	Open   func() (Store, error)
}

// All returns the backends, the simplest first.
func All() []Backend {
	return []Backend{
		{ID: "map", Name: "cloned map behind a RWMutex", Open: func() (Store, error) { return &mapStore{}, nil }},
		{"btree", "btree", "github.com/tidwall/btree", func() (Store, error) { return newTreeStore(), nil }},
		{"iradix", "go-immutable-radix", "github.com/hashicorp/go-immutable-radix/v2", func() (Store, error) { return newRadixStore(), nil }},
		{"memdb", "go-memdb", "github.com/hashicorp/go-memdb", newMemStore},
	}
}

// Fill opens a store and gives the keys 0 to n-1 the values that valueOf returns.
func (b Backend) Fill(n int, valueOf func(key int) int) (Store, error) {
	s, err := b.Open()
	if err != nil {
		return nil, err
	}
	updates := make([]Update, n)
	for i := range updates {
		updates[i] = Update{Key: i, Value: valueOf(i)}
	}
	return s, s.Commit(updates)
}

// Zero fills a store with zeroes.
func Zero(int) int { return 0 }

// Large fills a store with values that are too large for the runtime to have them
// boxed already.
func Large(key int) int { return 1000 + key }

// Want fails unless the key has the value.
func Want(v View, key, value int) error {
	got, err := v.Get(key)
	if err == nil && got != value {
		err = fmt.Errorf("stores: key %d is %d and should be %d", key, got, value)
	}
	return err
}

func missing(key int) error { return fmt.Errorf("stores: there is no key %d", key) }
