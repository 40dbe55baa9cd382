//go:build unix

package crew

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// line is what happened once. Each is written with one call, so that the lines of all
// processes stand in the order in which they were written.
type line struct {
	Kind   string `json:"k"`
	Worker string `json:"w,omitempty"`
	Thread string `json:"t,omitempty"`
	Call   string `json:"c,omitempty"`
	ID     string `json:"i,omitempty"` // of an effect
	Seq    uint64 `json:"s,omitempty"` // of an activation
	Time   int64  `json:"n"`           // nanoseconds since 1970
}

// The kinds of lines.
const (
	lineSubmit = "submit" // the parent submitted an activation
	lineGoes   = "goes"   // a run began or goes on
	lineAsked  = "asked"  // the model was asked
	lineBody   = "body"   // a tool's body begins
	lineResult = "result" // the model was shown the result of a call, which therefore was committed
	lineEffect = "effect" // a durable effect was delivered
	lineOver   = "over"   // an activation has its outcome
	lineKilled = "killed" // a worker was killed, at the time that the line says
	lineCut    = "cut"    // a worker was cut off
	lineHealed = "healed"
)

// outside is the file. It is safe for concurrent use.
type outside struct{ file *os.File }

func openOutside(path string) (*outside, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("crew: %w", err)
	}
	return &outside{f}, nil
}

// write adds a line. A tool that cannot say what it does must not do it, so it panics.
func (o *outside) write(l line) {
	if l.Time == 0 {
		l.Time = time.Now().UnixNano()
	}
	text, err := json.Marshal(l)
	if err == nil {
		_, err = o.file.Write(append(text, '\n'))
	}
	if err != nil {
		panic(fmt.Sprintf("crew: %v", err))
	}
}

func (o *outside) close() error { return o.file.Close() }

// follow reads the lines of the file as they come, and calls fn with each, until stop is
// closed and all has been read.
func follow(ctx context.Context, path string, stop <-chan struct{}, fn func(line)) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("crew: %w", err)
	}
	defer f.Close()
	in := bufio.NewReader(f)
	var part []byte
	for stopped := false; ; {
		text, err := in.ReadBytes('\n')
		part = append(part, text...)
		if err == nil {
			var l line
			if err := json.Unmarshal(part, &l); err != nil {
				return fmt.Errorf("crew: line %q: %w", part, err)
			}
			fn(l)
			part = part[:0]
			continue
		}
		if !errors.Is(err, io.EOF) {
			return fmt.Errorf("crew: %w", err)
		}
		if stopped {
			return nil
		}
		select {
		case <-stop:
			stopped = true // what was written before that is still to be read
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
