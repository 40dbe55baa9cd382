package pushseq

import (
	"sync"
	"time"
)

// Group passes numbered values on to several feeds, all in one order. A nil Group is
// one without feeds: it may be roused and shut. All methods but Add are safe for
// concurrent use.
type Group[T any] struct {
	buffer int
	clone  func(T) T

	mu     sync.Mutex
	seq    uint64
	feeds  []*Feed[T]
	unread int // values since the feeds were last roused
}

// unreadMost is how many values may wait to be roused, unless the feeds may be behind
// by little.
const unreadMost = 32

// NewGroup returns a group whose feeds may be behind by buffer values. Every feed gets
// a value of its own, made by clone.
func NewGroup[T any](buffer int, clone func(T) T) *Group[T] {
	return &Group[T]{buffer: buffer, clone: clone}
}

// Add starts a feed; see NewFeed. It comes before the first Push.
func (g *Group[T]) Add(fn func(T), grace time.Duration) {
	g.feeds = append(g.feeds, NewFeed(fn, g.buffer, grace))
}

// Push passes on what build makes of the next number, the first being 1. With wait the
// caller is held up while a feed is too far behind, all of them at the same time;
// otherwise the feeds are roused.
func (g *Group[T]) Push(wait bool, build func(seq uint64) T) {
	g.mu.Lock()
	g.seq++
	v := build(g.seq)
	// Queued under the lock so that every feed sees the order of the numbers.
	for _, f := range g.feeds[1:] {
		f.Push(g.clone(v))
	}
	g.feeds[0].Push(v) // the last, since its function may change it at once
	g.unread++
	many := g.unread >= min(unreadMost, g.buffer/2+1)
	g.mu.Unlock()
	if many || !wait {
		g.Rouse()
	}
	if wait {
		g.wait()
	}
}

// Rouse has the feeds look at what they have not seen.
func (g *Group[T]) Rouse() {
	if g == nil {
		return
	}
	g.mu.Lock()
	unread := g.unread
	g.unread = 0
	g.mu.Unlock()
	if unread == 0 {
		return
	}
	for _, f := range g.feeds {
		f.Rouse()
	}
}

func (g *Group[T]) wait() {
	var start time.Time
	for _, f := range g.feeds {
		if room, full := f.Full(); full {
			if start.IsZero() {
				start = time.Now()
			}
			f.Await(room, start)
		}
	}
}

// Shut waits until the feeds have passed on everything or their graces are over.
func (g *Group[T]) Shut() {
	if g == nil {
		return
	}
	start := time.Now()
	for _, f := range g.feeds {
		f.Shut()
	}
	for _, f := range g.feeds {
		f.Join(start)
	}
}
