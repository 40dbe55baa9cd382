package census

import (
	"context"
	"io/fs"
	"path"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Level is what was found in the folders of one level.
type Level struct {
	Level      int   `json:"level"`   // 1 for what lies in the directory itself
	Folders    int   `json:"folders"` // that were read
	Files      int   `json:"files"`   // in them, folders not counted
	Bytes      int64 `json:"bytes"`
	Unreadable int   `json:"unreadable,omitzero"` // folders that could not be read
	Left       int   `json:"left,omitzero"`       // folders below that a limit left out
}

// Levels holds the levels that were counted in this run.
var Levels = state.NewTable[int]("census.levels", state.Options[Level]{})

// Task is the payload of Count: the folders of one level.
type Task struct {
	Level   int      `json:"level"`
	Folders []string `json:"folders"`
}

// Count is the action that counts one level and schedules itself for the next.
// It reads the disk, so a round is never repeated: it is not ReplaySafe.
var Count = phase.NewAction[Task]("census.count", phase.RunStart)

func (p plugin) count(ctx context.Context, pc *phase.Context, task Task) (cmd phase.Command, err error) {
	settings := Section.Get(pc)
	level := Level{Level: task.Level}
	var below []string
	for _, dir := range task.Folders {
		if ctx.Err() != nil {
			return phase.Command{}, context.Cause(ctx)
		}
		entries, err := fs.ReadDir(p.fsys, dir)
		if err != nil {
			level.Unreadable++
			continue
		}
		level.Folders++
		for _, e := range entries {
			if e.IsDir() {
				below = append(below, path.Join(dir, e.Name()))
				continue
			}
			level.Files++
			if info, err := e.Info(); err == nil {
				level.Bytes += info.Size()
			}
		}
	}
	if n := len(below) - settings.MaxFolders; n > 0 {
		below, level.Left = below[:settings.MaxFolders], n
	}
	if task.Level == settings.MaxLevels {
		below, level.Left = nil, level.Left+len(below)
	}
	cmd.Update(Levels.Put(level.Level, level))
	if len(below) > 0 {
		cmd.Schedule(Count.New(Task{Level: task.Level + 1, Folders: below}))
		return cmd, nil
	}
	total := Sum(pc.Snapshot())
	total.add(level)
	cmd.Schedule(engine.AddContext.New(engine.ContextArgs{Message: inference.System(total.text())}))
	return cmd, nil
}
