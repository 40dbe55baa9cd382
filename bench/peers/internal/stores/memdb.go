package stores

import (
	"fmt"

	"github.com/hashicorp/go-memdb"
)

// memStore keeps the state in one table of hashicorp/go-memdb, indexed by the key.
// A view is a read transaction.
type memStore struct{ db *memdb.MemDB }

const memTable, memIndex = "state", "id"

// memEntry is a row; go-memdb asks that a row never changes once it is inserted.
type memEntry struct{ Key, Value int }

type memView struct{ txn *memdb.Txn }

func newMemStore() (Store, error) {
	db, err := memdb.NewMemDB(&memdb.DBSchema{Tables: map[string]*memdb.TableSchema{
		memTable: {Name: memTable, Indexes: map[string]*memdb.IndexSchema{
			memIndex: {Name: memIndex, Unique: true, Indexer: &memdb.IntFieldIndex{Field: "Key"}},
		}},
	}})
	if err != nil {
		return nil, fmt.Errorf("stores: go-memdb: %w", err)
	}
	return &memStore{db: db}, nil
}

func (v memView) Get(key int) (int, error) {
	row, err := v.txn.First(memTable, memIndex, key)
	if err != nil {
		return 0, fmt.Errorf("stores: go-memdb: %w", err)
	}
	entry, ok := row.(*memEntry)
	if !ok {
		return 0, missing(key)
	}
	return entry.Value, nil
}

func (s *memStore) View() View { return memView{txn: s.db.Txn(false)} }

func (s *memStore) Commit(updates []Update) error {
	txn := s.db.Txn(true)
	defer txn.Abort() // does nothing after Commit
	for _, u := range updates {
		if err := txn.Insert(memTable, &memEntry{Key: u.Key, Value: u.Value}); err != nil {
			return fmt.Errorf("stores: go-memdb: %w", err)
		}
	}
	txn.Commit()
	return nil
}
