package fanout

import (
	"sync"

	"golang.org/x/sync/errgroup"
)

// Crew is goroutines that stay when a call is over, for the next one: a new one costs
// more than a short call does, most of all because its stack has to grow anew. The zero
// Crew is ready; whoever owns it must End it. A nil Crew makes a goroutine for each
// call. It is safe for concurrent use.
type Crew struct {
	group errgroup.Group // spawns; nobody waits on it, since a hung call would hold everybody up
	mu    sync.Mutex
	idle  []*member
	ended bool
}

// idleKept is how many stay: one that calls and one that watches it, for two fan-outs.
const idleKept = 4

// member is a goroutine of a crew, told by next what to do.
type member struct{ next chan task }

type task interface{ do() }

type taskFunc func()

func (f taskFunc) do() { f() }

// start has a goroutine do t.
func (c *Crew) start(t task) {
	if c == nil {
		go t.do()
		return
	}
	c.mu.Lock()
	if last := len(c.idle) - 1; last >= 0 {
		m := c.idle[last] // the one whose stack was used last
		c.idle = c.idle[:last]
		c.mu.Unlock()
		m.next <- t
		return
	}
	c.mu.Unlock()
	c.group.Go(func() error {
		m := &member{make(chan task, 1)}
		for ok := true; ok; t, ok = <-m.next {
			t.do()
			if !c.keep(m) {
				break
			}
		}
		return nil
	})
}

func (c *Crew) keep(m *member) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || len(c.idle) == idleKept {
		return false
	}
	c.idle = append(c.idle, m)
	return true
}

// End lets the goroutines go that wait for a call; one that is at work goes when its
// call returns. Calls that start later have goroutines of their own.
func (c *Crew) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for _, m := range c.idle {
		close(m.next)
	}
	c.idle = nil
}
