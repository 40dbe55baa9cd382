package stores

import (
	"maps"
	"sync"
)

// mapStore is what most programs begin with: a Go map behind a lock, cloned for
// each commit so that the views that were handed out stay valid.
type mapStore struct {
	mu  sync.RWMutex
	cur mapView
}

type mapView map[int]int

func (m mapView) Get(key int) (int, error) {
	value, ok := m[key]
	if !ok {
		return 0, missing(key)
	}
	return value, nil
}

func (s *mapStore) View() View {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.cur
}

func (s *mapStore) Commit(updates []Update) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := maps.Clone(s.cur)
	if next == nil {
		next = make(mapView, len(updates))
	}
	for _, u := range updates {
		next[u.Key] = u.Value
	}
	s.cur = next
	return nil
}
