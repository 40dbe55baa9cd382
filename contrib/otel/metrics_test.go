package otel_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/ddd26017/fixpoint/contrib/otel"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// figures are how often and how much a histogram has of some attributes.
func figures[N int64 | float64](t *testing.T, m metricdata.Metrics, with ...attribute.KeyValue) (n uint64, sum N, bounds []float64) {
	t.Helper()
	for _, p := range m.Data.(metricdata.Histogram[N]).DataPoints {
		if has(p.Attributes, with) {
			n, sum, bounds = n+p.Count, sum+p.Sum, p.Bounds
		}
	}
	return n, sum, bounds
}

// The metrics of a run with something of each kind.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t, otel.Options{Provider: func(string) string { return "scripted" }})
		rich(t, w)
		of := attribute.String
		usage := w.metric(t, "gen_ai.client.token.usage")
		require.Equal(t, "{token}", usage.Unit)
		n, tokens, bounds := figures[int64](t, usage, of("gen_ai.token.type", "input"), of("gen_ai.operation.name", "chat"), of("gen_ai.provider.name", "scripted"))
		require.EqualValues(t, 2, n, "the answer without figures is not counted")
		require.EqualValues(t, 127, tokens)
		require.Equal(t, []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}, bounds)
		_, tokens, _ = figures[int64](t, usage, of("gen_ai.token.type", "output"))
		require.EqualValues(t, 21, tokens)

		operations := w.metric(t, "gen_ai.client.operation.duration")
		require.Equal(t, "s", operations.Unit)
		n, seconds, bounds := figures[float64](t, operations, of("gen_ai.operation.name", "chat"))
		require.EqualValues(t, 3, n)
		require.InDelta(t, 0.45, seconds, 0.001)
		require.Equal(t, []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}, bounds)
		n, _, _ = figures[float64](t, operations, of("gen_ai.operation.name", "invoke_agent"), of("gen_ai.agent.name", "helper"))
		require.EqualValues(t, 1, n)
		n, seconds, _ = figures[float64](t, operations, of("gen_ai.operation.name", "execute_tool"), of("gen_ai.tool.name", "burn"), of("error.type", "error"))
		require.EqualValues(t, 1, n)
		require.InDelta(t, 0.005, seconds, 0.001)
		n, _, _ = figures[float64](t, operations, of("gen_ai.tool.name", "wipe"))
		require.Zero(t, n, "it was blocked")

		n, _, _ = figures[float64](t, w.metric(t, "fixpoint.hook.duration"), of("fixpoint.hook", "office/step_end/0"), of("fixpoint.hook.status", "skipped"))
		require.EqualValues(t, 1, n, "in the second step")
		n, rounds, _ := figures[int64](t, w.metric(t, "fixpoint.phase.rounds"), of("fixpoint.phase", "step_end"))
		require.EqualValues(t, 3, n)
		require.EqualValues(t, 4, rounds)
		require.EqualValues(t, 3, w.sum(t, "fixpoint.conflicts", of("fixpoint.key", "board"), of("fixpoint.conflict.fate", "retried")))
		require.EqualValues(t, 3, w.sum(t, "fixpoint.retries", of("fixpoint.plugin", "office"), of("fixpoint.phase", "step_start")))
		require.EqualValues(t, 1, w.sum(t, "fixpoint.gate.decisions", of("fixpoint.gate.decision", "block"), of("fixpoint.plugin", "office")))
		require.EqualValues(t, 1, w.sum(t, "fixpoint.gate.decisions", of("fixpoint.gate.decision", "approve")))
		require.EqualValues(t, 2, w.sum(t, "fixpoint.effects", of("fixpoint.effect", "mail"), of("fixpoint.outcome", "error")))
		require.EqualValues(t, 1, w.sum(t, "fixpoint.calls", of("fixpoint.tool.outcome", "blocked")))
		require.EqualValues(t, 2, w.sum(t, "fixpoint.calls", of("fixpoint.tool.outcome", "ok")))
		require.EqualValues(t, 2, w.sum(t, "fixpoint.runs", of("fixpoint.run.reason", "natural")))
	})
}

// Whatever events say, the metrics have a bounded number of series, and none has an id.
func TestCardinality(t *testing.T) {
	w := newWatch(t, otel.Options{})
	for i := range 5000 {
		id := fmt.Sprintf("id-%d", i)
		h := engine.Header{Run: id, Thread: id, Agent: "name-" + id, Step: 1, Phase: phase.StepStart}
		w.Observe(engine.RunStarted{Header: h})
		w.Observe(engine.InferenceStarted{Header: h, Model: "name-" + id})
		w.Observe(engine.InferenceFinished{Header: h, Usage: inference.Usage{InputTokens: 1}, Error: "name-" + id})
		w.Observe(engine.HookFinished{Header: h, Plugin: "name-" + id, Hook: "name-" + id, Duration: -time.Second})
		w.Observe(engine.Conflict{Header: h, Key: "name-" + id, Entry: id})
		w.Observe(engine.GateResolved{Header: h, Call: id, Tool: "tool-" + id, Decision: gate.KindBlock, Plugin: "name-" + id})
		w.Observe(engine.ToolFinished{Header: h, Call: inference.ToolCall{ID: id, Name: "tool-" + id}, Result: inference.ToolResult{Outcome: inference.OutcomeBlocked}})
		w.Observe(engine.EffectFinished{Header: h, Effect: "name-" + id})
		w.Observe(engine.RunFinished{Header: h, Reason: phase.Reason("name-" + id)})
	}
	var all metricdata.ResourceMetrics
	require.NoError(t, w.reader.Collect(t.Context(), &all))
	for _, m := range all.ScopeMetrics[0].Metrics {
		sets := 0
		each(m, func(set attribute.Set) {
			sets++
			for _, kv := range set.ToSlice() {
				require.NotRegexp(t, "^(id|tool)-", kv.Value.String(), "%s %s", m.Name, kv.Key)
			}
		})
		require.LessOrEqual(t, sets, 2*257, m.Name)
	}
	w.spans.Reset()
}

func each(m metricdata.Metrics, fn func(attribute.Set)) {
	switch d := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range d.DataPoints {
			fn(p.Attributes)
		}
	case metricdata.Histogram[int64]:
		for _, p := range d.DataPoints {
			fn(p.Attributes)
		}
	case metricdata.Histogram[float64]:
		for _, p := range d.DataPoints {
			fn(p.Attributes)
		}
	}
}
