package engine

import (
	"context"
	"log/slog"
	"maps"
	"slices"
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

// emitter numbers a run's events and hands them to its observers. A run rouses it
// before it calls anybody and before it waits for anything.
type emitter = pushseq.Group[Event]

// newEmitter returns nil if there is nobody to tell. The sink belongs to whoever
// started the run and is never given up on.
func newEmitter(observers []Observer, sink Observer, buffer int, grace time.Duration) *emitter {
	if len(observers) == 0 && sink == nil {
		return nil
	}
	e := pushseq.NewGroup(buffer, cloneEvent)
	for _, o := range observers {
		e.Add(o.Observe, grace)
	}
	if sink != nil {
		e.Add(sink.Observe, 0)
	}
	return e
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
		warn = e.Error != ""
	}
	if warn {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}
