package cwd

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Name is the plugin's name.
const Name = "cwd"

// CompareTier is the tier of the hook that compares the directory with what it was.
const CompareTier = 100

// Change is the payload of Changed.
type Change struct {
	Old string `json:"old"`
	New string `json:"new"`
}

// Changed tells that the working directory changed. It is scheduled by this plugin
// only, after the tool call that found the change; see the package comment for how
// other plugins take part.
var Changed = phase.NewAction[Change]("cwd.changed", phase.AfterToolExecute)

var (
	// Dir is the working directory of the thread. Every plugin may write it; a path
	// that could lead outside is refused.
	Dir = state.NewCell("cwd.dir", state.Options[string]{Scope: state.ScopeThread, Initial: top, Check: checkDir})

	// seen is what Changed was last scheduled for, told what the model knows.
	seen = state.NewCell("cwd.seen", state.Options[string]{Scope: state.ScopeThread, Initial: top})
	told = state.NewCell("cwd.told", state.Options[string]{Scope: state.ScopeThread, Initial: top})
)

func top() string { return "." }

func checkDir(_, next string) error {
	if !fs.ValidPath(next) {
		return fmt.Errorf("cwd: %q is no working directory; use a clean path with slashes that begins at the root, or \".\"", next)
	}
	return nil
}

// Options adjust the plugin. The zero value is useful.
type Options struct {
	// Then returns what is to be scheduled when the directory changed: actions of other
	// plugins, which run in the same phase if they are for AfterToolExecute. It must be
	// free of side effects and safe for concurrent use. Nil means nothing.
	Then func(Change) []phase.Action
}

// New returns the plugin for threads that work below a directory, which must exist.
// It holds nothing open and is safe for concurrent use.
func New(dir string, o Options) (engine.Plugin, error) {
	root, err := filepath.Abs(dir)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return nil, fmt.Errorf("cwd: cannot use the directory: %w", err)
	}
	p := plugin{root: root, then: o.Then}
	if _, err := p.enter(".", "."); err != nil {
		return nil, err
	}
	return p, nil
}

type plugin struct {
	root string // absolute, without symbolic links
	then func(Change) []phase.Action
}

func (p plugin) Name() string { return Name }

func (p plugin) Register(r *engine.Registrar) error {
	r.Key(Dir, seen, told)
	r.Action(Changed.Handle(p.changed))
	r.Tool(p.tool())
	r.Hook(phase.AfterToolExecute, phase.HookFunc(compare), engine.Tier(CompareTier), engine.Reads(Dir), engine.Writes(seen))
	r.Hook(phase.BeforeInference, phase.HookFunc(tell), engine.Reads(Dir), engine.Writes(told))
	return nil
}

// compare schedules Changed if the directory is not what it was.
func compare(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	was, is := seen.Get(pc.Snapshot()), Dir.Get(pc.Snapshot())
	if was != is {
		cmd.Update(seen.With(is)).Schedule(Changed.New(Change{Old: was, New: is}))
	}
	return cmd, nil
}

// changed handles Changed.
func (p plugin) changed(_ context.Context, _ *phase.Context, c Change) (cmd phase.Command, err error) {
	if p.then != nil {
		cmd.Schedule(p.then(c)...)
	}
	return cmd, nil
}

// tell adds what the model does not know yet to the thread's history. It does so right
// before the model is asked, since a message that the last call of a run had scheduled
// would be lost with the run.
func tell(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	was, is := told.Get(pc.Snapshot()), Dir.Get(pc.Snapshot())
	if was != is {
		text := fmt.Sprintf("The working directory is now %s (before: %s).", quoted(is), quoted(was))
		cmd.Update(told.With(is))
		cmd.Schedule(engine.AddContext.New(engine.ContextArgs{Message: inference.System(text)}))
	}
	return cmd, nil
}

// quoted returns a path as the model is told it. What a folder is called may be somebody
// else's choice, so a name with anything unusual in it is put in quotes, in one line.
func quoted(dir string) string {
	usual := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+@", r)
	}
	if strings.ContainsFunc(dir, func(r rune) bool { return !usual(r) }) {
		return strconv.Quote(dir)
	}
	return dir
}
