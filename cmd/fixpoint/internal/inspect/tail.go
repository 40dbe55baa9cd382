package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

var (
	errReplaced = errors.New("another file has the name now")
	errCut      = errors.New("the file was begun anew")
)

// headBytes is how much of the beginning of a file tells it from what is written over
// it.
const headBytes = 4 << 10

// tail reads a file that somebody writes, and waits at its end for more until ctx ends.
// It ends with errReplaced or errCut when what it read is not in the file any more.
type tail struct {
	ctx   context.Context // of Read, which takes none
	path  string
	every time.Duration
	atEnd func() error // called when all there is was read; an error ends the reading

	file  *os.File
	read  int64
	ended bool   // nothing was left to read
	head  []byte // the first bytes that were read
	seen  os.FileInfo
	gone  error // errReplaced or errCut
}

// errNoFile is of pipes and the like, of which the end cannot be told from a pause.
var errNoFile = errors.New("is no regular file, and can only be read to its end, by inspect --html, explain and why")

func (t *tail) open() (err error) {
	info, err := os.Stat(t.path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s %w", t.path, errNoFile)
	}
	if err != nil {
		return err
	}
	t.file, err = os.Open(t.path)
	return err
}

// Read implements io.Reader.
func (t *tail) Read(p []byte) (int, error) {
	for {
		if t.ended {
			// Looked at before it is read: what is there may be the middle of something else.
			if t.gone = t.changed(); t.gone != nil {
				return 0, t.gone
			}
		}
		n, err := t.file.Read(p)
		t.ended = n == 0
		if n > 0 {
			t.keep(p[:n])
			return n, nil
		}
		if err != nil && err != io.EOF {
			return 0, err
		}
		if err := t.atEnd(); err != nil {
			return 0, err
		}
		select {
		case <-time.After(t.every):
		case <-t.ctx.Done():
			return 0, io.EOF
		}
	}
}

func (t *tail) keep(p []byte) {
	t.read += int64(len(p))
	t.head = append(t.head, p[:min(len(p), headBytes-len(t.head))]...)
}

// changed looks whether the file is still the one that was read. A file that is not
// there is waited for: it may be about to be replaced.
func (t *tail) changed() error {
	named, err := os.Stat(t.path)
	if err != nil {
		return nil
	}
	was := t.seen
	t.seen = named
	if was != nil && os.SameFile(named, was) && named.Size() == was.Size() && named.ModTime().Equal(was.ModTime()) {
		return nil
	}
	mine, err := t.file.Stat()
	switch {
	case err != nil:
		return err
	case mine.Size() < t.read:
		return errCut
	case !os.SameFile(named, mine) && mine.Size() == t.read:
		return errReplaced
	}
	head := make([]byte, len(t.head))
	if n, err := t.file.ReadAt(head, 0); n < len(head) || err != nil && err != io.EOF || !bytes.Equal(head, t.head) {
		return errCut
	}
	return nil
}
