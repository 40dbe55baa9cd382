package headline

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// The plugins' names.
const (
	FocusName   = "focus"
	OutlineName = "outline"
)

// Focus returns a plugin that keeps Line.Focus. It holds nothing and is safe
// for concurrent use.
func Focus() engine.Plugin {
	return engine.NewPlugin(FocusName, func(r *engine.Registrar) error {
		r.Hook(phase.StepEnd, phase.HookFunc(focus), engine.Writes(Key))
		return nil
	})
}

func focus(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	calls := stepCalls(pc.Snapshot())
	if len(calls) == 0 {
		return cmd, nil
	}
	line := Key.Get(pc.Snapshot())
	last := calls[len(calls)-1].Call
	line.Focus = "last " + last.Name
	var args struct {
		Path    string `json:"path"`
		Pattern string `json:"pattern"`
	}
	// Arguments of another form have no subject to name.
	_ = json.Unmarshal([]byte(last.Args), &args)
	if subject := cmp.Or(args.Path, args.Pattern); subject != "" {
		line.Focus += " " + subject
	}
	cmd.Update(Key.With(line))
	return cmd, nil
}

// stepCalls returns the calls of the step in call order.
func stepCalls(snap *state.Snapshot) []engine.CallState {
	var calls []engine.CallState
	for _, c := range engine.ToolCalls.All(snap) {
		calls = append(calls, c)
	}
	slices.SortFunc(calls, func(a, b engine.CallState) int { return a.Index - b.Index })
	return calls
}
