package otel

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
)

// span is a stretch of a run's time. The SDK gets to know it when something happens in
// it, so that what stays empty can be left out.
type span struct {
	words
	tracer trace.Tracer
	parent *span
	name   string
	kind   trace.SpanKind
	start  time.Time
	attrs  []attribute.KeyValue // until it is live
	links  []trace.Link
	ctx    context.Context // the trace that it continues; when it is live, its own
	live   trace.Span
}

func (s *span) open() trace.Span {
	if s.live == nil {
		if s.parent != nil {
			s.parent.open()
			s.ctx = s.parent.ctx
		}
		s.ctx, s.live = s.tracer.Start(s.ctx, s.name, trace.WithTimestamp(s.start), trace.WithSpanKind(s.kind),
			trace.WithAttributes(s.attrs...), trace.WithLinks(s.links...))
		s.attrs, s.links = nil, nil
	}
	return s.live
}

func (s *span) know(attrs ...attribute.KeyValue) {
	if s.live != nil {
		s.live.SetAttributes(attrs...)
	} else {
		s.attrs = append(s.attrs, attrs...)
	}
}

// note adds an event.
func (s *span) note(name string, at time.Time, attrs ...attribute.KeyValue) {
	s.open().AddEvent(name, trace.WithTimestamp(at), trace.WithAttributes(attrs...))
}

// fail says that what the span is about went wrong.
func (s *span) fail(class, description string) {
	s.know(semconv.ErrorTypeKey.String(s.clean(class)))
	s.open().SetStatus(codes.Error, s.clean(description))
}

// end ends a span that is live.
func (s *span) end(at time.Time) {
	if s.live != nil {
		s.live.End(trace.WithTimestamp(later(at, s.start)))
	}
}

// breakOff ends a span, if there is one, whose end was not told. It returns nil.
func (s *span) breakOff(at time.Time) *span {
	if s != nil {
		s.know(unfinished.Bool(true))
		s.end(at)
	}
	return nil
}
