package cli

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/ddd26017/fixpoint/engine"
)

// lines is an observer that writes events as JSON lines.
type lines struct {
	to   io.Writer
	file io.Closer // nil for a stream that is not ours

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
		l.err = fmt.Errorf("fixpoint: the events could not be written: %w", err)
	}
}

// close returns what went wrong, too.
func (l *lines) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return l.err
	}
	return errors.Join(l.err, l.file.Close())
}

func closeLines(all []*lines) error {
	var errs []error
	for _, l := range all {
		errs = append(errs, l.close())
	}
	return errors.Join(errs...)
}
