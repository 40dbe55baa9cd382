package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/state"
)

// Name is the plugin's name.
const Name = "trace"

// DefaultBuffer is how many bytes are kept for a writer that is slow.
const DefaultBuffer = 4 << 20

// Options say where a trace goes. Each writer is optional and gets calls of Write
// from one goroutine at a time; different fields need different writers.
type Options struct {
	// Text gets the timeline while runs go on, and a summary when one ends or waits.
	Text io.Writer
	// Show leaves out one of the two.
	Show Show
	// Lines gets the events themselves, one engine.MarshalEvent a line.
	Lines io.Writer
	// Chrome gets a file in the JSON object form of the Chrome trace-event format, for
	// Perfetto or chrome://tracing. It is complete after Close.
	Chrome io.Writer
	// Buffer is how many bytes are kept for each writer that is slow; 0 means
	// DefaultBuffer. What comes beyond is dropped and counted.
	Buffer int
}

// Show says which text is written.
type Show uint8

// What is shown.
const (
	TimelineAndSummary Show = iota
	TimelineOnly
	SummaryOnly
)

// Mark is an effect that puts a text into the trace, at the place where its plugin
// emitted it. An engine has a handler for it if the Trace is among its plugins.
var Mark = effects.NewSpec[string]("trace.mark")

// mostMarks is how many marks may wait for the event that tells where they belong.
const mostMarks = 4096

// Trace shows the timing of runs. It is an engine.Observer, and a plugin for those
// who emit Mark; Engine.Close closes it then, for all engines that share it. It is safe
// for concurrent use, serves any number of runs and engines, and never holds a run up.
type Trace struct {
	opts   Options
	sinks  []*sink
	text   *sink
	lines  *sink
	chrome *exporter

	mu      sync.Mutex
	closed  bool
	courses map[string]*course // open runs by id
	roots   int                // of which nobody has delegated to
	asleep  map[string]nap     // suspended runs by id
	marks   map[effects.ID]string
	errs    []error
}

// New returns a trace. Close it when the runs are over.
func New(o Options) *Trace {
	t := &Trace{opts: o, courses: map[string]*course{}, asleep: map[string]nap{}, marks: map[effects.ID]string{}}
	if o.Buffer <= 0 {
		o.Buffer = DefaultBuffer
	}
	open := func(name string, w io.Writer) *sink {
		if w == nil {
			return nil
		}
		s := newSink(name, w, o.Buffer)
		t.sinks = append(t.sinks, s)
		return s
	}
	t.text, t.lines = open("text", o.Text), open("lines", o.Lines)
	if s := open("chrome", o.Chrome); s != nil {
		t.chrome = &exporter{out: s}
	}
	return t
}

// Name returns "trace".
func (t *Trace) Name() string { return Name }

// Register registers the handler of Mark. There are no hooks: events tell more than
// a hook could see.
func (t *Trace) Register(r *engine.Registrar) error {
	r.Effect(Mark.Handle(t.mark))
	return nil
}

// mark keeps the text until the event comes that tells of the effect's delivery.
func (t *Trace) mark(ctx context.Context, _ *state.Snapshot, text string) error {
	id, ok := effects.IDFrom(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !ok || len(t.marks) >= mostMarks {
		return fmt.Errorf("trace: %d marks wait for their events; is the trace among Config.Observers?", len(t.marks))
	}
	t.marks[id] = text
	return nil
}

// Observe takes in an event. It does not wait for a writer.
func (t *Trace) Observe(e engine.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	if t.lines != nil {
		line, err := engine.MarshalEvent(e)
		if err != nil {
			t.fault(err)
		} else {
			t.lines.put(append(line, '\n'))
		}
	}
	if t.text != nil || t.chrome != nil {
		t.walk(e)
	}
}

// mostFaults is how many errors are kept besides those of writers.
const mostFaults = 16

func (t *Trace) fault(err error) {
	if len(t.errs) < mostFaults {
		t.errs = append(t.errs, fmt.Errorf("trace: an event is missing: %w", err))
	}
}

// Err returns what went wrong so far, joined: writers that failed or were too slow.
func (t *Trace) Err() error {
	t.mu.Lock()
	errs := append([]error(nil), t.errs...)
	t.mu.Unlock()
	for _, s := range t.sinks {
		errs = append(errs, s.fault())
	}
	return errors.Join(errs...)
}

// Close ends what is open, such as a run whose end was never told, completes the
// files and waits until the writers took everything or ctx ends. It returns what
// Err does. Events that come later are ignored. It does not close the writers.
func (t *Trace) Close(ctx context.Context) error {
	t.mu.Lock()
	if !t.closed {
		t.closed = true
		t.abandon()
		if t.chrome != nil {
			t.chrome.end()
		}
	}
	t.mu.Unlock()
	var errs []error
	for _, s := range t.sinks {
		errs = append(errs, s.drain(ctx))
	}
	return errors.Join(append([]error{t.Err()}, errs...)...)
}
