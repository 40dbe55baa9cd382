package files

import (
	"context"

	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Save is the payload of Saved.
type Save struct {
	Path    string `json:"path"`
	Created bool   `json:"created"` // there was no such file before
	Bytes   int    `json:"bytes"`   // of the whole file
}

// Patch is the payload of Patched.
type Patch struct {
	Path  string `json:"path"`
	Line  int    `json:"line"`  // where the change begins, counted from 1
	Bytes int    `json:"bytes"` // of the whole file, afterwards
}

var (
	// Saved tells that write_file wrote a file, Patched that edit_file changed one. They
	// are scheduled with the call's result; their handlers add to Changed and schedule
	// what Options.OnSaved and Options.OnPatched give.
	Saved   = phase.NewAction[Save]("files.saved", phase.AfterToolExecute)
	Patched = phase.NewAction[Patch]("files.patched", phase.AfterToolExecute)
)

// Changed holds the paths of the files that the run's calls wrote or edited.
var Changed = state.NewSet[string]("files.changed", state.Options[string]{})

func (p *Plugin) saved(_ context.Context, _ *phase.Context, s Save) (cmd phase.Command, err error) {
	cmd.Update(Changed.Add(s.Path))
	if p.onSaved != nil {
		cmd.Schedule(p.onSaved(s)...)
	}
	return cmd, nil
}

func (p *Plugin) patched(_ context.Context, _ *phase.Context, c Patch) (cmd phase.Command, err error) {
	cmd.Update(Changed.Add(c.Path))
	if p.onPatched != nil {
		cmd.Schedule(p.onPatched(c)...)
	}
	return cmd, nil
}
