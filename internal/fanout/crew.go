package fanout

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Crew is goroutines that stay when a call is over, for the next one: a new one costs
// more than a short call does, most of all because its stack has to grow anew. The zero
// Crew is ready; whoever owns it must End it. It is safe for concurrent use. Where a
// function takes a Crew, nil stands for one that keeps none.
type Crew struct {
	group errgroup.Group // spawns; nobody waits on it, since a hung call would hold everybody up
	mu    sync.Mutex
	idle  []*member
	ended bool

	watched  []watched // fan-outs that may need another worker
	watching bool      // a goroutine looks at them, or is about to
	armed    bool      // the alarm will go off
	alarm    *time.Timer
}

type watched interface{ look() (enough bool) }

// idleKept is how many stay: one that calls and one that watches it, for two fan-outs.
const idleKept = 4

// member is a goroutine of a crew, told by next what to do.
type member struct{ next chan task }

type task interface{ do() }

type taskFunc func()

func (f taskFunc) do() { f() }

// orNone is c, or a crew that keeps no goroutine.
func (c *Crew) orNone() *Crew {
	if c == nil {
		return &Crew{ended: true}
	}
	return c
}

// start has a goroutine do t.
func (c *Crew) start(t task) {
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
	if c.armed {
		c.alarm.Stop()
	}
}

// watch has somebody look at w each time that the scheduler gives them a turn: that
// shows that the workers wait, or that there is a processor to spare. One goroutine
// does so for all fan-outs of a crew, and it may not come at all before w is over. If w
// is quick, nobody looks for a time.
func (c *Crew) watch(w watched, quick bool) {
	c.mu.Lock()
	c.watched = append(c.watched, w)
	start := !c.watching && !quick
	if start {
		c.watching = true
	} else if !c.watching {
		c.arm()
	}
	c.mu.Unlock()
	if start {
		c.start((*watcher)(c))
	}
}

// quickness is after what time somebody looks whether quick calls are over.
const quickness = time.Millisecond

// arm has somebody look after a time. The caller holds the lock.
func (c *Crew) arm() {
	switch {
	case c.armed:
	case c.alarm == nil:
		c.alarm = time.AfterFunc(quickness, c.alarmed)
	default:
		c.alarm.Reset(quickness)
	}
	c.armed = true
}

func (c *Crew) alarmed() {
	c.mu.Lock()
	late := len(c.watched) > 0 && !c.watching
	c.watching = c.watching || late
	c.armed = false
	c.mu.Unlock()
	if late {
		(*watcher)(c).do()
	}
}

func (c *Crew) unwatch(w watched) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.watched, w); i >= 0 {
		c.watched = slices.Delete(c.watched, i, i+1)
	}
}

type watcher Crew

// turnsMost is how many turns in a row somebody looks, before the next look comes after
// a time: a worker that the operating system holds up needs the processor more.
const turnsMost = 256

func (w *watcher) do() {
	c := (*Crew)(w)
	var turn []watched
	for n := range turnsMost + 1 {
		c.mu.Lock()
		turn = append(turn[:0], c.watched...)
		goOn := len(turn) > 0 && n < turnsMost
		if c.watching = goOn; !goOn && len(turn) > 0 {
			c.arm()
		}
		c.mu.Unlock()
		if !goOn {
			return
		}
		for _, w := range turn {
			if w.look() {
				c.unwatch(w)
			}
		}
		clear(turn)
		runtime.Gosched()
	}
}
