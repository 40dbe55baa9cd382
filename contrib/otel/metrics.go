package otel

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/semconv/v1.41.0/genaiconv"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// other stands for what has no name of its own.
const other = "_OTHER"

// mostValues is how many values an attribute of the metrics may have.
const mostValues = 256

// Buckets. The first two are those of the conventions.
var (
	tokenBuckets    = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
	durationBuckets = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	hookBuckets     = []float64{0.00001, 0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60}
	roundBuckets    = []float64{0, 1, 2, 3, 4, 6, 8, 12, 16}
)

// instruments are what is measured. The Observer's lock guards them.
type instruments struct {
	words
	providerOf func(model string) string
	values     map[attribute.Key]map[string]bool

	usage                                                        genaiconv.ClientTokenUsage
	durations                                                    genaiconv.ClientOperationDuration
	hooks                                                        metric.Float64Histogram
	rounds                                                       metric.Int64Histogram
	conflicts, retries, decisions, calls, effects, runs, dropped metric.Int64Counter
}

func newInstruments(m metric.Meter, w words, provider func(string) string) (*instruments, error) {
	i := &instruments{words: w, providerOf: provider, values: map[attribute.Key]map[string]bool{}}
	var errs []error
	counter := func(name, unit, description string) metric.Int64Counter {
		c, err := m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		return c
	}
	var err error
	i.usage, err = genaiconv.NewClientTokenUsage(m, metric.WithExplicitBucketBoundaries(tokenBuckets...))
	errs = append(errs, err)
	i.durations, err = genaiconv.NewClientOperationDuration(m, metric.WithExplicitBucketBoundaries(durationBuckets...))
	errs = append(errs, err)
	i.hooks, err = m.Float64Histogram("fixpoint.hook.duration", metric.WithUnit("s"),
		metric.WithDescription("Time of a hook in a phase, all its calls together."), metric.WithExplicitBucketBoundaries(hookBuckets...))
	errs = append(errs, err)
	i.rounds, err = m.Int64Histogram("fixpoint.phase.rounds", metric.WithUnit("{round}"),
		metric.WithDescription("Action rounds until a phase came to rest."), metric.WithExplicitBucketBoundaries(roundBuckets...))
	errs = append(errs, err)
	i.conflicts = counter("fixpoint.conflicts", "{conflict}", "Conflicts over a key.")
	i.retries = counter("fixpoint.retries", "{retry}", "Calls of hooks and actions after a lost conflict.")
	i.decisions = counter("fixpoint.gate.decisions", "{decision}", "What all gates over a call decided together.")
	i.calls = counter("fixpoint.calls", "{call}", "Tool calls that ended.")
	i.effects = counter("fixpoint.effects", "{effect}", "Effects that were delivered or failed.")
	i.runs = counter("fixpoint.runs", "{run}", "Runs that ended or wait.")
	i.dropped = counter("fixpoint.events.dropped", "{event}", "Events that were not seen.")
	return i, errors.Join(errs...)
}

// label returns an attribute that has a bounded number of values.
func (i *instruments) label(key attribute.Key, value string) attribute.KeyValue {
	value = i.clean(value)
	known := i.values[key]
	switch {
	case known[value]:
	case len(known) >= mostValues:
		value = other
	case known == nil:
		i.values[key] = map[string]bool{value: true}
	default:
		known[value] = true
	}
	return key.String(value)
}

func count(c metric.Int64Counter, n int64, attrs ...attribute.KeyValue) {
	c.Add(context.Background(), n, metric.WithAttributes(attrs...))
}

func (i *instruments) provider(model string) string {
	if i.providerOf == nil {
		return other
	}
	if p := i.providerOf(model); p != "" {
		return p
	}
	return other
}

// operation records the duration of an operation of the conventions: which is who did
// it, if that is not a model.
func (i *instruments) operation(name attribute.KeyValue, took time.Duration, model, class string, which attribute.Key, who string) {
	attrs := []attribute.KeyValue{name, i.label(semconv.GenAIProviderNameKey, i.provider(model))}
	if model != "" {
		attrs = append(attrs, i.label(semconv.GenAIRequestModelKey, model))
	}
	if class != "" {
		attrs = append(attrs, i.label(semconv.ErrorTypeKey, class))
	}
	if which != "" {
		attrs = append(attrs, i.label(which, who))
	}
	i.durations.Float64Histogram.Record(context.Background(), max(0, took.Seconds()), metric.WithAttributes(attrs...))
}

func (i *instruments) tokens(model string, u inference.Usage) {
	if u == (inference.Usage{}) {
		return
	}
	attrs := []attribute.KeyValue{semconv.GenAIOperationNameChat, i.label(semconv.GenAIProviderNameKey, i.provider(model))}
	if model != "" {
		attrs = append(attrs, i.label(semconv.GenAIRequestModelKey, model))
	}
	for _, of := range []struct {
		kind attribute.KeyValue
		n    int64
	}{{semconv.GenAITokenTypeInput, u.InputTokens}, {semconv.GenAITokenTypeOutput, u.OutputTokens}} {
		i.usage.Int64Histogram.Record(context.Background(), max(0, of.n), metric.WithAttributes(append(attrs[:len(attrs):len(attrs)], of.kind)...))
	}
}

func (i *instruments) hook(plugin, hook string, p phase.Phase, status string, took time.Duration, retries int) {
	i.hooks.Record(context.Background(), max(0, took.Seconds()), metric.WithAttributes(i.label("fixpoint.plugin", plugin),
		i.label("fixpoint.hook", hook), i.label("fixpoint.phase", p.String()), i.label("fixpoint.hook.status", status)))
	i.retried(plugin, p, retries)
}

func (i *instruments) retried(plugin string, p phase.Phase, n int) {
	if n > 0 {
		count(i.retries, int64(n), i.label("fixpoint.plugin", plugin), i.label("fixpoint.phase", p.String()))
	}
}

func (i *instruments) phase(p phase.Phase, rounds int) {
	i.rounds.Record(context.Background(), int64(max(0, rounds)), metric.WithAttributes(i.label("fixpoint.phase", p.String())))
}

func (i *instruments) conflict(key, fate string) {
	count(i.conflicts, 1, i.label("fixpoint.key", key), i.label("fixpoint.conflict.fate", fate))
}

func (i *instruments) decision(decision, cause, plugin string) {
	count(i.decisions, 1, i.label("fixpoint.gate.decision", decision), i.label("fixpoint.gate.cause", cause), i.label("fixpoint.plugin", plugin))
}

func (i *instruments) call(outcome string) {
	count(i.calls, 1, i.label("fixpoint.tool.outcome", outcome))
}

func (i *instruments) effect(name, outcome string) {
	count(i.effects, 1, i.label("fixpoint.effect", name), i.label("fixpoint.outcome", outcome))
}

func (i *instruments) run(agent, reason string) {
	count(i.runs, 1, i.label(semconv.GenAIAgentNameKey, agent), i.label("fixpoint.run.reason", reason))
}

func (i *instruments) drop(reason string, n int64) {
	count(i.dropped, n, i.label("fixpoint.drop.reason", reason))
}
