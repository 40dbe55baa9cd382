package activecontext

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// Name is the plugin's name.
const Name = "activecontext"

// New returns the plugin for a file system, which it only reads. It is as safe for
// concurrent use as the file system is.
func New(fsys fs.FS) engine.Plugin {
	return engine.NewPlugin(Name, func(r *engine.Registrar) error {
		if fsys == nil {
			return errors.New("activecontext: New was given no file system")
		}
		r.Key(Touched, Pinned, turns)
		r.Section(Section)
		skip := engine.OnError(engine.Skip)
		show := func(ctx context.Context, pc *phase.Context) (phase.Command, error) { return show(ctx, pc, fsys) }
		r.Hook(phase.BeforeInference, phase.HookFunc(show), engine.Writes(), engine.Timeout(10*time.Second), skip)
		r.Hook(phase.AfterToolExecute, phase.HookFunc(touch), engine.Writes(Touched), skip)
		r.Hook(phase.StepEnd, phase.HookFunc(turn), engine.Writes(Touched, turns), skip)
		return nil
	})
}

// show adds the message to the call that comes.
func show(ctx context.Context, pc *phase.Context, fsys fs.FS) (cmd phase.Command, err error) {
	s, snap := Section.Get(pc), pc.Snapshot()
	p := page{left: s.MaxBytes}
	for _, text := range s.Texts {
		p.add("pinned text", "a pinned text", strings.TrimSpace(text), len(text))
	}
	shown := map[string]bool{}
	for _, name := range slices.Concat(s.Files, slices.Collect(Pinned.All(snap))) {
		if !shown[name] && ctx.Err() == nil {
			shown[name] = true
			p.pinned(fsys, name, s)
		}
	}
	n := 0
	for _, name := range recent(snap) {
		if shown[name] || n == s.Recent || ctx.Err() != nil {
			continue
		}
		known := ""
		if s.Unchanged == UnchangedNote {
			t, _ := Touched.Get(snap, name)
			known = result(pc, t.Call)
		}
		if p.touched(fsys, name, s, known) {
			n++
		}
	}
	if ctx.Err() != nil {
		return cmd, context.Cause(ctx)
	}
	if text := p.text(); text != "" {
		cmd.Schedule(engine.AddContext.New(engine.ContextArgs{Message: inference.User(text), Mode: engine.OneShot}))
	}
	return cmd, nil
}

// result returns the last result in the history of a call of that id.
func result(pc *phase.Context, call string) string {
	history := pc.Messages()
	for i := history.Len() - 1; i >= 0; i-- { // it is near the end, mostly
		if m := history.At(i); m.Role == inference.RoleTool && m.Result.CallID == call {
			return m.Text
		}
	}
	return ""
}
