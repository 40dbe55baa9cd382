package snapshots

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Name is the plugin's name.
const Name = "snapshots"

// ReasonFailed is why a run ends when a snapshot that is required could not be taken.
const ReasonFailed phase.Reason = "snapshot_failed"

// Snapshot describes a snapshot of the workspace.
type Snapshot struct {
	ID    string    `json:"id"`    // "s1", "s2" and so on, per thread, perhaps with gaps
	Why   Why       `json:"why"`   // what it was taken for
	Store string    `json:"store"` // where its files are: "git" or "copies"
	Tree  string    `json:"tree"`  // stands for all of its content
	Run   string    `json:"run,omitzero"`
	Step  int       `json:"step,omitzero"`
	Tool  string    `json:"tool,omitzero"` // that was about to run
	Call  string    `json:"call,omitzero"` // its id
	Time  time.Time `json:"time"`
	Files int       `json:"files"`
	Bytes int64     `json:"bytes"` // of all files
}

// Why says what a snapshot was taken for.
type Why string

// The occasions.
const (
	RunStart   Why = "run_start"
	BeforeTool Why = "before_tool"
	BeforeBack Why = "before_restore" // so that the restoring can be undone
	Asked      Why = "asked"          // by Plugin.Take
)

var (
	// Taken holds the snapshots of the thread by number.
	Taken = state.NewTable[int, Snapshot]("snapshots.taken", state.Options[Snapshot]{Scope: state.ScopeThread})

	// step is the last step of the run before whose tools a snapshot was asked for.
	step = state.NewCell("snapshots.step", state.Options[int]{})
)

// List returns the thread's snapshots in a state, oldest first.
func List(snap *state.Snapshot) []Snapshot {
	var all []Snapshot
	for _, s := range Taken.All(snap) {
		all = append(all, s)
	}
	return all
}

func last(snap *state.Snapshot) (n int, s Snapshot) {
	for n, s = range Taken.All(snap) {
	}
	return n, s
}

// find returns a snapshot by its id.
func find(snap *state.Snapshot, id string) (Snapshot, error) {
	all := List(snap)
	for _, s := range all {
		if s.ID != id {
			continue
		}
		if _, err := hex.DecodeString(s.Tree); err != nil { // in a state from elsewhere
			return s, fmt.Errorf("%w: %s has no tree: %w", ErrUnknown, id, err)
		}
		return s, nil
	}
	if len(all) == 0 {
		return Snapshot{}, fmt.Errorf("%w %q: none was taken yet", ErrUnknown, id)
	}
	return Snapshot{}, fmt.Errorf("%w %q: there are %s to %s", ErrUnknown, id, all[0].ID, all[len(all)-1].ID)
}

// Plugin takes snapshots of one directory. It is safe for concurrent use, also by
// several engines: all Plugins of a program do one thing at a time in a directory.
type Plugin struct {
	given Options

	once sync.Once
	opts Options
	bad  error
}

// New returns the plugin. What is wrong with the options is engine.New's to say.
func New(o Options) *Plugin { return &Plugin{given: o} }

// options returns the options with their defaults.
func (p *Plugin) options() (Options, error) {
	p.once.Do(func() { p.opts, p.bad = p.given.complete() })
	return p.opts, p.bad
}

// busy has a lock for each directory.
var busy sync.Map

// lock waits until nobody else reads or writes the workspace, and returns what lets go.
func (p *Plugin) lock() (unlock func()) {
	mu, _ := busy.LoadOrStore(real(p.opts.Dir), new(sync.Mutex))
	mu.(*sync.Mutex).Lock()
	return mu.(*sync.Mutex).Unlock
}

// Name returns "snapshots".
func (p *Plugin) Name() string { return Name }

// request is the payload of the actions that take a snapshot.
type request struct {
	Why  Why    `json:"why"`
	Step int    `json:"step,omitzero"`
	Tool string `json:"tool,omitzero"`
	Call string `json:"call,omitzero"`
}

// An action runs in one phase, so there are two that do the same.
var (
	takeAtStart    = phase.NewAction[request]("snapshots.take_at_start", phase.RunStart)
	takeBeforeTool = phase.NewAction[request]("snapshots.take_before_tool", phase.BeforeToolExecute)
)

// Register registers the hooks, the actions and the tools.
func (p *Plugin) Register(r *engine.Registrar) error {
	if _, err := p.options(); err != nil {
		return err
	}
	r.Key(Taken, step)
	r.Section(Section)
	r.Action(takeAtStart.Handle(p.handle), takeBeforeTool.Handle(p.handle))
	r.Hook(phase.RunStart, phase.HookFunc(atStart), engine.Writes())
	r.Hook(phase.BeforeToolExecute, phase.HookFunc(beforeTool), engine.Writes(step))
	r.Tool(p.tools()...)
	return nil
}

func atStart(context.Context, *phase.Context) (cmd phase.Command, err error) {
	cmd.Schedule(takeAtStart.New(request{Why: RunStart}))
	return cmd, nil
}

// beforeTool asks for a snapshot. The action that takes it is done before the tool
// begins, since a phase is over when none of its actions is left; and of tools that
// run in parallel none begins before all have passed this phase.
func beforeTool(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	settings, now := Section.Get(pc), pc.Run().Step
	if !slices.Contains(settings.Kinds, pc.Tool().Kind) && pc.Tool().Name != RestoreTool {
		return cmd, nil
	}
	if settings.Take == EachStep && step.Get(pc.Snapshot()) == now && pc.Tool().Name != RestoreTool {
		return cmd, nil
	}
	cmd.Update(step.With(now))
	cmd.Schedule(takeBeforeTool.New(request{Why: BeforeTool, Step: now, Tool: pc.Tool().Name, Call: pc.Call().ID}))
	return cmd, nil
}

// handle takes a snapshot. If its command is refused because somebody else took one
// meanwhile, it runs again; what it left is a ref that nothing leads to.
func (p *Plugin) handle(ctx context.Context, pc *phase.Context, req request) (cmd phase.Command, err error) {
	settings := Section.Get(pc)
	defer p.lock()()
	s := Snapshot{Why: req.Why, Run: pc.Run().ID, Step: req.Step, Tool: req.Tool, Call: req.Call}
	_, err = p.take(ctx, pc.Snapshot(), pc.Run().Thread, s, settings.Keep, nil, &cmd)
	if err != nil && settings.Required && ctx.Err() == nil {
		return *new(phase.Command).EndRun(ReasonFailed, err.Error()), nil
	}
	return cmd, err
}
