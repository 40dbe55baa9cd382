package sim

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/store/faultstore"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// world is what one seed makes.
type world struct {
	plan
	ledger *ledger
	story  *story
	vault  *vault
	memory *memstore.Store
	behind store             // the memory, with what a mutant does to it
	faulty *faultstore.Store // in front of it, until the faults end
	over   atomic.Bool       // they ended
	down   atomic.Bool       // the store crashed and is to be opened again

	mu      sync.Mutex
	clients []*client

	checkers *engine.Engine // opens threads as they were
	past     *past
}

// client is a place for processes, which follow each other there.
type client struct {
	w     *world
	n     int
	lives int
	now   atomic.Pointer[process]
}

func newWorld(p plan, o Options) *world {
	w := &world{plan: p, ledger: newLedger(), story: o.story, memory: memstore.New(memstore.Options{}),
		vault: &vault{secrets: map[string]string{}, gone: map[string]bool{}}}
	w.behind = &truth{w.memory, w.ledger}
	if o.mutant != nil {
		w.behind = o.mutant(w.behind)
	}
	var err error
	if w.faulty, err = faultstore.New(w.behind, p.faults); err != nil {
		panic(fmt.Sprintf("sim: %v", err))
	}
	w.past = &past{Store: w.memory, ledger: w.ledger}
	a := &agent{p: &process{w: w, name: "checker", calm: true, ctx: context.Background()}}
	w.checkers, err = engine.New(engine.Config{Journal: w.past, Plugins: a.plugins(), Model: a})
	if err != nil {
		panic(fmt.Sprintf("sim: the engine was refused: %v", err))
	}
	return w
}

// store is where a call goes now.
func (w *world) store() store {
	if w.over.Load() {
		return w.behind
	}
	return w.faulty
}

// noticed sees to it that a crashed store is opened again after a while.
func (w *world) noticed(err error) {
	if errors.Is(err, faultstore.ErrCrashed) && w.down.CompareAndSwap(false, true) {
		w.ledger.add(func(s *Stats) { s.StoreCrashes++ })
		after := w.dice.about("reopen", w.faulty.Counts().Faults[faultstore.Crash]).span(20*time.Second, "after")
		time.AfterFunc(inSlot(time.Now(), after, controllerSlot), func() {
			w.trace("world", "the store is opened again")
			w.faulty.Reopen(nil)
			w.down.Store(false)
		})
	}
}

// longest is how long a world may take, in its own time.
const longest = 14 * 24 * time.Hour

// run lives the world's life.
func (w *world) run() {
	w.trace("world", "%s", w.plan)
	stuck := time.AfterFunc(longest, func() {
		buf := make([]byte, 1<<20)
		panic(fmt.Sprintf("sim: the world of seed %d does not end\n%s", w.faultsSeed(), buf[:runtime.Stack(buf, true)]))
	})
	defer stuck.Stop()
	var wg sync.WaitGroup
	for n := range w.plan.clients {
		c := &client{w: w, n: n}
		w.clients = append(w.clients, c)
		wg.Go(c.live)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { defer close(stopped); w.disturb(stop) }()
	wg.Wait()
	close(stop)
	<-stopped

	// Now nothing fails any more, and everything must come to its end.
	w.over.Store(true)
	w.trace("world", "the faults end")
	w.faulty.Reopen(nil)
	w.faulty.Flush(context.Background())
	w.down.Store(true) // no more reopening
	w.rest(time.Minute)
	p := w.start(w.plan.clients, 1, true)
	w.recover(p)
	p.wait(0, runSlot)
	p.end()
	w.check()
}

func (w *world) faultsSeed() uint64 { return w.plan.faults.Seed }

func (w *world) rest(d time.Duration) { time.Sleep(inSlot(time.Now(), d, controllerSlot)) }

// disturb does to the processes what happens to them: they are killed, they stand
// still for longer than their leases, their clocks jump.
func (w *world) disturb(stop <-chan struct{}) {
	d := w.dice.about("disturb")
	for n := 0; ; n++ {
		if !rest(context.Background(), stop, inSlot(time.Now(), 5*time.Second+d.span(60*time.Second, "next", n), controllerSlot)) {
			return
		}
		p := w.clients[d.n(len(w.clients), "who", n)].now.Load()
		if p == nil || p.gone() {
			continue
		}
		switch what := d.n(10, "what", n); {
		case what < 2 && w.plan.crashes:
			p.die()
		case what < 5:
			p.stop(d.span(4*lease, "stop", n))
		case what < 7 && w.plan.skew:
			by := d.span(8*time.Minute, "jump", n) - 4*time.Minute
			w.trace("world", "the clock of %s jumps by %s", p.name, by)
			p.skew.Add(int64(by))
		}
	}
}

// live is a client's life: some actions, in as many processes as it takes.
func (c *client) live() {
	w := c.w
	d := w.dice.about("client", c.n)
	p := c.next()
	for i := range w.plan.actions {
		p.wait(d.span(8*time.Second, "think", i), runSlot)
		if p.gone() {
			p.end()
			time.Sleep(inSlot(time.Now(), time.Second+d.span(10*time.Second, "restart", i), p.slot(runSlot)))
			p = c.next()
		}
		p.act(d.about("action", i))
	}
	c.now.Store(nil)
	p.end()
}

func (c *client) next() *process {
	c.lives++
	p := c.w.start(c.n, c.lives, false)
	c.now.Store(p)
	return p
}

func (w *world) threadID(n int) string { return fmt.Sprintf("t%d", n) }

// recover brings every thread to its end and delivers every effect.
func (w *world) recover(p *process) {
	ids, err := p.conn.Threads(p.ctx, "", 100)
	if err != nil {
		w.ledger.violated("the threads cannot be listed: %v", err)
	}
	for _, id := range ids {
		w.finish(p, id)
	}
	for range 3 { // what was claimed or postponed comes later
		if _, err := p.engine.DeliverOutbox(p.ctx); err != nil {
			w.ledger.violated("the outbox cannot be delivered: %v", err)
		}
		p.wait(2*time.Hour, runSlot)
	}
}

// patience is how many times a thread is taken up before it counts as stuck.
const patience = 40

func (w *world) finish(p *process, id string) {
	var last error
	for n := range patience {
		t, err := p.thread(p.ctx, id, true)
		if err != nil {
			w.ledger.violated("thread %s cannot be opened: %v", id, err)
			return
		}
		switch l := phase.RunLifecycle.Get(t.Snapshot()); l.Status {
		case phase.Done, phase.Created:
			return
		case phase.Waiting:
			last = p.decide(p.ctx, t, p.everything(t))
		default:
			last = p.resume(p.ctx, t)
		}
		if errors.Is(last, engine.ErrLeaseHeld) {
			p.wait(2*lease, runSlot)
		} else if last != nil {
			w.ledger.violated("thread %s cannot go on in round %d: %v", id, n, last)
			return
		}
	}
	w.ledger.violated("thread %s comes to no end: %v", id, last)
}
