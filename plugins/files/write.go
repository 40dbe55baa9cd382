package files

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

const writeSchema inference.JSON = `{"type":"object","properties":{` +
	`"path":{"type":"string"},` +
	`"content":{"type":"string","description":"the whole text of the file"}},"required":["path","content"],"additionalProperties":false}`

type writeArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// Written is the data of a write_file result.
type Written struct {
	Path     string `json:"path"`
	Bytes    int    `json:"bytes"`
	Replaced bool   `json:"replaced"` // there was such a file
}

// write replaces a file as a whole: a reader sees the old text or the new one.
func (p *Plugin) write(_ context.Context, pc *phase.Context, in writeArgs) (engine.Output, error) {
	name, err := clean(in.Path)
	if err != nil {
		return engine.Output{}, err
	}
	if err := p.fits(len(in.Content)); err != nil {
		return engine.Output{}, err
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	replaced, err := p.writable(name)
	if err != nil {
		return engine.Output{}, err
	}
	if err := p.root.MkdirAll(path.Dir(name), 0o777); err != nil {
		return engine.Output{}, err
	}
	if err := p.replace(pc, name, in.Content, 0); err != nil {
		return engine.Output{}, err
	}
	w := Written{Path: name, Bytes: len(in.Content), Replaced: replaced}
	out, err := output(fmt.Sprintf("wrote %s to %s", size(int64(w.Bytes)), name), w)
	out.Command.Schedule(Saved.New(Save{Path: name, Created: !replaced, Bytes: w.Bytes}))
	return out, err
}

// fits returns an error if a file of n bytes is more than the tools take.
func (p *Plugin) fits(n int) error {
	if int64(n) > p.limits.FileBytes {
		return fmt.Errorf("files: %s is too much for one file; the limit is %s", size(int64(n)), size(p.limits.FileBytes))
	}
	return nil
}

// replace puts a text in a file's place as a whole, with the permissions given or, for
// 0, those of a new file.
func (p *Plugin) replace(pc *phase.Context, name, text string, mode fs.FileMode) error {
	// The call's id keeps two processes at the same time from sharing a draft.
	call := fnv.New64a()
	_, _ = fmt.Fprint(call, pc.Run().ID, "/", name, "/", pc.Call().ID) // a hash takes everything
	draft := path.Join(path.Dir(name), fmt.Sprintf(".%x.draft", call.Sum64()))
	f, err := p.root.OpenFile(draft, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err == nil && mode != 0 {
		err = f.Chmod(mode)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = p.root.Rename(draft, name)
	}
	if err != nil {
		return errors.Join(err, p.root.Remove(draft))
	}
	return nil
}

// writable reports whether there is a file of that name, or why there may be none.
func (p *Plugin) writable(name string) (exists bool, err error) {
	for i, c := range name + "/" {
		if c == '/' && p.tree.excluded(name[:i]) {
			return false, fmt.Errorf("%w %q: %s is out of bounds for these tools", ErrPath, name, name[:i])
		}
	}
	switch err := p.tree.visible("write", name); {
	case err == nil:
		info, err := p.root.Lstat(name)
		if err == nil && info.IsDir() {
			err = fmt.Errorf("%w %q: it is a folder", ErrPath, name)
		}
		return true, err
	case errors.Is(err, fs.ErrNotExist) && !p.occupied(name):
		return false, nil
	default:
		return false, fmt.Errorf("%w %q: it, or something on the way to it, is no plain file or folder", ErrPath, name)
	}
}

// occupied reports whether name or a folder on the way to it is something that
// must not be followed or replaced.
func (p *Plugin) occupied(name string) bool {
	for i := range name + "/" {
		if i < len(name) && name[i] != '/' {
			continue
		}
		if info, err := p.root.Lstat(name[:i]); err == nil && !plain(info.Mode()) {
			return true
		}
	}
	return strings.HasSuffix(name, "/")
}
