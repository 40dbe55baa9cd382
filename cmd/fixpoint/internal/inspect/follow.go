package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ddd26017/fixpoint/plugins/trace"
	"github.com/ddd26017/fixpoint/plugins/trace/recording"
)

// followEvery is how often a file is looked at for more.
const followEvery = 100 * time.Millisecond

// mostFaults is how many lines that are no events are told one by one.
const mostFaults = 20

// Read reads a trace as far as it goes. Lines that are no events are notes of the
// recording. The error says why the file cannot be read.
func Read(path string) (*recording.Recording, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	in := intake{rec: recording.New(path)}
	if err := in.all(file); err != nil {
		return nil, err
	}
	if in.lines == 0 && in.faults == 0 {
		return nil, fmt.Errorf("%s %w: it is empty, and nothing was recorded in it", path, ErrNoTrace)
	}
	return in.rec, in.judge(path)
}

// ErrNoTrace is returned for a file that has lines and none of them an event, and by Read
// for one without lines. Follow waits for those.
var ErrNoTrace = errors.New("is no trace")

// Follow reads a trace into a source, and what is added to the file until ctx ends. A
// file that is begun anew is shown from its beginning; one that took the place of
// another is taken as going on with it, unless it begins with the first event of a run.
// caught is called once, when what was there at first was read. The error says why
// the file cannot be read, or is ErrNoTrace.
func Follow(ctx context.Context, path string, source *Source, caught func()) error {
	return follow(ctx, path, source, caught, followEvery)
}

func follow(ctx context.Context, path string, source *Source, caught func(), every time.Duration) error {
	in := intake{rec: source.Recording()}
	in.rec.SetLive(true)
	anew := func(note string) {
		in = intake{rec: recording.New(path)}
		in.rec.SetLive(true)
		in.rec.Note(note)
		source.Replace(in.rec)
	}
	atEnd := func() error {
		err := in.judge(path)
		if err == nil {
			caught()
			caught = func() {}
		}
		return err
	}
	for ctx.Err() == nil {
		t := &tail{ctx: ctx, path: path, every: every, atEnd: atEnd}
		if err := t.open(); err != nil {
			return err // also of one that was taken away just now
		}
		err := in.all(t)
		switch _ = t.file.Close(); { // it was only read
		case ctx.Err() != nil:
			return nil
		case errors.Is(t.gone, errCut):
			anew("the file was begun anew; this is what it holds now")
		case errors.Is(t.gone, errReplaced):
			in.next = func() { anew("another file took the place of the one that was shown before") }
		case err != nil:
			return err
		}
	}
	return nil
}

// intake puts the lines of traces into a recording.
type intake struct {
	rec    *recording.Recording
	lines  int // that tell something
	events int
	faults int
	first  error // of the faults
	seen   func(trace.Line)
	next   func() // called before the first event of a file if it does not go on with the one before
}

// all adds all lines. The error is that of the reader, or says why the rest is not read.
func (in *intake) all(from io.Reader) error {
	r := &watched{from: from}
	var last error
	for line, err := range trace.Read(r) {
		if last = err; err == nil {
			in.add(line)
		} else if r.err == nil || r.err == io.EOF {
			in.fault(err)
		}
	}
	switch r.err {
	case io.EOF:
		return nil
	case nil:
		return last // after which it could not go on
	default:
		return r.err
	}
}

func (in *intake) add(line trace.Line) {
	if begin := in.next; begin != nil && line.Event != nil {
		in.next = nil
		if h := line.Event.Head(); h.Seq == 1 && h.Parent == "" {
			begin()
		}
	}
	if in.seen != nil {
		in.seen(line)
	}
	in.lines++
	if line.Event != nil {
		in.events++
	}
	in.rec.Add(line)
}

// judge reports whether what was read so far is a trace.
func (in *intake) judge(path string) error {
	if in.events == 0 && in.first != nil && !errors.Is(in.first, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s %w: %w", path, ErrNoTrace, in.first)
	}
	return nil
}

// fault notes a line that is no event.
func (in *intake) fault(err error) {
	if in.faults++; in.first == nil {
		in.first = err
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		in.rec.Note(fmt.Sprintf("the trace ends in the middle of a line: %v", err))
	case in.faults < mostFaults:
		in.rec.Note(fmt.Sprintf("left out: %v", err))
	case in.faults == mostFaults:
		in.rec.Note(fmt.Sprintf("left out: %v; more lines that are no events are not told", err))
	}
}

// watched keeps the error of a reader apart from what is wrong with what was read.
type watched struct {
	from io.Reader
	err  error
}

func (w *watched) Read(p []byte) (n int, err error) {
	n, err = w.from.Read(p)
	if err != nil {
		w.err = err
	}
	return n, err
}
