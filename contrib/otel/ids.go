package otel

import (
	"context"
	"crypto/rand"
	"crypto/sha256"

	"go.opentelemetry.io/otel/trace"
)

// runKey is where a context has the id of the run whose span is to be made.
type runKey struct{}

// IDGenerator makes ids for the SDK: that of the trace of a run comes from the run's id,
// so that all its parts are in one trace, whatever process they run in. All others are
// random. The SDK takes it by WithIDGenerator. It is safe for concurrent use.
//
// The trace's id is no secret to those who know the run's. Give runs that belong
// together different ids: two of one id would share a trace.
type IDGenerator struct{}

// NewIDs returns the ids of a span that begins a trace.
func (g IDGenerator) NewIDs(ctx context.Context) (t trace.TraceID, s trace.SpanID) {
	if run, ok := ctx.Value(runKey{}).(string); ok {
		sum := sha256.Sum256([]byte("fixpoint run " + run))
		copy(t[:], sum[:])
	}
	for !t.IsValid() {
		_, _ = rand.Read(t[:]) // it never fails
	}
	return t, g.NewSpanID(ctx, t)
}

// NewSpanID returns the id of a span in a trace.
func (IDGenerator) NewSpanID(context.Context, trace.TraceID) (s trace.SpanID) {
	for !s.IsValid() {
		_, _ = rand.Read(s[:])
	}
	return s
}
