package pushseq

import "sync"

// Pile keeps values until somebody takes them all. The zero Pile is empty and ready.
// It is safe for concurrent use.
type Pile[T any] struct {
	mu   sync.Mutex
	list []T
}

// Add puts v behind the others.
func (p *Pile[T]) Add(v T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, v)
}

// Take returns the values in order, and leaves none.
func (p *Pile[T]) Take() []T {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.list
	p.list = nil
	return list
}
