package tokens

import (
	"context"
	"fmt"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Name is the plugin's name.
const Name = "tokens"

// Fill is how full a context window is.
type Fill struct {
	Agent  string `json:"agent"`          // whose call it was
	Model  string `json:"model,omitzero"` // that it counts for, by the name that the section knows it by
	Tokens int64  `json:"tokens"`         // of the last model call, input and output
}

// Context is how full the thread's context was in its last model call that told.
var Context = state.NewCell("tokens.context", state.Options[Fill]{Scope: state.ScopeThread})

// noted is the last note of the run.
var noted = state.NewCell("tokens.noted", state.Options[note]{})

type note struct {
	Step int   `json:"step"` // 0 before the first
	Used int64 `json:"used"` // tokens that it told of
}

// New returns the plugin. It holds nothing and is safe for concurrent use.
func New() engine.Plugin {
	return engine.NewPlugin(Name, func(r *engine.Registrar) error {
		r.Key(Context, noted)
		r.Section(Section)
		r.Hook(phase.BeforeInference, phase.HookFunc(tell), engine.Writes(noted), engine.OnError(engine.Skip))
		r.Hook(phase.AfterInference, phase.HookFunc(measure), engine.Writes(Context), engine.OnError(engine.Skip))
		return nil
	})
}

// measure keeps how full the context was.
func measure(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	resp, _ := pc.Response()
	if total := resp.Usage.Total(); total > 0 { // a model that tells no usage leaves the last one known
		s, agent, model := Section.Get(pc), pc.Agent(), resp.Model
		if !s.settled(model) {
			req, _ := pc.Request() // a copy of all messages
			model = s.known(model, req.Model, agent.Model)
		}
		cmd.Update(Context.With(Fill{agent.ID, model, total}))
	}
	return cmd, nil
}

// tell tells the model what it has, first for the run and then what is left.
func tell(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	s, last := Section.Get(pc), noted.Get(pc.Snapshot())
	taken, window := s.fill(pc)
	now := note{pc.Run().Step, engine.Usage.Get(pc.Snapshot()).Total()}
	text, mode := s.usage(now.Used, taken, window), engine.OneShot
	if last.Step == 0 {
		text, mode = s.start(taken, window), engine.Persistent
	} else if s.Every == 0 || now.Step-last.Step < s.Every || now.Used <= last.Used || !s.due(now.Used, taken, window) {
		return cmd, nil
	}
	cmd.Update(noted.With(now))
	if text != "" {
		cmd.Schedule(engine.AddContext.New(engine.ContextArgs{Message: inference.System(text), Mode: mode}))
	}
	return cmd, nil
}

// fill returns what the agent's context holds at least and the size of its window, each 0
// when it is not known.
func (s Settings) fill(pc *phase.Context) (taken, window int64) {
	agent := pc.Agent()
	if f := Context.Get(pc.Snapshot()); f.Agent == agent.ID {
		return f.Tokens, s.window(f.Model)
	}
	return 0, s.window(agent.Model) // after a handoff the tokens were counted by another model
}

// due reports whether enough is used for a note.
func (s Settings) due(used, taken, window int64) bool {
	share := func(n, of int64) bool { return of > 0 && float64(n) >= s.From*float64(of) }
	return s.From == 0 || share(used, s.Budget) || share(taken, window)
}

// start returns what a run begins with, "" when there is nothing to tell.
func (s Settings) start(taken, window int64) string {
	var parts []string
	if s.Budget > 0 {
		parts = append(parts, fmt.Sprintf("You may use %d tokens in this run.", s.Budget))
	}
	if window > 0 {
		parts = append(parts, fmt.Sprintf("Your context window has %d tokens.", window))
	}
	if window > 0 && taken > 0 {
		parts = append(parts, fmt.Sprintf("At least %d of them are taken.", taken))
	}
	return strings.Join(parts, " ")
}

// usage returns what was used.
func (s Settings) usage(used, taken, window int64) string {
	text := fmt.Sprintf("This run has used %d tokens.", used)
	if s.Budget > 0 {
		text = fmt.Sprintf("This run has used %d of its %d tokens; %d are left.", used, s.Budget, max(s.Budget-used, 0))
	}
	if window > 0 && taken > 0 {
		text += fmt.Sprintf(" Your context holds %d of %d tokens.", taken, window)
	}
	return text
}
