package gemini

import (
	"bytes"
	"crypto/rand"
	"io"
	"regexp"

	"github.com/ddd26017/fixpoint/inference"
)

// The SDK reads the arguments of calls into a map, where a long whole number, as identifiers are, becomes a float64 and
// another number. So such numbers reach it as strings with a mark that nobody can guess, and become numbers again when
// the arguments are written.
var (
	mark   = rand.Text()
	marked = regexp.MustCompile(`"` + mark + `(-?[0-9]+)"`)
)

// safeDigits is how many digits every whole number keeps in a float64.
const safeDigits = 15

// written is inference.ToJSON for what came by way of a marking.
func written(v any) (inference.JSON, error) {
	text, err := inference.ToJSON(v)
	return inference.JSON(marked.ReplaceAllString(string(text), "$1")), err
}

// marking marks the long whole numbers in a body of JSON texts, one after the other or as events.
type marking struct {
	io.ReadCloser
	// out is what was marked and is not read yet, and err what the body ended with behind it.
	out bytes.Buffer
	err error
	// number is one that may go on. text is true in a string, and escaped behind a backslash there.
	number        []byte
	text, escaped bool
}

func (m *marking) Read(p []byte) (int, error) {
	for m.out.Len() == 0 {
		if m.err != nil {
			return 0, m.err
		}
		buf := make([]byte, max(512, len(p)))
		n, err := m.ReadCloser.Read(buf)
		for _, c := range buf[:n] {
			m.take(c)
		}
		if m.err = err; err != nil {
			m.flush()
		}
	}
	return m.out.Read(p)
}

// take reads one more byte.
func (m *marking) take(c byte) {
	if !m.text && (c >= '0' && c <= '9' || bytes.IndexByte([]byte("+-.eE"), c) >= 0) {
		m.number = append(m.number, c)
		return
	}
	m.flush()
	switch {
	case c == '\n': // no text goes on behind it: what looked like one was no JSON
		m.text, m.escaped = false, false
	case m.escaped:
		m.escaped = false
	case m.text && c == '\\':
		m.escaped = true
	case c == '"':
		m.text = !m.text
	}
	m.out.WriteByte(c)
}

// flush writes the number that is over.
func (m *marking) flush() {
	digits := bytes.TrimPrefix(m.number, []byte("-"))
	if len(digits) > safeDigits && len(bytes.Trim(digits, "0123456789")) == 0 {
		m.out.WriteString(`"` + mark)
		m.out.Write(m.number)
		m.out.WriteByte('"')
	} else {
		m.out.Write(m.number)
	}
	m.number = m.number[:0]
}
