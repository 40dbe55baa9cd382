package otel_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/ddd26017/fixpoint/contrib/otel"
	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// story makes a sequence of events of bytes: any event, in any order, of a few runs,
// calls and tickets, as an engine would never tell them.
func story(data []byte) (events []engine.Event) {
	now := enginetest.Epoch()
	next := func(n int) int {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return int(b) % n
	}
	names := []string{"", "a", "b", "a/1/a", "a/1/b", "\xff\n", strings.Repeat("\x80", 1000), "a/1/a/1/a"}
	name := func() string { return names[next(len(names))] }
	for len(data) > 0 {
		now = now.Add(time.Duration(next(256)-50) * time.Millisecond)
		h := engine.Header{Seq: uint64(next(8)), Time: now, Run: name(), Parent: name(), Thread: name(), Agent: name(), Step: next(3), Phase: phase.Phase(next(12))}
		took := time.Duration(next(256)-10) * time.Millisecond
		call := inference.ToolCall{ID: name(), Name: name(), Args: inference.JSON(name())}
		ticket := gate.Ticket{ID: name(), Call: name(), Message: name()}
		var began time.Time
		var again []engine.Retry
		if next(2) == 1 {
			began, again = now.Add(-took), []engine.Retry{{Began: now, Duration: took * 2}, {}}
		}
		events = append(events, []engine.Event{
			engine.RunStarted{Header: h, Input: name()}, engine.RunFinished{Header: h, Error: name()}, engine.RunSuspended{Header: h}, engine.RunResumed{Header: h},
			engine.StepStarted{Header: h}, engine.StepFinished{Header: h}, engine.PhaseStarted{Header: h, Call: name(), Hooks: next(3)},
			engine.PhaseFinished{Header: h, Rounds: next(2), Error: name()}, engine.HookFinished{Header: h, Hook: name(), Tier: next(2), Began: began, Duration: took, Retries: again},
			engine.Conflict{Header: h, Hook: name(), Fate: "retried"}, engine.Committed{Header: h, Round: next(3), Call: name(), Writes: make([]engine.Write, next(40))},
			engine.RoundFinished{Header: h, Round: next(3)}, engine.ActionFinished{Header: h, Action: name(), Round: next(3), Began: began, Duration: took, Retries: again},
			engine.EffectFinished{Header: h, ID: effects.ID{Run: name()}, Began: began, Duration: took}, engine.GateVoted{Header: h, Call: name(), Gate: name(), Decision: gate.Kind(next(9)), Duration: took},
			engine.GateResolved{Header: h, Call: name()}, engine.GateClashed{Header: h, Call: name()}, engine.CallEdited{Header: h, Call: name()}, engine.TicketOpened{Header: h, Ticket: ticket},
			engine.TicketAnswered{Header: h, Ticket: name(), Call: name()}, engine.ToolStarted{Header: h, Call: call},
			engine.ToolFinished{Header: h, Call: call, Duration: took, Result: inference.ToolResult{Content: name(), Outcome: inference.Outcome(name()), IsError: next(2) == 1}},
			engine.InferenceStarted{Header: h, Model: name()}, engine.InferenceChunk{Header: h},
			engine.InferenceFinished{Header: h, Text: name(), ToolCalls: []inference.ToolCall{call}, Usage: inference.Usage{InputTokens: -1}, Duration: took},
			engine.OverrideApplied{Header: h, Fields: []engine.FieldOrigin{{Field: name()}}},
			engine.RequestTransformed{Header: h}, engine.Continued{Header: h}, engine.HandedOff{Header: h}, engine.Warning{Header: h, Message: name()},
		}[next(30)])
	}
	return events
}

// FuzzObserve tells stories that no engine tells. The observer must not fail; after
// Close all spans that began have ended, and everything in them is text.
func FuzzObserve(f *testing.F) {
	f.Add([]byte("a run"))
	rng := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		data := make([]byte, 2000)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		open := &balance{}
		w := newWatch(t, otel.Options{Content: true, MaxRuns: 2}, sdktrace.WithSpanProcessor(open))
		for _, e := range story(data) {
			w.Observe(e)
		}
		w.Close()
		require.Zero(t, open.n, "spans that began and did not end")
		seen := map[string]bool{}
		for _, s := range w.spans.GetSpans() {
			id := s.SpanContext.SpanID().String()
			require.False(t, seen[id], "a span ended twice")
			seen[id] = true
			require.False(t, s.EndTime.Before(s.StartTime), s.Name)
			texts(s, func(text string) { require.True(t, utf8.ValidString(text) && len(text) < 1<<16, "%q", text) })
		}
		require.NoError(t, w.reader.Collect(t.Context(), &metricdata.ResourceMetrics{}))
	})
}

// balance counts the spans that are open.
type balance struct{ n int }

func (b *balance) OnStart(context.Context, sdktrace.ReadWriteSpan) { b.n++ }
func (b *balance) OnEnd(sdktrace.ReadOnlySpan)                     { b.n-- }
func (b *balance) Shutdown(context.Context) error                  { return nil }
func (b *balance) ForceFlush(context.Context) error                { return nil }

func texts(s tracetest.SpanStub, see func(string)) {
	of := func(attrs []attribute.KeyValue) {
		for _, kv := range attrs {
			see(string(kv.Key))
			see(kv.Value.String())
		}
	}
	see(s.Name)
	see(s.Status.Description)
	of(s.Attributes)
	for _, e := range s.Events {
		see(e.Name)
		of(e.Attributes)
	}
	for _, l := range s.Links {
		of(l.Attributes)
	}
}

// stuck is an exporter that does not come back.
type stuck struct{ until chan struct{} }

func (s stuck) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { <-s.until; return nil }
func (s stuck) Shutdown(context.Context) error                             { return nil }

// A run does not wait for an exporter that hangs, behind a batch processor.
func TestExporterThatHangs(t *testing.T) {
	release := make(chan struct{})
	tracers := sdktrace.NewTracerProvider(sdktrace.WithBatcher(stuck{release}, sdktrace.WithMaxExportBatchSize(1), sdktrace.WithMaxQueueSize(4)))
	w := newWatch(t, otel.Options{})
	var err error
	w.Observer, err = otel.New(otel.Options{Tracers: tracers})
	require.NoError(t, err)
	c := config(t, w, enginetest.Call("c1", "burn", nil), enginetest.Say("done"))
	res := run(t, c, engine.AgentSpec{ID: "clerk"})
	require.Equal(t, phase.ReasonNatural, res.Reason)
	w.Close()
	close(release)
	require.NoError(t, tracers.Shutdown(t.Context()))
}
