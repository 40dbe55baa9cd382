// Package screentest is a screen for tests: it takes what a program writes to a terminal
// and says what a person would see.
package screentest

import (
	"strconv"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"
)

// Screen is a terminal of a fixed width whose lines are all kept. It knows the sequences
// that this command writes, and remembers others as unknown. It is safe for concurrent
// use.
type Screen struct {
	mu      sync.Mutex
	width   int
	rows    [][]string // cells; the second one of a wide character is ""
	row     int
	column  int
	rest    string // the start of a sequence that is not whole
	unknown []string
}

// New returns an empty screen.
func New(width int) *Screen { return &Screen{width: width, rows: [][]string{nil}} }

// Write shows what a program writes.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.rest + string(p)
	for text != "" {
		n := s.step(text)
		if n == 0 {
			break
		}
		text = text[n:]
	}
	s.rest = text
	return len(p), nil
}

// Text returns what is to be seen, without spaces at the ends of lines.
func (s *Screen) Text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := make([]string, len(s.rows))
	for i, row := range s.rows {
		lines[i] = strings.TrimRight(strings.Join(row, ""), " ")
	}
	return strings.Join(lines, "\n")
}

// Cursor returns where the cursor is.
func (s *Screen) Cursor() (row, column int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.row, s.column
}

// Unknown returns the sequences that the screen does not know.
func (s *Screen) Unknown() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unknown
}

// step takes the first character or sequence of a text, and returns its length, 0 if it
// is not whole.
func (s *Screen) step(text string) int {
	switch text[0] {
	case '\r':
		s.column = 0
		return 1
	case '\n':
		s.down()
		return 1
	case 0x1b:
		end := strings.IndexFunc(text[1:], func(r rune) bool { return r != '[' && r >= '@' && r <= '~' })
		if end < 0 {
			return 0
		}
		s.sequence(text[:end+2])
		return end + 2
	}
	if strings.ToValidUTF8(text[:min(len(text), 4)], "") == "" {
		return 0
	}
	cluster, _, width, _ := ansi.FirstGraphemeCluster(text, -1)
	s.put(cluster, width)
	return len(cluster)
}

func (s *Screen) down() {
	if s.row++; s.row == len(s.rows) {
		s.rows = append(s.rows, nil)
	}
}

func (s *Screen) put(cluster string, width int) {
	if s.column+width > s.width {
		s.column = 0
		s.down()
	}
	for len(s.rows[s.row]) < s.column+width {
		s.rows[s.row] = append(s.rows[s.row], " ")
	}
	for i := range width {
		s.rows[s.row][s.column+i] = ""
	}
	if width > 0 {
		s.rows[s.row][s.column] = cluster
	}
	s.column += width
}

func (s *Screen) sequence(seq string) {
	params := strings.Trim(seq, "\x1b[ABCDHJm")
	n, err := strconv.Atoi(params)
	if err != nil {
		n = 1
	}
	switch final := seq[len(seq)-1]; {
	case final == 'A':
		s.row = max(0, s.row-n)
	case final == 'C':
		s.column = min(s.width-1, s.column+n)
	case seq == "\x1b[J":
		s.rows = s.rows[:s.row+1]
		s.rows[s.row] = s.rows[s.row][:min(s.column, len(s.rows[s.row]))]
	case seq == "\x1b[2J":
		s.rows, s.row, s.column = [][]string{nil}, 0, 0
	case seq == "\x1b[H":
		s.row, s.column = 0, 0
	case final == 'm', seq == "\x1b[?2004h", seq == "\x1b[?2004l":
	default:
		s.unknown = append(s.unknown, seq)
	}
}
