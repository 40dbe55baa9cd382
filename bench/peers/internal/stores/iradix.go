package stores

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	iradix "github.com/hashicorp/go-immutable-radix/v2"
)

// radixStore keeps the state in hashicorp/go-immutable-radix. Its trees never
// change, so a view is the tree itself.
type radixStore struct {
	mu  sync.Mutex // one commit at a time, or one would undo the other
	cur atomic.Pointer[radixView]
}

type radixView struct{ tree *iradix.Tree[int] }

func newRadixStore() *radixStore {
	s := &radixStore{}
	s.cur.Store(&radixView{tree: iradix.New[int]()})
	return s
}

func (v *radixView) Get(key int) (int, error) {
	var bytes [8]byte
	binary.BigEndian.PutUint64(bytes[:], uint64(key))
	value, ok := v.tree.Get(bytes[:])
	if !ok {
		return 0, missing(key)
	}
	return value, nil
}

func (s *radixStore) View() View { return s.cur.Load() }

func (s *radixStore) Commit(updates []Update) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	txn := s.cur.Load().tree.Txn()
	for _, u := range updates {
		// The tree keeps the bytes of the key, so each key has its own.
		txn.Insert(binary.BigEndian.AppendUint64(nil, uint64(u.Key)), u.Value)
	}
	s.cur.Store(&radixView{tree: txn.CommitOnly()})
	return nil
}
