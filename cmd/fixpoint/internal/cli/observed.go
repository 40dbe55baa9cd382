package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/engine/picture"
)

// observed reads what hooks did from traces, and returns nil without any.
func observed(traces []string) (*picture.Observed, error) {
	if len(traces) == 0 {
		return nil, nil
	}
	seen := new(picture.Observed)
	for _, name := range traces {
		if err := observe(seen, name); err != nil {
			return nil, usageError{fmt.Errorf("fixpoint: --observed: %w", err)}
		}
	}
	return seen, nil
}

func observe(seen *picture.Observed, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewReader(file)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 && !isNote(line) {
			e, bad := engine.UnmarshalEvent(line)
			if bad != nil {
				return fmt.Errorf("%s:%d: %w; want the events of a run, one on each line", name, n, bad)
			}
			seen.Observe(e)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// isNote reports whether a line is about the trace itself.
func isNote(line []byte) bool {
	return bytes.HasPrefix(line, []byte(`{"type":"trace"`)) || bytes.HasPrefix(line, []byte(`{"type":"dropped"`))
}
