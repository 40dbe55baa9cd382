package engine

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/internal/pushseq"
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

// pump feeds one observer.
type pump = pushseq.Feed[Event]

// emitter numbers a run's events and hands them to its observers. A nil emitter
// drops everything, so that a run that nobody watches pays nothing.
type emitter struct {
	mu     sync.Mutex
	seq    uint64
	pumps  []*pump
	unread int // events since the observers were last roused
	most   int // of them
}

// unreadMost is how many events may wait for a moment to rouse the observers, unless
// those may be behind by little.
const unreadMost = 32

// newEmitter starts a pump for each observer, and for sink if it is not nil. The
// sink belongs to whoever started the run and is never given up on.
func newEmitter(observers []Observer, sink Observer, buffer int, grace time.Duration) *emitter {
	if len(observers) == 0 && sink == nil {
		return nil
	}
	e := &emitter{most: min(unreadMost, buffer/2+1)}
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
	for _, p := range e.pumps[1:] {
		p.Push(cloneEvent(ev))
	}
	e.pumps[0].Push(ev) // the last, since its observer may change it at once
	e.unread++
	many := e.unread >= e.most
	e.mu.Unlock()
	if many || !wait {
		e.rouse()
	}
	if wait {
		e.wait()
	}
}

// rouse has the observers look at what they have not seen. A run does so before it
// calls anybody and before it waits for anything.
func (e *emitter) rouse() {
	if e == nil {
		return
	}
	e.mu.Lock()
	unread := e.unread
	e.unread = 0
	e.mu.Unlock()
	if unread == 0 {
		return
	}
	for _, p := range e.pumps {
		p.Rouse()
	}
}

// wait holds the run back while an observer is too far behind, all of them at the
// same time.
func (e *emitter) wait() {
	var start time.Time
	for _, p := range e.pumps {
		if room, full := p.Full(); full {
			if start.IsZero() {
				start = time.Now()
			}
			p.Await(room, start)
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
		p.Shut()
	}
	for _, p := range e.pumps {
		p.Join(start)
	}
}

// newPump feeds events to one observer, who may do with them what it likes.
func newPump(o Observer, buffer int, grace time.Duration) *pump {
	return pushseq.NewFeed(func(ev Event) { o.Observe(ev) }, buffer, grace)
}

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
	var fields map[string]any
	text, err := inference.ToJSON(e)
	if err == nil {
		err = text.Decode(&fields)
	}
	if err != nil {
		return []slog.Attr{slog.String("error", err.Error())}
	}
	delete(fields, "time") // the log has its own
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		attrs = append(attrs, slog.Any(name, fields[name]))
	}
	return attrs
}

func logLevel(e Event) slog.Level {
	warn := false
	switch e := e.(type) {
	case RunStarted, RunFinished, RunSuspended, HandedOff, Continued, TicketOpened:
		return slog.LevelInfo
	case Warning, Conflict, GateClashed:
		warn = true
	case HookFinished:
		warn = e.Error != "" || e.Slow
	case EffectFinished:
		warn = e.Error != ""
	case ActionFinished:
		warn = e.Status != ActionDone
	}
	if warn {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}
