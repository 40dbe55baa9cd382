package autocommit

import (
	"context"
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Name is the plugin's name.
const Name = "autocommit"

// Status says what came of a run that was to be committed.
type Status string

// What can come of it.
const (
	Committed Status = "committed"
	Unchanged Status = "unchanged" // there is nothing to commit
	Refused   Status = "refused"   // the changes, or the repository, are not as they must be
	Failed    Status = "failed"    // something else went wrong
)

// Result says what became of the changes of a run.
type Result struct {
	Run    string `json:"run"`
	Status Status `json:"status"`
	Commit string `json:"commit,omitzero"` // its id
	Branch string `json:"branch,omitzero"` // its full name; "" when HEAD is detached
	// Files counts the files that were committed or, when refused for them, those that
	// kept it from being done. Paths lists the first MaxPaths of them.
	Files int      `json:"files,omitzero"`
	Paths []string `json:"paths,omitempty"`
	Why   string   `json:"why,omitzero"` // unless Committed; then what went wrong afterwards
}

// MaxPaths is how many paths a Result lists at most.
const MaxPaths = 100

var (
	// Last is what came of the run's changes; its Status is empty before that is known.
	Last = state.NewCell("autocommit.last", state.Options[Result]{Clone: func(r Result) Result {
		r.Paths = slices.Clone(r.Paths)
		return r
	}})

	start = state.NewCell("autocommit.start", state.Options[beginning]{})
	ready = state.NewCell("autocommit.ready", state.Options[prepared]{})
)

// Done is the effect that tells the Result of a run.
var Done = effects.NewSpec[Result]("autocommit.done", effects.Durable())

// beginning is how the repository was when the run began.
type beginning struct {
	Tree   string `json:"tree"`  // of the work tree
	Index  string `json:"index"` // of what was staged; "" when there were conflicts
	Head   string `json:"head"`  // a commit, or "" before the first
	Branch string `json:"branch"`
}

// prepared is a commit that nothing leads to yet.
type prepared struct {
	Run    string `json:"run"`
	Commit string `json:"commit"`
	Parent string `json:"parent"`
	Branch string `json:"branch"`
}

var (
	begin   = phase.NewAction[struct{}]("autocommit.begin", phase.RunStart)
	prepare = phase.NewAction[struct{}]("autocommit.prepare", phase.RunEnd)
	publish = phase.NewAction[prepared]("autocommit.publish", phase.RunEnd)
)

// New returns the plugin. It holds nothing but its options and is safe for concurrent
// use; runs in one workspace at the same time see each other's changes.
func New(o Options) engine.Plugin {
	if o.Now == nil {
		o.Now = time.Now
	}
	return plugin{o}
}

type plugin struct{ opts Options }

func (p plugin) Name() string { return Name }

func (p plugin) Register(r *engine.Registrar) error {
	r.Key(Last, start, ready)
	r.Section(Section)
	r.Effect(Done.Handle(func(ctx context.Context, _ *state.Snapshot, res Result) error {
		if p.opts.OnDone == nil {
			return nil
		}
		return p.opts.OnDone(ctx, res)
	}))
	r.Action(begin.Handle(p.begin), prepare.Handle(p.prepare), publish.Handle(p.publish))
	r.Hook(phase.RunStart, phase.HookFunc(atStart), engine.Writes())
	r.Hook(phase.RunEnd, phase.HookFunc(atEnd), engine.Writes(), engine.Tier(1))
	return nil
}

func atStart(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	if Section.Get(pc).Enabled {
		cmd.Schedule(begin.New(struct{}{}))
	}
	return cmd, nil
}

// atEnd has the changes committed. A run that is resumed may come here again.
func atEnd(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	settings, snap := Section.Get(pc), pc.Snapshot()
	if settings.Enabled && slices.Contains(settings.Reasons, phase.RunLifecycle.Get(snap).Reason) &&
		Last.Get(snap).Status == "" && ready.Get(snap).Commit == "" {
		cmd.Schedule(prepare.New(struct{}{}))
	}
	return cmd, nil
}

// ended returns the command that says what came of the run.
func ended(res Result) (cmd phase.Command) {
	res.Files = len(res.Paths)
	res.Paths = slices.Clone(res.Paths[:min(len(res.Paths), MaxPaths)])
	return *cmd.Update(Last.With(res)).Emit(Done.New(res))
}
