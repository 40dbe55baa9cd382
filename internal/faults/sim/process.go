package sim

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/phase"
)

// process is one life of a client's process: an engine and the threads it has open.
// All of it is lost when it dies.
type process struct {
	w      *world
	client int
	name   string // also the owner of its leases
	conn   *conn
	engine *engine.Engine
	open   map[string]*engine.Thread

	ctx      context.Context //nolint:containedctx // it is the life of the process
	kill     context.CancelFunc
	paused   atomic.Int64 // until when, in nanoseconds
	skew     atomic.Int64 // of its clock
	ids      atomic.Int64
	compared atomic.Int64
	calm     bool // nothing in it fails any more
	beside   sync.WaitGroup
}

func (w *world) start(client, life int, calm bool) *process {
	p := &process{w: w, client: client, name: fmt.Sprintf("p%d.%d", client, life), open: map[string]*engine.Thread{}, calm: calm}
	p.ctx, p.kill = context.WithCancel(context.Background())
	p.conn = &conn{w: w, p: p, acked: map[string]uint64{}, loaded: map[string]uint64{}}
	d := w.dice.about("process", p.name)
	if w.plan.crashes && !calm && d.chance(600, "dies") {
		p.conn.dieAt, p.conn.dieLate = 1+d.n(60, "when"), d.chance(500, "late")
	}
	if client == 0 && life == 1 && w.plan.dieAt > 0 {
		p.conn.dieAt, p.conn.dieLate = w.plan.dieAt, w.plan.dieLate
	}
	if w.plan.skew && !calm {
		p.skew.Store(int64(d.span(4*time.Minute, "skew") - 2*time.Minute))
	}
	c := engine.Config{
		Journal: p.conn,
		Agents:  []engine.AgentSpec{w.plan.spec(), w.plan.other()},
		Limits:  w.plan.limits(),
		Now:     func() time.Time { return time.Now().Add(time.Duration(p.skew.Load())) },
		NewID:   func() string { return fmt.Sprintf("%s-%d", p.name, p.ids.Add(1)) },
	}
	if w.plan.leased {
		c.Owner = p.name
	}
	if w.plan.background {
		c.EffectMode = effects.Background
	}
	if w.plan.vault {
		c.Vault = safe{p}
	}
	if w.plan.resolver && !calm {
		c.Resolver = gate.ResolverFunc(p.resolve)
	}
	if w.tracing() {
		c.Observers = []engine.Observer{engine.ObserverFunc(p.observe)}
	}
	a := &agent{p: p}
	c.Plugins, c.Model = a.plugins(), a
	var err error
	if p.engine, err = engine.New(c); err != nil {
		panic(fmt.Sprintf("sim: the engine was refused: %v", err))
	}
	w.trace(p.name, "starts; dies at append %d", p.conn.dieAt)
	if w.plan.courier && !calm {
		p.beside.Go(p.carry)
	}
	return p
}

// end ends the process, as it should be, and returns when nothing of it goes on.
func (p *process) end() {
	p.kill()
	p.beside.Wait()
}

// carry delivers the outbox from time to time, beside everything else.
func (p *process) carry() {
	ctx := context.WithValue(p.ctx, slotKey{}, courierSlot)
	for n := 0; ; n++ {
		p.wait(time.Second+p.w.dice.about("courier", p.name).span(20*time.Second, "next", n), courierSlot)
		if p.gone() {
			return
		}
		p.deliverOutbox(ctx)
	}
}

func (p *process) deliverOutbox(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	rep, err := p.engine.DeliverOutbox(ctx)
	p.w.trace(p.name, "delivers the outbox: %+v %v", rep, err)
}

// die ends the process: none of its calls reaches the store any more.
func (p *process) die() {
	if !p.gone() {
		p.w.trace(p.name, "dies")
		p.w.ledger.add(func(s *Stats) { s.Deaths++ })
		p.kill()
	}
}

// slot returns the place of one of the process's slots in the grid.
func (p *process) slot(n int) int { return (p.client+1)*slots + n }

func (p *process) gone() bool { return p.ctx.Err() != nil }

// stop lets the process stand still for a while, renewals of its leases included.
func (p *process) stop(long time.Duration) {
	p.w.trace(p.name, "stands still for %s", long)
	p.paused.Store(time.Now().Add(long).UnixNano())
	p.w.ledger.add(func(s *Stats) { s.Stops++ })
}

// wait passes time in the process, at least d, and as long as it is paused.
func (p *process) wait(d time.Duration, slot int) { p.waits(p.ctx, d, slot) }

// waits is a wait that ctx can end. It returns false when that or the end of the
// process cut it short.
func (p *process) waits(ctx context.Context, d time.Duration, slot int) bool {
	for {
		if !rest(ctx, p.ctx.Done(), inSlot(time.Now(), d, p.slot(slot))) {
			return false
		}
		if d = time.Duration(p.paused.Load() - time.Now().UnixNano()); d <= 0 {
			return true
		}
	}
}

// work is a wait of user code, which honours its context. It returns false when it
// was cut short.
func (p *process) work(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return !p.gone()
	}
	p.w.trace(p.name, "works for %s", d)
	if p.waits(ctx, d, slotOf(ctx)) {
		return true
	}
	p.lag(ctx)
	return false
}

// lag is for what hears that its context ended. The engine hears it at the same
// moment, and which of them is first must not be left to the scheduler.
func (p *process) lag(ctx context.Context) {
	if ctx.Err() != nil && !p.gone() {
		time.Sleep(inSlot(time.Now(), time.Millisecond, p.slot(shadowSlot)))
	}
}

// thread returns a thread, open or to be opened.
func (p *process) thread(ctx context.Context, id string, anew bool) (*engine.Thread, error) {
	if t := p.open[id]; t != nil && !anew {
		return t, nil
	}
	delete(p.open, id)
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	t, err := p.engine.OpenThread(ctx, id)
	if err != nil {
		return nil, err
	}
	p.conn.opened(id)
	p.adopt(t)
	return t, nil
}

// adopt watches a thread that was opened or forked.
func (p *process) adopt(t *engine.Thread) {
	p.open[t.ID()] = t
	watch(p.w.ledger, p.name, t)
}

// resolve answers some questions in place and leaves others open.
func (p *process) resolve(ctx context.Context, t gate.Ticket) (phase.Answer, error) {
	d := p.w.dice.about("resolve", t.ID)
	if d.chance(200, "slow") {
		p.work(ctx, d.span(20*time.Second, "for"))
	}
	if p.gone() {
		return phase.Answer{}, errDead
	}
	if d.chance(400, "open") {
		return phase.Answer{}, gate.ErrLeftOpen
	}
	if d.chance(300, "no") {
		return phase.Answer{Reason: "in place"}, nil
	}
	return phase.Answer{Approved: true, Value: valueFor(t)}, nil
}

func (p *process) observe(e engine.Event) {
	h := e.Head()
	p.w.trace(p.name, "  %s %T step %d %s", h.Thread, e, h.Step, h.Phase)
}
