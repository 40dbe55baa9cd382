package lineedit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

const (
	maxHistory = 500     // lines
	maxKept    = 8 << 10 // bytes of a line
)

// History is the lines that were entered, in a file of JSON texts, one a line. It is
// safe for concurrent use. The zero History is empty and in no file.
type History struct {
	file string

	mu    sync.Mutex
	lines []string // the oldest first
}

// OpenHistory reads the history in a file, which is made with the first line. What is
// not a JSON text in it is dropped.
func OpenHistory(file string) (*History, error) {
	h := &History{file: file}
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the history of lines cannot be read: %w", err)
	}
	for raw := range bytes.Lines(text) {
		var l string
		if json.Unmarshal(raw, &l) == nil {
			h.add(l)
		}
	}
	return h, nil
}

// Add adds a line and writes the file. Left out are empty lines, repetitions of the
// newest line, those of more than 8 KiB, and those that begin with a space, which is how
// to keep a line out.
func (h *History) Add(l string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.add(l) || h.file == "" {
		return nil
	}
	if err := h.save(); err != nil {
		return fmt.Errorf("the history of lines cannot be written: %w", err)
	}
	return nil
}

func (h *History) add(l string) bool {
	switch {
	case strings.TrimSpace(l) == "", strings.HasPrefix(l, " "), len(l) > maxKept:
		return false
	case len(h.lines) > 0 && h.lines[len(h.lines)-1] == l:
		return false
	}
	h.lines = append(h.lines, l)
	if n := len(h.lines) - maxHistory; n > 0 {
		h.lines = append([]string(nil), h.lines[n:]...)
	}
	return true
}

// save replaces the file, which only its owner can read.
func (h *History) save() error {
	var text bytes.Buffer
	for _, l := range h.lines {
		raw, err := json.Marshal(l)
		if err != nil {
			return err
		}
		text.Write(append(raw, '\n'))
	}
	draft, err := os.CreateTemp(filepath.Dir(h.file), filepath.Base(h.file)+".*") // 0600
	if err != nil {
		return err
	}
	_, err = draft.Write(text.Bytes())
	if err = errors.Join(err, draft.Close()); err == nil {
		err = os.Rename(draft.Name(), h.file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft.Name()))
	}
	return nil
}

// Len returns the number of lines.
func (h *History) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.lines)
}

// At returns the nth newest line, the newest being the 0th, or "".
func (h *History) At(n int) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n < 0 || n >= len(h.lines) {
		return ""
	}
	return h.lines[len(h.lines)-1-n]
}
