package stores

import (
	"sync"
	"sync/atomic"

	"github.com/tidwall/btree"
)

// treeStore is the same by hand on the tree that Fixpoint uses too. A commit
// copies the path to what it changes; views are published by an atomic pointer.
type treeStore struct {
	mu  sync.Mutex // Copy writes to the tree that it copies, so one commit at a time
	cur btree.Map[int, int]
	pub atomic.Pointer[treeView]
}

func newTreeStore() *treeStore {
	s := &treeStore{}
	s.pub.Store(&treeView{tree: s.cur.Copy()})
	return s
}

type treeView struct{ tree *btree.Map[int, int] }

func (v *treeView) Get(key int) (int, error) {
	value, ok := v.tree.Get(key)
	if !ok {
		return 0, missing(key)
	}
	return value, nil
}

func (s *treeStore) View() View { return s.pub.Load() }

func (s *treeStore) Commit(updates []Update) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range updates {
		s.cur.Set(u.Key, u.Value)
	}
	// The tree that is written to is never the one that is read.
	s.pub.Store(&treeView{tree: s.cur.Copy()})
	return nil
}
