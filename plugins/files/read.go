package files

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

const readSchema inference.JSON = `{"type":"object","properties":{` +
	`"path":{"type":"string"},` +
	`"from":{"type":"integer","description":"first line to return, counted from 1"},` +
	`"lines":{"type":"integer","description":"how many lines to return; default: all"}},"required":["path"],"additionalProperties":false}`

type readArgs struct {
	Path  string `json:"path"`
	From  int    `json:"from"`
	Lines int    `json:"lines"`
}

// Excerpt is the data of a read_file result; the text itself is the content.
type Excerpt struct {
	Path  string `json:"path"`
	Size  int64  `json:"size"` // of the file, in bytes
	From  int    `json:"from"` // first line returned, counted from 1
	Lines int    `json:"lines"`
	More  bool   `json:"more"` // the file goes on after the last line returned
}

func (p *Plugin) read(ctx context.Context, _ *phase.Context, in readArgs) (engine.Output, error) {
	name, err := clean(in.Path)
	if err != nil {
		return engine.Output{}, err
	}
	if in.From < 0 || in.Lines < 0 {
		return engine.Output{}, fmt.Errorf("files: from and lines count from 1; got %d and %d", in.From, in.Lines)
	}
	file, err := p.tree.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return engine.Output{}, fmt.Errorf("%w %q: there is no such file; %s shows what there is", ErrPath, in.Path, ListTool)
	}
	if err != nil {
		return engine.Output{}, err
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return engine.Output{}, err
	}
	if info.IsDir() {
		return engine.Output{}, fmt.Errorf("%w %q: it is a folder; list it with %s", ErrPath, in.Path, ListTool)
	}
	text := bufio.NewReaderSize(file, 8<<10)
	if head, _ := text.Peek(8 << 10); binary(head) {
		return engine.Output{}, fmt.Errorf("%w %q: it is not a text file", ErrPath, in.Path)
	}
	e := Excerpt{Path: name, Size: info.Size(), From: max(in.From, 1)}
	content, err := e.take(ctx, text, in.Lines, p.limits.ReadBytes)
	if err != nil {
		return engine.Output{}, err
	}
	return output(content, e)
}

// take returns the excerpt's lines: at most that many, all of them for 0, and no
// more text than the limit.
func (e *Excerpt) take(ctx context.Context, text *bufio.Reader, lines, limit int) (string, error) {
	var b strings.Builder
	for number := 1; ; {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		// A line may be longer than the buffer and then comes in pieces.
		piece, err := text.ReadSlice('\n')
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return "", err
		}
		if len(piece) > 0 && number >= e.From {
			if lines > 0 && number >= e.From+lines {
				e.More = true
				break
			}
			if b.Len()+len(piece) > limit {
				b.WriteString(cutText(string(piece), limit-b.Len()))
				e.Lines, e.More = number-e.From+1, true
				break
			}
			b.Write(piece)
			e.Lines = number - e.From + 1
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			number++
		}
	}
	if e.Lines == 0 && e.From > 1 {
		return "", fmt.Errorf("files: %s has fewer than %d lines", e.Path, e.From)
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD"), nil
}
