package trace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/internal/tagged"
)

// Version is that of the lines that are written, and the newest that Read knows.
const Version = 1

// The types of the lines that are no events.
const (
	headLine    = "trace"
	droppedLine = "dropped"
)

// Line is one line of a trace. It is the event that happened, the file's header, whose
// Version is not 0, or tells that Dropped events are missing in its place.
type Line struct {
	Event   engine.Event // nil for the others
	Version int          // of the file, in its header
	Dropped int          // events that were lost here
	Number  int          // of the line in the file, from 1
}

// head is the first line.
type head struct {
	Version int    `json:"version"`
	Module  string `json:"module,omitempty"`
	Time    string `json:"time,omitempty"`
}

// dropped is a line in the place of events.
type dropped struct {
	Count int `json:"count"`
}

// LineError says which line of a trace cannot be read, and why.
type LineError struct {
	Line int   // from 1
	At   int64 // bytes before it
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("trace: line %d: %v", e.Line, e.Err) }

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Err }

// longestLine is how long a line may be.
const longestLine = 256 << 20

// ErrVersion is the cause when a trace was written by a later version than this one.
var ErrVersion = errors.New("it was written by a newer version; update Fixpoint")

// Read reads what Options.Lines gets, line by line. Traces without a header, of events
// alone, are read too. Empty lines are left out. What cannot be read is a *LineError, and
// ends the reading, except one line that is no event, after which it can go on. The last
// line of a file that is still written may not be complete: that is a *LineError too, of
// io.ErrUnexpectedEOF, and its At says where to read on from when there is more.
func Read(r io.Reader) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		in, number, at := bufio.NewReaderSize(r, 64<<10), 0, int64(0)
		for {
			text, err := readLine(in)
			if len(text) == 0 && errors.Is(err, io.EOF) {
				return
			}
			number++
			l := Line{Number: number}
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			final := err != nil
			if err == nil {
				if len(bytes.TrimSpace(text)) == 0 {
					at += int64(len(text))
					continue
				}
				l, err = parse(text, number)
				final = errors.Is(err, ErrVersion)
			}
			if err != nil {
				err = &LineError{Line: number, At: at, Err: err}
			}
			at += int64(len(text))
			if !yield(l, err) || final {
				return
			}
		}
	}
}

var errLongLine = fmt.Errorf("it is longer than %d bytes", longestLine)

// readLine returns a line with its end, or without one and io.EOF.
func readLine(in *bufio.Reader) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
		if len(line) > longestLine {
			return line, errLongLine
		}
	}
}

func parse(text []byte, number int) (Line, error) {
	typ, body, err := tagged.Split(text)
	if err != nil {
		return Line{Number: number}, err
	}
	switch typ {
	case headLine:
		var h head
		switch err := tagged.Decode(body, &h); {
		case h.Version > Version:
			return Line{Number: number, Version: h.Version}, fmt.Errorf("version %d: %w", h.Version, ErrVersion)
		case err != nil:
			return Line{Number: number}, err
		case number != 1:
			// Files may have been put together.
		case h.Version < 1:
			return Line{Number: number}, fmt.Errorf("version %d does not exist", h.Version)
		}
		return Line{Number: number, Version: h.Version}, nil
	case droppedLine:
		var d dropped
		if err := tagged.Decode(body, &d); err != nil {
			return Line{Number: number}, err
		}
		if d.Count < 1 {
			return Line{Number: number}, fmt.Errorf("a count of %d; it must be 1 or more", d.Count)
		}
		return Line{Number: number, Dropped: d.Count}, nil
	}
	e, err := engine.UnmarshalEvent(text)
	if err != nil {
		return Line{Number: number}, err
	}
	return Line{Number: number, Event: e}, nil
}
