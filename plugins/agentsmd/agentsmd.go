package agentsmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Name is the plugin's name.
const Name = "agentsmd"

// Settings is the content of the section.
type Settings struct {
	// Names lists the names of files to look for, the most wanted first. The default
	// is AGENTS.md, CLAUDE.md, GEMINI.md.
	Names []string `json:"names"`
	// MaxBytes is how much of a file is told. The default is 32 KiB.
	MaxBytes int `json:"max_bytes"`
}

// Section is the section that holds the settings.
var Section = engine.NewConfigKey(Name, engine.ConfigOptions[Settings]{
	Default: func() Settings {
		return Settings{Names: []string{"AGENTS.md", "CLAUDE.md", "GEMINI.md"}, MaxBytes: 32 << 10}
	},
	Check: Settings.Validate,
})

// Validate returns what is wrong with the settings, or nil.
func (s Settings) Validate() error {
	for _, name := range s.Names {
		if !fs.ValidPath(name) || name == "." || strings.Contains(name, "/") {
			return fmt.Errorf("agentsmd: names has %q; want the bare name of a file", name)
		}
	}
	if s.MaxBytes < 1 {
		return fmt.Errorf("agentsmd: max_bytes is %d; want 1 or more", s.MaxBytes)
	}
	return nil
}

var (
	// Told holds what was told in the thread, as "path@hash of the content".
	Told = state.NewSet[string]("agentsmd.told", state.Options[string]{Scope: state.ScopeThread})

	// Visited holds the folders that the run's tool calls worked in.
	Visited = state.NewSet[string]("agentsmd.visited", state.Options[string]{})
)

// Plugin tells the guides of a file system. It is a value that nothing changes, as safe
// for concurrent use as the file system is.
type Plugin struct {
	fsys fs.FS
	dir  state.Cell[string] // holds the working directory; may be zero
}

// New returns the plugin for a file system, which it only reads.
func New(fsys fs.FS) Plugin { return Plugin{fsys: fsys} }

// Follow returns the plugin with a key that holds the working directory of a thread, a
// path in the file system: the Dir of plugins/cwd. That counts as a folder that calls
// work in. An engine without the key has the file system's top as working directory.
func (p Plugin) Follow(dir state.Cell[string]) Plugin {
	p.dir = dir
	return p
}

// Name returns "agentsmd".
func (p Plugin) Name() string { return Name }

// Register registers the keys, the section and the hooks.
func (p Plugin) Register(r *engine.Registrar) error {
	r.Key(Told, Visited)
	r.Section(Section)
	r.Hook(phase.AfterToolExecute, phase.HookFunc(p.visit), engine.Writes(Visited))
	r.Hook(phase.BeforeInference, phase.HookFunc(p.tell), engine.Writes(Told), engine.OnError(engine.Skip))
	return nil
}

// visit notes the folders from the top to where the call worked, and to the working
// directory that it left.
func (p Plugin) visit(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	for _, dir := range append(up(p.target(pc.Call())), up(p.dir.Get(pc.Snapshot()))...) {
		if !Visited.Has(pc.Snapshot(), dir) {
			cmd.Update(Visited.Add(dir))
		}
	}
	return cmd, nil
}

// target returns the folder that a call works in by its arguments, or "".
func (p Plugin) target(call inference.ToolCall) string {
	var args struct {
		Path string `json:"path"`
	}
	if json.Unmarshal([]byte(call.Args), &args) != nil || args.Path == "" {
		return ""
	}
	name := path.Clean(args.Path)
	if !fs.ValidPath(name) {
		return ""
	}
	if info, err := fs.Stat(p.fsys, name); err != nil || !info.IsDir() {
		name = path.Dir(name)
	}
	return name
}

// up returns a folder and those above it, without the top. It returns none for what is
// no path.
func up(dir string) (dirs []string) {
	if !fs.ValidPath(dir) {
		return nil
	}
	for ; dir != "."; dir = path.Dir(dir) {
		dirs = append(dirs, dir)
	}
	return dirs
}

// tell adds what was not told yet to the thread's history, the outermost folder
// first.
func (p Plugin) tell(ctx context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	settings, snap := Section.Get(pc), pc.Snapshot()
	// In order, so that a folder comes before what is in it.
	dirs := append(up(p.dir.Get(snap)), slices.Collect(Visited.All(snap))...)
	slices.Sort(dirs)
	known := contents(snap)
	for _, dir := range append([]string{"."}, slices.Compact(dirs)...) {
		if ctx.Err() != nil {
			return phase.Command{}, context.Cause(ctx)
		}
		g, ok, err := find(p.fsys, dir, settings)
		if err != nil {
			return phase.Command{}, err
		}
		if !ok || known[g.hash()] {
			continue
		}
		known[g.hash()] = true
		cmd.Update(Told.Add(g.mark()))
		cmd.Schedule(engine.AddContext.New(engine.ContextArgs{Message: inference.System(g.message())}))
	}
	return cmd, nil
}

// contents returns the hashes of what was told in the thread.
func contents(snap *state.Snapshot) map[string]bool {
	known := map[string]bool{}
	for mark := range Told.All(snap) {
		known[mark[strings.LastIndexByte(mark, '@')+1:]] = true
	}
	return known
}
