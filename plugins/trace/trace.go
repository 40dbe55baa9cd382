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

// What is kept of what is not written yet: bytes for each writer that is slow, and events
// that wait to be encoded.
const (
	DefaultBuffer = 4 << 20
	DefaultEvents = 1 << 16
)

// Options say where a trace goes. Each writer is optional and gets calls of Write
// from one goroutine at a time; different fields need different writers.
type Options struct {
	// Text gets the timeline while runs go on, and a summary when one ends or waits.
	Text io.Writer
	// Show leaves out one of the two.
	Show Show
	// Lines gets the events themselves, as Detailed returns them, one a line behind a
	// header. Read reads them; docs/trace.md tells of the format.
	Lines io.Writer
	// Chrome gets a file in the JSON object form of the Chrome trace-event format, for
	// Perfetto or chrome://tracing. It is complete after Close.
	Chrome io.Writer
	// Rules say what none of the writers is told.
	Rules Rules
	// Buffer is how many bytes are kept for each writer that is slow; 0 means
	// DefaultBuffer. What comes beyond is dropped, counted, and told of where it is missing.
	Buffer int
	// Events is how many events are kept until they are encoded; 0 means DefaultEvents.
	// What comes beyond is missing from all writers, and told of in the same way. An
	// event holds on to the states before and after it, which share what is the same.
	Events int
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
	queue  queue
	censor *censor

	mu    sync.Mutex
	marks map[effects.ID]string
	errs  []error

	// What follows is used by the queue's goroutine alone.
	encoder *encoder
	said    speeches
	text    *sink
	lines   *sink
	headed  bool // the lines have their header
	missing int  // events that were not written
	chrome  *exporter
	courses map[string]*course // open runs by id
	roots   int                // of which nobody has delegated to
	asleep  map[string]nap     // suspended runs by id
	marked  string             // the text of the mark that the event is about
}

// New returns a trace. Close it when the runs are over.
func New(o Options) *Trace {
	c := o.Rules.censor()
	t := &Trace{opts: o, censor: c, encoder: newEncoder(c), said: speeches{censor: c}, courses: map[string]*course{}, asleep: map[string]nap{}, marks: map[effects.ID]string{}}
	if o.Buffer <= 0 {
		o.Buffer = DefaultBuffer
	}
	if o.Events <= 0 {
		o.Events = DefaultEvents
	}
	t.queue = queue{limit: o.Events, take: t.take, rest: t.flush, fault: t.fault}
	open := func(name string, w io.Writer) *sink {
		if w == nil {
			return nil
		}
		s := newSink(name, w, o.Buffer)
		t.sinks = append(t.sinks, s)
		return s
	}
	t.text, t.lines = open("text", o.Text), open("lines", o.Lines)
	if t.text != nil {
		t.text.notice = func(n int) []byte { return fmt.Appendf(nil, "(%s missing)\n", count(n, "piece")) }
	}
	if t.lines != nil {
		t.lines.notice = droppedEvents
	}
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

// Observe takes in an event, to be encoded later in another goroutine.
func (t *Trace) Observe(e engine.Event) {
	if len(t.sinks) == 0 {
		return
	}
	in := entry{event: e}
	if e, ok := e.(engine.EffectFinished); ok && e.Effect == Mark.Name() {
		t.mu.Lock()
		if text, ok := t.marks[e.ID]; ok {
			in.note().mark = text
		}
		delete(t.marks, e.ID)
		t.mu.Unlock()
	}
	t.queue.put(in)
}

// take writes an event down, or that the trace ends.
func (t *Trace) take(in entry) {
	if in.aside == nil {
		in.aside = &nothing
	} else {
		t.lose(in.lost)
	}
	if in.event == nil {
		t.abandon()
		if t.lines != nil {
			t.lines.tell()
		}
		if t.text != nil {
			t.text.tell()
		}
		if t.chrome != nil {
			t.chrome.end(t.missing)
		}
		return
	}
	e, line, err := t.encoder.detailed(t.said.event(in.event))
	if err != nil {
		t.fault(fmt.Errorf("trace: an event is missing: %w", err))
		t.lose(1)
		return
	}
	if t.lines != nil {
		if !t.headed {
			t.headed = true
			t.lines.must(header(e.Head().Time))
		}
		t.lines.put(append(line, '\n'))
	}
	if t.text != nil || t.chrome != nil {
		t.marked = t.censor.text(in.mark)
		t.walk(e)
	}
}

var nothing aside

// flush has the writers write what they have.
func (t *Trace) flush() {
	for _, s := range t.sinks {
		s.flush()
	}
}

// lose notes that events are missing for all writers.
func (t *Trace) lose(events int) {
	t.missing += events
	for _, s := range t.sinks {
		s.lose(events)
	}
}

// mostFaults is how many errors are kept besides those of writers.
const mostFaults = 16

func (t *Trace) fault(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.errs) < mostFaults {
		t.errs = append(t.errs, err)
	}
}

// Err returns what went wrong so far, joined: events that are missing, writers that
// failed or were too slow.
func (t *Trace) Err() error {
	t.mu.Lock()
	errs := append([]error(nil), t.errs...)
	t.mu.Unlock()
	if n := t.queue.dropped(); n > 0 {
		errs = append(errs, fmt.Errorf("trace: %s dropped, which came faster than they were encoded", count(n, "event")))
	}
	for _, s := range t.sinks {
		errs = append(errs, s.fault())
	}
	return errors.Join(errs...)
}

// Close ends what is open, such as a run whose end was never told, completes the
// files and waits until the writers took everything or ctx ends. It returns what
// Err does. Events that come later are ignored. It does not close the writers.
func (t *Trace) Close(ctx context.Context) error {
	t.queue.end()
	errs := []error{t.queue.drain(ctx)}
	for _, s := range t.sinks {
		errs = append(errs, s.drain(ctx))
	}
	return errors.Join(append([]error{t.Err()}, errs...)...)
}
