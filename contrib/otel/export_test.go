package otel_test

import (
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	spanpb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/ddd26017/fixpoint/contrib/otel"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
)

// collector takes spans by OTLP over gRPC.
type collector struct {
	tracepb.UnimplementedTraceServiceServer
	mu    sync.Mutex
	spans []*spanpb.Span
	scope []string
}

func (c *collector) Export(_ context.Context, r *tracepb.ExportTraceServiceRequest) (*tracepb.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range r.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			c.scope = append(c.scope, scope.Scope.Name+" "+scope.SchemaUrl)
			c.spans = append(c.spans, scope.Spans...)
		}
	}
	return &tracepb.ExportTraceServiceResponse{}, nil
}

// Spans go through the SDK's batch processor and OTLP exporter, over gRPC, to a
// receiver, and come out there as they are in memory; so do names that are no text.
func TestOTLPTraces(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server, received := grpc.NewServer(), &collector{}
	tracepb.RegisterTraceServiceServer(server, received)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	exporter, err := otlptracegrpc.New(t.Context(), otlptracegrpc.WithInsecure(), otlptracegrpc.WithEndpoint(listener.Addr().String()))
	require.NoError(t, err)
	w := newWatch(t, otel.Options{})
	tracers := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithSyncer(w.spans))
	w.Observer, err = otel.New(otel.Options{Tracers: tracers, Content: true})
	require.NoError(t, err)

	c := config(t, w, enginetest.Call("c1", "burn", nil).And(enginetest.Call("c\xff2", "bad\xfftool\x00", nil)), enginetest.Say("bye\xff"))
	run(t, c, engine.AgentSpec{ID: "clerk"})
	w.Observe(engine.RunStarted{Header: engine.Header{Run: "\xff", Agent: strings.Repeat("é\xff", 4000)}, Input: "\xc3"})
	w.Observe(engine.ToolStarted{Header: engine.Header{Run: "\xff"}, Call: inference.ToolCall{ID: "\xff", Name: "\xff", Args: "{\xff"}})
	w.Observe(engine.Warning{Header: engine.Header{Run: "\xff"}, Message: "a\xffb"})
	w.Close()
	require.NoError(t, tracers.ForceFlush(t.Context()))
	all := w.spans.GetSpans()
	require.NoError(t, tracers.Shutdown(t.Context()))
	server.GracefulStop()
	require.NoError(t, <-served)

	kept := map[string]string{}
	for _, s := range all {
		id, parent := s.SpanContext.SpanID(), s.Parent.SpanID()
		kept[string(id[:])] = s.Name + string(parent[:])
	}
	require.Equal(t, len(kept), len(received.spans))
	for _, s := range received.spans {
		parent := string(s.ParentSpanId)
		if parent == "" {
			parent = strings.Repeat("\x00", 8)
		}
		require.Equal(t, kept[string(s.SpanId)], s.Name+parent)
		require.Less(t, len(s.Name), 1200)
		require.LessOrEqual(t, s.StartTimeUnixNano, s.EndTimeUnixNano)
	}
	require.Equal(t, otel.ScopeName+" https://opentelemetry.io/schemas/1.41.0", received.scope[0])
	burn := received.named("execute_tool burn")
	require.Equal(t, spanpb.Status_STATUS_CODE_ERROR, burn.Status.Code)
	require.Equal(t, "error", text(burn.Attributes, "error.type"))
	require.Equal(t, spanpb.Span_SPAN_KIND_CLIENT, received.named("chat").Kind)
	require.Equal(t, "clerk", text(received.named("invoke_agent clerk").Attributes, "gen_ai.agent.name"))
}

func (c *collector) named(name string) *spanpb.Span {
	for _, s := range c.spans {
		if s.Name == name {
			return s
		}
	}
	return &spanpb.Span{}
}

func text(attrs []*commonpb.KeyValue, key string) string {
	for _, a := range attrs {
		if a.Key == key {
			return a.Value.GetStringValue()
		}
	}
	return ""
}

// Metrics go by OTLP over HTTP to a receiver.
func TestOTLPMetrics(t *testing.T) {
	var mu sync.Mutex
	var got []*metricspb.ExportMetricsServiceRequest
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			var err error
			if body, err = gzip.NewReader(r.Body); err != nil {
				http.Error(rw, err.Error(), http.StatusBadRequest)
				return
			}
		}
		data, err := io.ReadAll(body)
		request := &metricspb.ExportMetricsServiceRequest{}
		if err == nil {
			err = proto.Unmarshal(data, request)
		}
		if err != nil || r.URL.Path != "/v1/metrics" || r.Header.Get("Content-Type") != "application/x-protobuf" {
			http.Error(rw, "not OTLP", http.StatusBadRequest)
			return
		}
		mu.Lock()
		got = append(got, request)
		mu.Unlock()
		rw.Header().Set("Content-Type", "application/x-protobuf")
		answer, _ := proto.Marshal(&metricspb.ExportMetricsServiceResponse{})
		_, _ = rw.Write(answer)
	}))
	defer server.Close()
	exporter, err := otlpmetrichttp.New(t.Context(), otlpmetrichttp.WithEndpointURL(server.URL+"/v1/metrics"))
	require.NoError(t, err)
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter, sdkmetric.WithInterval(time.Hour))))
	w := newWatch(t, otel.Options{})
	w.Observer, err = otel.New(otel.Options{Meters: meters})
	require.NoError(t, err)
	c := config(t, w, enginetest.Call("c1", "burn", nil).And(enginetest.Call("c2", "b\xffd", nil)),
		enginetest.Say("done").Costing(inference.Usage{InputTokens: 5, OutputTokens: 3}))
	run(t, c, engine.AgentSpec{ID: "clerk\xff"})
	require.NoError(t, meters.Shutdown(t.Context()))

	require.Len(t, got, 1)
	found := map[string]bool{}
	for _, m := range got[0].ResourceMetrics[0].ScopeMetrics[0].Metrics {
		found[m.Name] = true
		switch m.Name {
		case "fixpoint.runs":
			point := m.GetSum().DataPoints[0]
			require.EqualValues(t, 1, point.GetAsInt())
			require.Equal(t, "natural", text(point.Attributes, "fixpoint.run.reason"))
			require.Equal(t, "clerk\uFFFD", text(point.Attributes, "gen_ai.agent.name"))
		case "gen_ai.client.token.usage":
			require.Len(t, m.GetHistogram().DataPoints, 2)
			require.Len(t, m.GetHistogram().DataPoints[0].ExplicitBounds, 14)
		}
	}
	for _, name := range []string{"gen_ai.client.token.usage", "gen_ai.client.operation.duration", "fixpoint.hook.duration", "fixpoint.phase.rounds",
		"fixpoint.conflicts", "fixpoint.retries", "fixpoint.gate.decisions", "fixpoint.calls", "fixpoint.effects", "fixpoint.runs"} {
		require.True(t, found[name], name)
	}
}

// A Prometheus server that scrapes the program finds the metrics under its own names.
func TestPrometheus(t *testing.T) {
	registry := prometheus.NewRegistry()
	exporter, err := promexporter.New(promexporter.WithRegisterer(registry))
	require.NoError(t, err)
	w := newWatch(t, otel.Options{})
	w.Observer, err = otel.New(otel.Options{Meters: sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))})
	require.NoError(t, err)
	c := config(t, w, enginetest.Call("c1", "burn", nil).And(enginetest.Call("c2", "wipe", nil)),
		enginetest.Say("done").Costing(inference.Usage{InputTokens: 5, OutputTokens: 3}))
	run(t, c, engine.AgentSpec{ID: "clerk"})
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer server.Close()
	resp, err := http.Get(server.URL)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	require.NoError(t, err)

	counter := func(name string, labels ...string) (n float64) {
		require.Contains(t, families, name)
		for _, m := range families[name].Metric {
			if labelled(m, labels) {
				n += m.GetCounter().GetValue()
			}
		}
		return n
	}
	require.EqualValues(t, 1, counter("fixpoint_runs_total", "fixpoint_run_reason", "natural", "gen_ai_agent_name", "clerk"))
	require.EqualValues(t, 1, counter("fixpoint_gate_decisions_total", "fixpoint_gate_decision", "block", "fixpoint_plugin", "office"))
	require.EqualValues(t, 1, counter("fixpoint_calls_total", "fixpoint_tool_outcome", "error"))
	require.EqualValues(t, 2, counter("fixpoint_conflicts_total", "fixpoint_key", "board"))
	require.EqualValues(t, 1, counter("fixpoint_effects_total", "fixpoint_outcome", "error"))
	require.Contains(t, families, "gen_ai_client_operation_duration_seconds")
	for _, m := range families["gen_ai_client_operation_duration_seconds"].Metric {
		if labelled(m, []string{"gen_ai_operation_name", "chat"}) {
			require.EqualValues(t, 2, m.GetHistogram().GetSampleCount())
			require.Len(t, m.GetHistogram().Bucket, 15)
		}
	}
	for _, m := range families["gen_ai_client_token_usage"].Metric {
		if labelled(m, []string{"gen_ai_token_type", "input"}) {
			require.EqualValues(t, 5, m.GetHistogram().GetSampleSum())
		}
	}
	for _, name := range []string{"gen_ai_client_token_usage", "fixpoint_hook_duration_seconds", "fixpoint_phase_rounds", "fixpoint_retries_total"} {
		require.Contains(t, families, name)
	}
}

func labelled(m *dto.Metric, labels []string) bool {
	have := map[string]string{}
	for _, l := range m.Label {
		have[l.GetName()] = l.GetValue()
	}
	for i := 0; i < len(labels); i += 2 {
		if have[labels[i]] != labels[i+1] {
			return false
		}
	}
	return true
}
