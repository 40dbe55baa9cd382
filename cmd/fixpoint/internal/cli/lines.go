package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/plugins/trace"
)

// written is where events are written to. Closing it returns what went wrong, too.
type written interface {
	engine.Observer
	close() error
}

// lines is an observer that writes events as JSON lines, and nothing else.
type lines struct {
	to io.Writer

	mu  sync.Mutex
	err error // the first failure
}

// Observe writes an event.
func (l *lines) Observe(e engine.Event) {
	text, err := engine.MarshalEvent(e)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	if err == nil {
		_, err = l.to.Write(append(text, '\n'))
	}
	if err != nil {
		l.err = unwritten(err)
	}
}

func (l *lines) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// traceFile is a file that a trace is written to.
type traceFile struct {
	*trace.Trace
	file *os.File
}

func newTraceFile(name string) (*traceFile, error) {
	// It has much of what the model was told. A file that is there keeps its mode.
	file, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, usageError{fmt.Errorf("fixpoint: --trace: %w", err)}
	}
	return &traceFile{trace.New(trace.Options{Lines: file}), file}, nil
}

// traceGrace is how long a trace may take to be written when the run is over. Only a file
// that is none, such as a pipe that nobody reads, takes long.
const traceGrace = 10 * time.Second

func (t *traceFile) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), traceGrace)
	defer cancel()
	err := t.Close(ctx)
	if err != nil {
		err = unwritten(err)
	}
	return errors.Join(err, t.file.Close())
}

func unwritten(err error) error {
	return fmt.Errorf("fixpoint: the events could not be written: %w", err)
}

func closeLines(all []written) error {
	var errs []error
	for _, w := range all {
		errs = append(errs, w.close())
	}
	return errors.Join(errs...)
}
