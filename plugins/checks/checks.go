package checks

import (
	"context"
	"slices"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Name is the plugin's name.
const Name = "checks"

// Verdict says how the checks went.
type Verdict struct {
	Tree     string    `json:"tree"` // stands for the files that were checked
	Step     int       `json:"step"`
	Failures []Failure `json:"failures,omitempty"`
}

// Passed reports whether there was a check and no failure.
func (v Verdict) Passed() bool { return v.Tree != "" && len(v.Failures) == 0 }

// Failure is a check that failed.
type Failure struct {
	Command string `json:"command"` // its name
	Status  string `json:"status"`  // how it ended
	Output  string `json:"output"`  // the last of what it wrote, on both outputs
}

var (
	// Last is the last verdict of the run; the zero Verdict before there is one.
	Last = state.NewCell("checks.last", state.Options[Verdict]{Clone: func(v Verdict) Verdict {
		v.Failures = slices.Clone(v.Failures)
		return v
	}})

	start = state.NewCell("checks.start", state.Options[string]{})   // the files when the run began
	calls = state.NewCounter("checks.calls", state.Options[int64]{}) // of tools that may change files
	told  = state.NewCounter("checks.told", state.Options[int64]{})  // how often the model was told of failures
)

// An action of a kind runs in one phase; begin notes what there was before the run.
var (
	begin = phase.NewAction[struct{}]("checks.begin", phase.RunStart)
	check = phase.NewAction[struct{}]("checks.run", phase.StepEnd)
)

// New returns the plugin. It holds nothing but its options and is safe for concurrent use.
func New(o Options) engine.Plugin { return plugin{o} }

type plugin struct{ opts Options }

func (p plugin) Name() string { return Name }

func (p plugin) Register(r *engine.Registrar) error {
	r.Key(Last, start, calls, told)
	r.Section(Section)
	r.Action(begin.Handle(p.begin), check.Handle(p.run))
	r.Hook(phase.RunStart, phase.HookFunc(atStart), engine.Writes())
	r.Hook(phase.AfterToolExecute, phase.HookFunc(count), engine.Writes(calls))
	r.Hook(phase.StepEnd, phase.HookFunc(atStep), engine.Writes())
	r.Hook(phase.RunEnd, phase.HookFunc(p.atEnd), engine.Writes(Last))
	return nil
}

func atStart(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	if len(Section.Get(pc).Commands) > 0 {
		cmd.Schedule(begin.New(struct{}{}))
	}
	return cmd, nil
}

func (p plugin) begin(ctx context.Context, pc *phase.Context, _ struct{}) (cmd phase.Command, err error) {
	tree, err := p.tree(ctx, pc.Snapshot())
	if err == nil {
		cmd.Update(start.With(tree))
	}
	return cmd, err // then everything counts as changed
}

func count(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	switch pc.Result().Outcome {
	case inference.OutcomeBlocked, inference.OutcomeDenied, inference.OutcomeNotRun:
		return cmd, nil
	}
	if slices.Contains(Section.Get(pc).Kinds, pc.Tool().Kind) {
		cmd.Update(calls.With(1))
	}
	return cmd, nil
}

// atStep has the checks run if the step may be the last, or after each.
func atStep(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	settings := Section.Get(pc)
	if len(settings.Commands) > 0 && (settings.At == EachStep || done(pc)) {
		cmd.Schedule(check.New(struct{}{}))
	}
	return cmd, nil
}

// done reports whether the model asked for no more tools.
func done(pc *phase.Context) bool {
	resp, ok := pc.Response()
	return ok && pc.Err() == nil && len(resp.Message.ToolCalls) == 0
}

// run runs the checks unless these files had theirs, and tells the model what failed.
func (p plugin) run(ctx context.Context, pc *phase.Context, _ struct{}) (cmd phase.Command, err error) {
	settings, snap := Section.Get(pc), pc.Snapshot()
	v, fresh, err := p.verdict(ctx, pc)
	if err != nil {
		return cmd, err
	}
	if fresh {
		cmd.Update(Last.With(v))
	}
	if len(v.Failures) == 0 || !fresh && !done(pc) || told.Get(snap) >= int64(settings.Attempts) {
		return cmd, nil
	}
	cmd.Update(told.With(1), engine.Transcript.Append(inference.System(v.text())))
	return *cmd.Continue("checks failed"), nil
}

// atEnd keeps later tiers from running unless the files as they are have passed, or
// are those from the start of the run.
func (p plugin) atEnd(ctx context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	if len(Section.Get(pc).Commands) == 0 {
		return cmd, nil
	}
	if end := phase.RunLifecycle.Get(pc.Snapshot()).Reason; end == phase.ReasonCancelled || end == phase.ReasonError {
		return *cmd.StopPhase(), nil
	}
	soon, cancel := almost(ctx)
	defer cancel()
	v, fresh, err := p.verdict(soon, pc)
	if ctx.Err() != nil {
		return cmd, context.Cause(ctx) // which fails the phase, so that no later tier runs
	}
	if err != nil {
		v, fresh = Verdict{Step: pc.Run().Step, Failures: []Failure{{Command: Name, Status: "not done in the time that the end of a run has"}}}, true
	}
	if fresh {
		cmd.Update(Last.With(v))
	}
	if len(v.Failures) > 0 {
		cmd.StopPhase()
	}
	return cmd, nil
}
