package ledger

import (
	"slices"
	"sync"
)

// Ledger holds entries by a key until they are done, and those that are done until they
// are settled. It is safe for concurrent use.
type Ledger[K, E comparable] struct {
	all  *sync.Map // the entries of several ledgers that are neither settled nor failed
	mu   sync.Mutex
	open map[K]E
	done []E
}

// New returns a ledger that also keeps its entries as the keys of all, for as long as
// they are neither settled nor failed.
func New[K, E comparable](all *sync.Map) *Ledger[K, E] {
	return &Ledger[K, E]{all: all}
}

// Add opens an entry.
func (l *Ledger[K, E]) Add(key K, entry E) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = map[K]E{}
	}
	l.open[key] = entry
	l.all.Store(entry, true)
}

// Done closes an entry: it is to be settled if all went well, and dropped if not. A key
// without one is none.
func (l *Ledger[K, E]) Done(key K, well bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	entry, ok := l.open[key]
	if !ok {
		return
	}
	delete(l.open, key)
	if well {
		l.done = append(l.done, entry)
	} else {
		l.all.Delete(entry)
	}
}

// Any reports whether there is something to settle.
func (l *Ledger[K, E]) Any() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.done) > 0
}

// Take returns what is to be settled, in the order in which it was done, and leaves
// nothing. The caller says with Settled or Return what became of it.
func (l *Ledger[K, E]) Take() []E {
	l.mu.Lock()
	defer l.mu.Unlock()
	done := l.done
	l.done = nil
	return done
}

// Settled drops entries that were taken.
func (l *Ledger[K, E]) Settled(entries ...E) {
	for _, e := range entries {
		l.all.Delete(e)
	}
}

// Return puts back what was taken and could not be settled, before what was done since.
func (l *Ledger[K, E]) Return(entries []E) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done = slices.Concat(entries, l.done)
}
