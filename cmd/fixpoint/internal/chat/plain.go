package chat

import (
	"bufio"
	"context"
	"io"
	"strings"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/lineedit"
)

// Plain is a Console for an input that is no terminal. It shows no prompts.
type Plain struct {
	lines chan plainLine
}

type plainLine struct {
	text string
	err  error
}

// NewPlain returns a console that reads lines from in, one ahead.
func NewPlain(in io.Reader) *Plain {
	p := &Plain{lines: make(chan plainLine)}
	go p.listen(in)
	return p
}

// maxPlainLine bounds a line, in bytes.
const maxPlainLine = 1 << 20

func (p *Plain) listen(in io.Reader) {
	defer close(p.lines)
	scan := bufio.NewScanner(in)
	scan.Buffer(nil, maxPlainLine)
	for scan.Scan() {
		p.lines <- plainLine{text: strings.TrimSuffix(scan.Text(), "\r")}
	}
	if err := scan.Err(); err != nil {
		p.lines <- plainLine{err: err}
	}
}

// ReadLine returns the next line.
func (p *Plain) ReadLine(ctx context.Context, _ lineedit.Query) (string, error) {
	select {
	case l, ok := <-p.lines:
		if !ok {
			return "", io.EOF
		}
		return l.text, l.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
