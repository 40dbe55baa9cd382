package files

import (
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

const editSchema inference.JSON = `{"type":"object","properties":{` +
	`"path":{"type":"string"},` +
	`"old":{"type":"string","description":"the text to replace, exactly as it is in the file, where it must be once"},` +
	`"new":{"type":"string","description":"the text to put in its place"}},"required":["path","old","new"],"additionalProperties":false}`

type editArgs struct {
	Path string `json:"path"`
	Old  string `json:"old"`
	New  string `json:"new"`
}

// Edited is the data of an edit_file result.
type Edited = Patch

// edit replaces the only place where a file has a text. The file keeps its permissions.
func (p *Plugin) edit(_ context.Context, pc *phase.Context, in editArgs) (engine.Output, error) {
	name, err := clean(in.Path)
	if err != nil {
		return engine.Output{}, err
	}
	if in.Old == "" || in.Old == in.New {
		return engine.Output{}, errors.New("files: old must be a text of the file, and new another one")
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	text, mode, err := p.editable(name)
	if err != nil {
		return engine.Output{}, err
	}
	at := strings.Index(text, in.Old)
	if at < 0 {
		return engine.Output{}, fmt.Errorf("files: %s does not have the text old; read it and copy the text exactly, white space included", name)
	}
	line := 1 + strings.Count(text[:at], "\n")
	// From the next byte on, since places may overlap.
	if next := strings.Index(text[at+1:], in.Old); next >= 0 {
		return engine.Output{}, fmt.Errorf("files: %s has the text old in more than one place, in lines %d and %d to begin with; add lines around it",
			name, line, line+strings.Count(text[at:at+1+next], "\n"))
	}
	text = text[:at] + in.New + text[at+len(in.Old):]
	if err := p.fits(len(text)); err != nil {
		return engine.Output{}, err
	}
	if err := p.replace(pc, name, text, mode); err != nil {
		return engine.Output{}, err
	}
	done := Edited{Path: name, Line: line, Bytes: len(text)}
	out, err := output(fmt.Sprintf("edited %s, line %d", name, line), done)
	out.Command.Schedule(Patched.New(done))
	return out, err
}

// editable returns the text and the permissions of a file that can be edited.
func (p *Plugin) editable(name string) (string, fs.FileMode, error) {
	file, err := p.tree.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", 0, fmt.Errorf("%w %q: there is no such file; %s shows what there is", ErrPath, name, ListTool)
	}
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return "", 0, err
	}
	if info.IsDir() {
		return "", 0, fmt.Errorf("%w %q: it is a folder", ErrPath, name)
	}
	raw, err := io.ReadAll(io.LimitReader(file, p.limits.FileBytes+1))
	if err != nil {
		return "", 0, err
	}
	if err := p.fits(len(raw)); err != nil {
		return "", 0, err
	}
	if binary(raw) {
		return "", 0, fmt.Errorf("%w %q: it is not a text file", ErrPath, name)
	}
	return string(raw), info.Mode().Perm(), nil
}
