package budget

import (
	"context"
	"fmt"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Name is the plugin's name.
const Name = "budget"

// Limits is the content of the section.
type Limits struct {
	// Tokens is how many the run may use, input and output together; 0 means no
	// limit.
	Tokens int64 `json:"tokens"`
	// WarnAt is the share of Tokens at which the model is told; 0 means never. The
	// default is 0.8.
	WarnAt float64 `json:"warn_at"`
}

// Section is the section that sets the limits.
var Section = engine.NewConfigKey(Name, engine.ConfigOptions[Limits]{
	Default: func() Limits { return Limits{WarnAt: 0.8} },
	Check:   Limits.Validate,
})

// Validate returns what is wrong with the limits, or nil.
func (l Limits) Validate() error {
	if l.Tokens < 0 {
		return fmt.Errorf("budget: tokens is %d; want 0 for no limit, or more", l.Tokens)
	}
	if !(l.WarnAt >= 0 && l.WarnAt < 1) {
		return fmt.Errorf("budget: warn_at is %v; want a share of at least 0 and below 1", l.WarnAt)
	}
	return nil
}

// Warned says whether the model was told in this run.
var Warned = state.NewCell("budget.warned", state.Options[bool]{})

// New returns the plugin. It holds nothing and is safe for concurrent use.
func New() engine.Plugin {
	return engine.NewPlugin(Name, func(r *engine.Registrar) error {
		r.Key(Warned)
		r.Section(Section)
		r.Hook(phase.AfterInference, phase.HookFunc(check), engine.Writes(Warned, phase.RunLifecycle))
		return nil
	})
}

func check(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	l := Section.Get(pc)
	used := engine.Usage.Get(pc.Snapshot()).Total()
	switch {
	case l.Tokens == 0:
	case used >= l.Tokens:
		cmd.EndRun(phase.ReasonTokenBudget, fmt.Sprintf("%d of %d tokens used", used, l.Tokens))
	case l.WarnAt > 0 && float64(used) >= l.WarnAt*float64(l.Tokens) && !Warned.Get(pc.Snapshot()) && goesOn(pc):
		cmd.Update(Warned.With(true))
		cmd.Schedule(engine.AddContext.New(engine.ContextArgs{Message: inference.System(fmt.Sprintf(
			"%d of %d tokens are used. Bring your work to an end.", used, l.Tokens))}))
	}
	return cmd, nil
}

// goesOn reports whether the model will be asked again; otherwise there is nobody
// to warn.
func goesOn(pc *phase.Context) bool {
	resp, ok := pc.Response()
	return ok && len(resp.Message.ToolCalls) > 0
}
