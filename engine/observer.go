package engine

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/inference"
)

// Observer receives the events of runs. It can change nothing: what it gets are
// copies. It is called from a goroutine of the run's own, one event at a time and
// in order, after the commit that the event describes; events of concurrent runs
// arrive concurrently. A panic is caught and ignored. An observer that falls
// behind by more than Limits.EventBuffer events makes the run wait for it, at most
// Limits.Grace in all; after that it gets no more of that run's events.
type Observer interface {
	Observe(Event)
}

// ObserverFunc lets a function be an Observer.
type ObserverFunc func(Event)

// Observe calls f.
func (f ObserverFunc) Observe(e Event) { f(e) }

// emitter numbers a run's events and hands them to its observers. A nil emitter
// drops everything, so that a run that nobody watches pays nothing.
type emitter struct {
	mu    sync.Mutex
	seq   uint64
	pumps []*pump
}

// newEmitter starts a pump for each observer, and for sink if it is not nil. The
// sink belongs to whoever started the run and is never given up on.
func newEmitter(observers []Observer, sink Observer, buffer int, grace time.Duration) *emitter {
	if len(observers) == 0 && sink == nil {
		return nil
	}
	e := &emitter{}
	for _, o := range observers {
		e.pumps = append(e.pumps, newPump(o, buffer, grace))
	}
	if sink != nil {
		e.pumps = append(e.pumps, newPump(sink, buffer, 0))
	}
	return e
}

// emit numbers the event that build makes and passes it on. Calls of several
// goroutines are put into one order.
func (e *emitter) emit(h Header, build func(Header) Event, wait bool) {
	e.mu.Lock()
	e.seq++
	h.Seq = e.seq
	ev := build(h)
	// Queued under the lock so that every observer sees the order of the numbers.
	for _, p := range e.pumps {
		p.push(ev)
	}
	e.mu.Unlock()
	if wait {
		e.wait()
	}
}

// wait holds the run back while an observer is too far behind, all of them at the
// same time.
func (e *emitter) wait() {
	var start time.Time
	for _, p := range e.pumps {
		if room, full := p.full(); full {
			if start.IsZero() {
				start = time.Now()
			}
			p.await(room, start)
		}
	}
}

// close waits until the observers have seen everything or the grace is over.
func (e *emitter) close() {
	if e == nil {
		return
	}
	start := time.Now()
	for _, p := range e.pumps {
		p.shut()
	}
	for _, p := range e.pumps {
		p.join(start)
	}
}

// pump feeds one observer from a goroutine that lives until close.
type pump struct {
	observer Observer
	buffer   int
	endless  bool // is never given up on

	mu       sync.Mutex
	grace    time.Duration // left of the time that the run waits for the observer
	queue    []Event
	wake     chan struct{} // 1-buffered: the queue has work
	room     chan struct{} // closed and replaced when the queue was emptied
	closing  bool
	detached bool
	done     chan struct{}
}

func newPump(o Observer, buffer int, grace time.Duration) *pump {
	p := &pump{
		observer: o, buffer: buffer, grace: grace, endless: grace == 0,
		wake: make(chan struct{}, 1), room: make(chan struct{}), done: make(chan struct{}),
	}
	go p.run()
	return p
}

func (p *pump) push(ev Event) {
	p.mu.Lock()
	if !p.detached {
		p.queue = append(p.queue, ev)
	}
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// full reports whether the observer is too far behind, and if so what is closed
// when it is no longer.
func (p *pump) full() (room <-chan struct{}, full bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.room, len(p.queue) > p.buffer && !p.detached
}

// await waits for ready, which began at start, for as long as the observer's grace
// lasts. Then the observer is given up on.
func (p *pump) await(ready <-chan struct{}, start time.Time) {
	var over <-chan time.Time
	if !p.endless {
		p.mu.Lock()
		left := p.grace
		p.mu.Unlock()
		timer := time.NewTimer(left - time.Since(start))
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ready:
	case <-p.done:
	case <-over:
		p.detach()
	}
	p.mu.Lock()
	p.grace -= time.Since(start)
	p.mu.Unlock()
}

func (p *pump) detach() {
	p.mu.Lock()
	p.detached = true
	p.queue = nil
	p.mu.Unlock()
}

func (p *pump) run() {
	defer func() {
		p.detach() // nobody takes from the queue any more
		close(p.done)
	}() // also when the observer ends this goroutine
	for {
		p.mu.Lock()
		batch, closing := p.queue, p.closing
		p.queue = nil
		if len(batch) > 0 {
			close(p.room)
			p.room = make(chan struct{})
		}
		p.mu.Unlock()
		if len(batch) == 0 {
			if closing {
				return
			}
			<-p.wake
			continue
		}
		for _, ev := range batch {
			p.observe(ev)
		}
	}
}

func (p *pump) observe(ev Event) {
	p.mu.Lock()
	detached := p.detached
	p.mu.Unlock()
	if detached {
		return
	}
	// An observer's panic is its own affair: it must not take the process down.
	defer func() { _ = recover() }()
	p.observer.Observe(ev.clone())
}

// shut tells the pump to end with what it has, join waits for that.
func (p *pump) shut() {
	p.mu.Lock()
	p.closing = true
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *pump) join(start time.Time) { p.await(p.done, start) }

// LogObserver returns an observer that writes events to a logger, with the fields
// that they have in traces: failures and conflicts as warnings, run and step
// boundaries as information, all else for debugging.
func LogObserver(logger *slog.Logger) Observer {
	return ObserverFunc(func(e Event) {
		if ctx, level := context.Background(), logLevel(e); logger.Enabled(ctx, level) {
			logger.LogAttrs(ctx, level, e.Type(), logAttrs(e)...)
		}
	})
}

func logAttrs(e Event) (attrs []slog.Attr) {
	text, err := json.Marshal(e)
	if err != nil {
		return []slog.Attr{slog.String("error", err.Error())}
	}
	var fields map[string]any
	if err := inference.JSON(text).Decode(&fields); err != nil {
		return []slog.Attr{slog.String("error", err.Error())}
	}
	delete(fields, "time") // the log has its own
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		attrs = append(attrs, slog.Any(name, fields[name]))
	}
	return attrs
}

func logLevel(e Event) slog.Level {
	switch e := e.(type) {
	case RunStarted, RunFinished, RunSuspended, HandedOff, Continued, TicketOpened:
		return slog.LevelInfo
	case Warning, Conflict, GateClashed:
		return slog.LevelWarn
	case HookFinished:
		if e.Error != "" || e.Slow {
			return slog.LevelWarn
		}
	case EffectFinished:
		if e.Error != "" {
			return slog.LevelWarn
		}
	case ActionFinished:
		if e.Status != ActionDone {
			return slog.LevelWarn
		}
	}
	return slog.LevelDebug
}
