package bench

import (
	"sync"
	"sync/atomic"

	"github.com/tidwall/btree"
)

// handStore is the state that one would write by hand for the works' baselines: values
// of any type by name, in a persistent tree that is published whole, so that readers
// take no lock and old snapshots stay as they were.
type handStore struct {
	mu  sync.Mutex
	cur atomic.Pointer[btree.Map[string, any]]
}

func newHandStore() *handStore {
	s := &handStore{}
	s.cur.Store(&btree.Map[string, any]{})
	return s
}

// snapshot returns the state as of now. It must only be read.
func (s *handStore) snapshot() *btree.Map[string, any] { return s.cur.Load() }

// get returns the number under the key, 0 if there is none.
func (s *handStore) get(key string) int { return number(s.snapshot(), key) }

func number(snap *btree.Map[string, any], key string) int {
	v, _ := snap.Get(key)
	n, _ := v.(int)
	return n
}

// commit publishes a state with one other value.
func (s *handStore) commit(key string, value any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.cur.Load().Copy()
	next.Set(key, value)
	s.cur.Store(next)
}

// commit2 publishes a state with two other values, both or none.
func (s *handStore) commit2(key1 string, value1 any, key2 string, value2 any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.cur.Load().Copy()
	next.Set(key1, value1)
	next.Set(key2, value2)
	s.cur.Store(next)
}
