package otel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	api "go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/ddd26017/fixpoint/engine"
	lines "github.com/ddd26017/fixpoint/plugins/trace"
)

// ScopeName is the instrumentation scope of all spans and metrics.
const ScopeName = "github.com/ddd26017/fixpoint/contrib/otel"

// Defaults of Options.
const (
	DefaultMaxRuns      = 4096
	DefaultContentBytes = 16 << 10
)

// Options say what is recorded. The zero Options are fine.
type Options struct {
	// Tracers and Meters make the spans and metrics; nil means the global providers, as
	// they are when New is called or set later.
	Tracers trace.TracerProvider
	Meters  metric.MeterProvider
	// Provider names who serves a model, such as "openai", for gen_ai.provider.name. It
	// gets the model of the request, which is "" for the agent's own. It is called during
	// Observe and must not call the Observer.
	Provider func(model string) string
	// Content records prompts, answers, arguments, results and questions for people.
	// They may hold personal data, and secrets that the Rules do not know.
	Content bool
	// Rules say what is hidden in all texts that are recorded, as in a trace: with the zero
	// Rules what looks like a credential, and what JSON has under names such as "password".
	// Keys, Chunks and bounds do not matter, as neither values nor chunks are recorded.
	Rules lines.Rules
	// ContentBytes is how long each of these may be; the rest is cut off. 0 means
	// DefaultContentBytes.
	ContentBytes int
	// EmptyPhases records phases in which nothing happened too.
	EmptyPhases bool
	// MaxRuns is how many runs may be open; beyond, that which was silent longest is
	// ended. 0 means DefaultMaxRuns.
	MaxRuns int
}

// mostKept is how many suspended runs, and how many traces to follow, are remembered.
const mostKept = 1024

// Observer is an engine.Observer that makes spans and metrics of events. It serves any
// number of engines and runs, as long as no two runs at the same time have one id, and
// is safe for concurrent use.
type Observer struct {
	words
	opts   Options
	tracer trace.Tracer
	meters *instruments

	mu      sync.Mutex
	closed  bool
	courses map[string]*course            // open runs by id
	asleep  remembered[trace.SpanContext] // suspended runs by id
	follows remembered[context.Context]   // by id of run or thread
	moment  uint64                        // of the last event
}

// New returns an observer. The error is that of a meter that refused an instrument, or
// tells of options that make no sense.
func New(o Options) (*Observer, error) {
	if o.ContentBytes < 0 || o.MaxRuns < 0 {
		return nil, errors.New("otel: ContentBytes and MaxRuns must not be negative; 0 means the default")
	}
	o.ContentBytes, o.MaxRuns = cmp.Or(o.ContentBytes, DefaultContentBytes), cmp.Or(o.MaxRuns, DefaultMaxRuns)
	if o.Tracers == nil {
		o.Tracers = api.GetTracerProvider()
	}
	if o.Meters == nil {
		o.Meters = api.GetMeterProvider()
	}
	w := words{o.Rules.Hide()}
	meters, err := newInstruments(o.Meters.Meter(ScopeName, metric.WithSchemaURL(semconv.SchemaURL)), w, o.Provider)
	if err != nil {
		return nil, fmt.Errorf("otel: %w", err)
	}
	return &Observer{
		words: w, opts: o, meters: meters,
		tracer:  o.Tracers.Tracer(ScopeName, trace.WithSchemaURL(semconv.SchemaURL)),
		courses: map[string]*course{},
		asleep:  remembered[trace.SpanContext]{},
		follows: remembered[context.Context]{},
	}, nil
}

// Follow makes the next run with that id, or on the thread with that id, part of the
// trace in ctx: of its span, be it of this process or remote. Call it before Run, or
// before Resume for what is resumed. Values in ctx, such as baggage, are there for span
// processors; that ctx ends means nothing. Of more than 1024 that nobody used the
// oldest are forgotten.
func (o *Observer) Follow(ctx context.Context, id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.moment++
		o.follows.put(id, context.WithoutCancel(ctx), o.moment)
	}
}

// Observe takes in an event. Events may be missing, unknown or out of order.
func (o *Observer) Observe(e engine.Event) {
	if e == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		o.meters.drop("closed", 1)
		return
	}
	o.moment++
	o.walk(e)
}

// Close ends all spans that are open, as of their run's last event. Events that come
// later are counted and ignored. It does not flush or shut down the providers.
func (o *Observer) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	o.closed = true
	for _, id := range sortedKeys(o.courses) {
		if c := o.courses[id]; c != nil && c.root == c {
			o.abandon(c)
		}
	}
	o.courses, o.asleep, o.follows = nil, nil, nil
}

// remembered are values that somebody may or may not ask for.
type remembered[V any] map[string]kept[V]

type kept[V any] struct {
	value V
	when  uint64
}

func (r remembered[V]) put(id string, v V, when uint64) {
	if _, known := r[id]; !known && len(r) >= mostKept {
		ids := sortedKeys(r)
		delete(r, slices.MinFunc(ids, func(a, b string) int { return cmp.Compare(r[a].when, r[b].when) }))
	}
	r[id] = kept[V]{v, when}
}

func (r remembered[V]) take(id string) (v V, ok bool) {
	k, ok := r[id]
	delete(r, id)
	return k.value, ok
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
