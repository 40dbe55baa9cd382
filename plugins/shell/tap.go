package shell

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"
)

// drain is how long output may still come once the shell has ended: only processes that
// left its group can hold the pipe then.
const drain = time.Second

// tap is a pipe whose content is kept as far as it is bounded. It goes on reading beyond
// that, so that nobody who writes is held up.
type tap struct {
	in, out *os.File
	ends    ends
	done    chan struct{}
}

func newTap(keep int) (*tap, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("shell: cannot make a pipe: %w", err)
	}
	t := &tap{in: in, out: out, ends: ends{half: (keep + 1) / 2}, done: make(chan struct{})}
	go func() {
		defer close(t.done)
		_, _ = io.Copy(&t.ends, t.out) // whatever ends it, what was read counts
	}()
	return t, nil
}

// finish closes the pipe and returns what came through it.
func (t *tap) finish() ends {
	_ = t.in.Close()
	_ = t.out.SetReadDeadline(time.Now().Add(drain)) // where a pipe has none, its last writer ends it
	<-t.done
	_ = t.out.Close() // it was only read
	return t.ends
}

// ends keeps the beginning and the end of a text.
type ends struct {
	half       int // bytes of each
	head, tail []byte
	total      int64
}

// Write takes more of the text. It never fails.
func (e *ends) Write(p []byte) (int, error) {
	e.total += int64(len(p))
	room := min(e.half-len(e.head), len(p))
	e.head = append(e.head, p[:room]...)
	e.tail = append(e.tail, p[room:]...)
	if len(e.tail) > 8*e.half+64<<10 { // seldom enough that each byte is moved a few times at most
		e.tail = append(e.tail[:0], e.last()...)
	}
	return len(p), nil
}

// last returns the end, as much as is kept of it.
func (e *ends) last() []byte { return e.tail[max(len(e.tail)-e.half, 0):] }

// text returns the text and how many bytes are left out in its middle.
func (e *ends) text() (string, int64) {
	head, tail := e.head, e.last()
	if e.total == int64(len(head)+len(tail)) {
		return strings.ToValidUTF8(string(head)+string(tail), "\uFFFD"), 0
	}
	for cut := 0; cut < utf8.UTFMax && len(head) > 0 && !endsWhole(head); cut++ {
		head = head[:len(head)-1]
	}
	for cut := 0; cut < utf8.UTFMax && len(tail) > 0 && !utf8.RuneStart(tail[0]); cut++ {
		tail = tail[1:]
	}
	cut := e.total - int64(len(head)+len(tail))
	text := fmt.Sprintf("%s\n[... %d bytes left out ...]\n%s", head, cut, tail)
	return strings.ToValidUTF8(text, "\uFFFD"), cut
}

// endsWhole reports whether the last character is not cut off.
func endsWhole(b []byte) bool {
	r, n := utf8.DecodeLastRune(b)
	return r != utf8.RuneError || n > 1
}

// place returns the last thing that stands between two zero bytes.
func (e ends) place() string {
	parts := strings.Split(string(e.head)+string(e.tail), "\x00")
	if len(parts) < 3 {
		return ""
	}
	return parts[len(parts)-2]
}
