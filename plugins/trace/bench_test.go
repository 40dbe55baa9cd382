package trace_test

import (
	"io"
	"testing"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/plugins/trace"
)

// BenchmarkLines measures what it takes to write down the events of a run, one each.
func BenchmarkLines(b *testing.B) {
	c, rec := enginetest.Config(b, busy())
	c.Model = enginetest.NewScript(enginetest.Call("c1", "look", nil), enginetest.Say("done"))
	eng, err := engine.New(c)
	if err != nil {
		b.Fatal(err)
	}
	in := engine.Prompt("go")
	in.Tools = tools()
	if _, err := eng.Run(b.Context(), engine.AgentSpec{ID: "a"}, in); err != nil {
		b.Fatal(err)
	}
	events := rec.Events()
	b.ReportAllocs()
	for b.Loop() {
		tr := trace.New(trace.Options{Lines: io.Discard})
		for _, e := range events {
			tr.Observe(e)
		}
		if err := tr.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(events)), "ns/event")
}
