package activecontext

import (
	"cmp"
	"context"
	"encoding/json"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// MaxTouched is how many touched files a thread remembers from one step to the next.
const MaxTouched = 64

const (
	maxPath  = 1024 // bytes of a path that a call can touch
	maxPaths = 32   // files that one call can touch
)

// Touch says which tool call touched a file last.
type Touch struct {
	Turn  int64  `json:"turn"`  // steps that the thread had taken
	Index int    `json:"index"` // of the call in its step
	Call  string `json:"call"`  // its id
}

// compare orders touches by time.
func (t Touch) compare(u Touch) int {
	return cmp.Or(cmp.Compare(t.Turn, u.Turn), cmp.Compare(t.Index, u.Index))
}

var (
	// Touched holds the files that tool calls touched, by path.
	Touched = state.NewTable[string]("activecontext.touched", state.Options[Touch]{Scope: state.ScopeThread})
	// Pinned holds files that are shown besides those of the section. It is for programs
	// and other plugins to write.
	Pinned = state.NewSet[string]("activecontext.pinned", state.Options[string]{Scope: state.ScopeThread})
	// turns counts the thread's steps.
	turns = state.NewCounter("activecontext.turns", state.Options[int64]{Scope: state.ScopeThread})
)

// touch notes the files that a call touched.
func touch(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	if pc.Result().Outcome != inference.OutcomeOK {
		return cmd, nil
	}
	snap, call := pc.Snapshot(), pc.Call()
	own, _ := engine.ToolCalls.Get(snap, call.ID)
	now := Touch{turns.Get(snap), own.Index, call.ID}
	for _, name := range paths(call.Args, Section.Get(pc).Args) {
		// Of calls that run in parallel the last in call order counts, not in time.
		if last, ok := Touched.Get(snap, name); !ok || last.compare(now) < 0 {
			cmd.Update(Touched.Put(name, now))
		}
	}
	return cmd, nil
}

// paths returns the files that arguments name, without repeats.
func paths(raw inference.JSON, names []string) (out []string) {
	var args map[string]json.RawMessage
	if json.Unmarshal([]byte(raw), &args) != nil {
		return nil // whatever they are, they name no file
	}
	for _, arg := range names {
		var one string
		many := []string{}
		if json.Unmarshal(args[arg], &one) == nil {
			many = append(many, one)
		} else if json.Unmarshal(args[arg], &many) != nil {
			continue
		}
		for _, p := range many {
			name := path.Clean(strings.TrimSpace(p))
			if fs.ValidPath(name) && name != "." && len(name) <= maxPath && len(out) < maxPaths && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// recent returns the touched files, the last one first.
func recent(snap *state.Snapshot) (names []string) {
	for name := range Touched.All(snap) {
		names = append(names, name)
	}
	// Those that one call touched stay in order of their names.
	slices.SortStableFunc(names, func(a, b string) int {
		ta, _ := Touched.Get(snap, a)
		tb, _ := Touched.Get(snap, b)
		return tb.compare(ta)
	})
	return names
}

// turn counts a step and forgets the files that were touched long ago.
func turn(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	cmd.Update(turns.With(1))
	if names := recent(pc.Snapshot()); len(names) > MaxTouched {
		for _, name := range names[MaxTouched:] {
			cmd.Update(Touched.Delete(name))
		}
	}
	return cmd, nil
}
