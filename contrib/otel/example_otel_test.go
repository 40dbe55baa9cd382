package otel_test

import (
	"context"
	"fmt"
	"log"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/ddd26017/fixpoint/contrib/otel"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/loopguard"
)

// The spans are kept in memory here. A program sends them by OTLP, with
// sdktrace.WithBatcher and the exporter of otlptracegrpc or otlptracehttp.
func Example() {
	spans := tracetest.NewInMemoryExporter()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithIDGenerator(otel.IDGenerator{}))
	obs, err := otel.New(otel.Options{Tracers: tracers, Meters: sdkmetric.NewMeterProvider()})
	if err != nil {
		log.Fatal(err)
	}
	eng, err := engine.New(engine.Config{
		Observers: []engine.Observer{obs},
		Plugins:   []engine.Plugin{loopguard.New()},
		Model:     enginetest.NewScript(enginetest.Call("c1", "look", nil), enginetest.Say("nothing there")),
		NewID:     enginetest.NewIDs("id"),
	})
	if err != nil {
		log.Fatal(err)
	}
	in := engine.Prompt("look around")
	in.Tools = []engine.Tool{engine.NewTool(inference.ToolSpec{Name: "look"}, func(context.Context, *phase.Context, struct{}) (engine.Output, error) {
		return engine.Text("a wall"), nil
	})}
	if _, err := eng.Run(context.Background(), engine.AgentSpec{ID: "scout"}, in); err != nil {
		log.Fatal(err)
	}
	obs.Close()
	for _, s := range spans.GetSpans() { // in the order in which they ended
		fmt.Println(s.SpanContext.TraceID().String()[:8], s.Name)
	}
	// Output:
	// c1393402 chat
	// c1393402 hook loopguard/after_inference/0
	// c1393402 phase after_inference
	// c1393402 gate loopguard/tool_gate/0
	// c1393402 phase tool_gate
	// c1393402 hook loopguard/before_tool_execute/0
	// c1393402 phase before_tool_execute
	// c1393402 execute_tool look
	// c1393402 call
	// c1393402 step
	// c1393402 chat
	// c1393402 hook loopguard/after_inference/0
	// c1393402 phase after_inference
	// c1393402 step
	// c1393402 invoke_agent scout
}
