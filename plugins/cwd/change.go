package cwd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// ChangeTool is the name of the tool.
const ChangeTool = "change_directory"

// ErrPath is the kind of every fault of a path that the tool was given.
var ErrPath = errors.New("cwd: unusable path")

const changeSchema inference.JSON = `{"type":"object","properties":{` +
	`"directory":{"type":"string","description":"a folder, relative to the working directory"}},"required":["directory"],"additionalProperties":false}`

// Its name is not "path", which is for what lies in the tree of a tool.
type changeArgs struct {
	Directory string `json:"directory"`
}

func (p plugin) tool() engine.Tool {
	return changer{engine.NewTool(inference.ToolSpec{Name: ChangeTool, Kind: "other", Schema: changeSchema,
		Description: "Change the working directory."}, p.change)}
}

// change is the tool's body. The details of its result are a Change.
func (p plugin) change(_ context.Context, pc *phase.Context, in changeArgs) (engine.Output, error) {
	c := Change{Old: Dir.Get(pc.Snapshot())}
	var err error
	if c.New, err = p.enter(c.Old, in.Directory); err != nil {
		return engine.Output{}, err
	}
	out := engine.Text("the working directory is " + quoted(c.New))
	if out.Details, err = inference.ToJSON(c); err != nil {
		return engine.Output{}, err
	}
	if c.New != c.Old {
		out.Command.Update(Dir.With(c.New))
	}
	return out, nil
}

// enter returns the folder that to names for somebody who is in dir: a path that
// begins at the root, without symbolic links, so that ".." leads back from it.
func (p plugin) enter(dir, to string) (string, error) {
	at := filepath.FromSlash(to)
	if to == "" {
		return "", fmt.Errorf("%w: say where to go", ErrPath)
	}
	if !filepath.IsAbs(at) {
		at = filepath.Join(p.root, filepath.FromSlash(dir), at)
	}
	if outside(p.root, at) { // as it is written: whether there is such a thing is nobody's business
		return "", refuse(to, dir)
	}
	found, err := filepath.EvalSymlinks(at)
	if err != nil {
		// Its own text has the absolute path.
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return "", fmt.Errorf("%w %q, seen from %s: %w", ErrPath, to, dir, err)
	}
	if outside(p.root, found) {
		return "", refuse(to, dir)
	}
	if info, err := os.Stat(found); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%w %q: it is no folder", ErrPath, to)
	}
	rel, err := filepath.Rel(p.root, found)
	if err != nil {
		return "", err
	}
	rel = filepath.ToSlash(rel)
	return rel, checkDir("", rel)
}

func outside(root, at string) bool {
	rel, err := filepath.Rel(root, at)
	return err != nil || !filepath.IsLocal(rel)
}

func refuse(to, dir string) error {
	return fmt.Errorf("%w %q: it is outside of the root; the way from %s to the root is %s", ErrPath, to, dir, up(dir))
}

// up returns the path from a folder to the root.
func up(dir string) string {
	way := "."
	for ; dir != "."; dir = path.Dir(dir) {
		way = path.Join(way, "..")
	}
	return way
}

// changer is a tool that may run twice: until its command is committed, nothing has
// changed.
type changer struct{ engine.Tool }

// Recovery says that a call that was under way when its process ended runs again.
func (changer) Recovery() engine.Recovery { return engine.Rerun }

// Validate checks the arguments as the tool itself does.
func (c changer) Validate(args inference.JSON) error {
	if v, ok := c.Tool.(engine.Validator); ok {
		return v.Validate(args)
	}
	return nil
}
