package census

import (
	"context"
	"fmt"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Total sums levels up.
type Total struct {
	Levels     []Level `json:"levels"`
	Folders    int     `json:"folders"`
	Files      int     `json:"files"`
	Bytes      int64   `json:"bytes"`
	Unreadable int     `json:"unreadable,omitzero"`
	Left       int     `json:"left,omitzero"`
}

// Sum returns the total of what a snapshot holds, level by level.
func Sum(snap *state.Snapshot) Total {
	t := Total{Levels: []Level{}}
	for _, l := range Levels.All(snap) {
		t.add(l)
	}
	return t
}

func (t *Total) add(l Level) {
	t.Levels = append(t.Levels, l)
	t.Folders += l.Folders
	t.Files += l.Files
	t.Bytes += l.Bytes
	t.Unreadable += l.Unreadable
	t.Left += l.Left
}

func (t Total) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "The directory holds %d files with %d bytes in %d folders on %d levels.", t.Files, t.Bytes, t.Folders, len(t.Levels))
	if t.Unreadable > 0 {
		fmt.Fprintf(&b, " %d folders could not be read.", t.Unreadable)
	}
	if t.Left > 0 {
		fmt.Fprintf(&b, " %d more folders were not counted.", t.Left)
	}
	return b.String()
}

func show(_ context.Context, pc *phase.Context, _ struct{}) (engine.Output, error) {
	t := Sum(pc.Snapshot())
	var b strings.Builder
	b.WriteString(t.text() + "\n")
	for _, l := range t.Levels {
		fmt.Fprintf(&b, "level %d: %d folders, %d files, %d bytes\n", l.Level, l.Folders, l.Files, l.Bytes)
	}
	details, err := inference.ToJSON(t)
	if err != nil {
		return engine.Output{}, err
	}
	return engine.Output{Content: b.String(), Details: details}, nil
}
