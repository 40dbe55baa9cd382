package agentsmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
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
	// is AGENTS.md.
	Names []string `json:"names"`
	// MaxBytes is how much of a file is told. The default is 32 KiB.
	MaxBytes int `json:"max_bytes"`
}

// Section is the section that holds the settings.
var Section = engine.NewConfigKey(Name, engine.ConfigOptions[Settings]{
	Default: func() Settings { return Settings{Names: []string{"AGENTS.md"}, MaxBytes: 32 << 10} },
	Check:   Settings.Validate,
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

// New returns the plugin for a file system, which it only reads. It is as safe
// for concurrent use as the file system is.
func New(fsys fs.FS) engine.Plugin { return plugin{fsys} }

type plugin struct{ fsys fs.FS }

func (p plugin) Name() string { return Name }

func (p plugin) Register(r *engine.Registrar) error {
	r.Key(Told, Visited)
	r.Section(Section)
	r.Hook(phase.AfterToolExecute, phase.HookFunc(p.visit), engine.Writes(Visited))
	r.Hook(phase.BeforeInference, phase.HookFunc(p.tell), engine.Writes(Told), engine.OnError(engine.Skip))
	return nil
}

// visit notes the folders from the top to where the call worked.
func (p plugin) visit(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	var args struct {
		Path string `json:"path"`
	}
	if json.Unmarshal([]byte(pc.Call().Args), &args) != nil || args.Path == "" {
		return cmd, nil
	}
	name := path.Clean(args.Path)
	if !fs.ValidPath(name) {
		return cmd, nil
	}
	if info, err := fs.Stat(p.fsys, name); err != nil || !info.IsDir() {
		name = path.Dir(name)
	}
	for dir := name; dir != "."; dir = path.Dir(dir) {
		if !Visited.Has(pc.Snapshot(), dir) {
			cmd.Update(Visited.Add(dir))
		}
	}
	return cmd, nil
}

// tell adds what was not told yet to the thread's history, the outermost folder
// first.
func (p plugin) tell(ctx context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	settings, snap := Section.Get(pc), pc.Snapshot()
	dirs := []string{"."}
	for dir := range Visited.All(snap) { // in order, so that a folder comes before what is in it
		dirs = append(dirs, dir)
	}
	for _, dir := range dirs {
		if ctx.Err() != nil {
			return phase.Command{}, context.Cause(ctx)
		}
		g, ok, err := find(p.fsys, dir, settings)
		if err != nil {
			return phase.Command{}, err
		}
		if !ok || Told.Has(snap, g.mark()) {
			continue
		}
		cmd.Update(Told.Add(g.mark()))
		cmd.Schedule(engine.AddContext.New(engine.ContextArgs{Message: inference.System(g.message())}))
	}
	return cmd, nil
}
