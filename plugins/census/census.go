package census

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// Name is the plugin's name.
const Name = "census"

// Tool is the name of the plugin's tool.
const Tool = "directory_census"

// Settings is the content of the section.
type Settings struct {
	// MaxLevels is the deepest level that is counted, from 1 to 16: one phase has no
	// more rounds. The default is 12.
	MaxLevels int `json:"max_levels"`
	// MaxFolders is how many folders of one level are read. The default is 2000.
	MaxFolders int `json:"max_folders"`
}

// Section is the section that holds the settings.
var Section = engine.NewConfigKey(Name, engine.ConfigOptions[Settings]{
	Default: func() Settings { return Settings{MaxLevels: 12, MaxFolders: 2000} },
	Check:   Settings.Validate,
})

// Validate returns what is wrong with the settings, or nil.
func (s Settings) Validate() error {
	const rounds = 16
	if s.MaxLevels < 1 || s.MaxLevels > rounds {
		return fmt.Errorf("census: max_levels is %d; want 1 to %d", s.MaxLevels, rounds)
	}
	if s.MaxFolders < 1 {
		return fmt.Errorf("census: max_folders is %d; want 1 or more", s.MaxFolders)
	}
	return nil
}

// New returns the plugin for a file system, which it only reads. It is as safe
// for concurrent use as the file system is.
func New(fsys fs.FS) engine.Plugin { return plugin{fsys} }

type plugin struct{ fsys fs.FS }

func (p plugin) Name() string { return Name }

func (p plugin) Register(r *engine.Registrar) error {
	r.Key(Levels)
	r.Section(Section)
	r.Action(Count.Handle(p.count))
	r.Hook(phase.RunStart, phase.HookFunc(begin), engine.Writes())
	r.Tool(reader{engine.NewTool(inference.ToolSpec{Name: Tool, Kind: "read",
		Description: "How many folders, files and bytes the directory holds, level by level."}, show)})
	return nil
}

func begin(context.Context, *phase.Context) (cmd phase.Command, err error) {
	cmd.Schedule(Count.New(Task{Level: 1, Folders: []string{"."}}))
	return cmd, nil
}
