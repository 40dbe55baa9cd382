package crash

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// runsPerThread is how many runs a thread has before the next thread takes its place.
const runsPerThread = 5

// The tools by what becomes of a call that a crash interrupted.
const (
	toolOnce  = "once"  // FailAsInterrupted
	toolAgain = "again" // Rerun
	toolSure  = "sure"  // AskPerson
	toolGated = "gated" // FailAsInterrupted, and a gate asks before
	toolAsks  = "asks"  // Rerun, and its body asks a person itself, then runs again
)

func toolNames() []string { return []string{toolOnce, toolAgain, toolSure, toolGated, toolAsks} }

func recoveryOf(tool string) engine.Recovery {
	switch tool {
	case toolAgain, toolAsks:
		return engine.Rerun
	case toolSure:
		return engine.AskPerson
	default:
		return engine.FailAsInterrupted
	}
}

// sent is the payload of both effects. What identifies its commit in the ledger.
type sent struct {
	Thread string `json:"thread"`
	What   string `json:"what"`
}

// keys are what the shop keeps. Every command adds a line to the ledger that no other
// commit can add, since it names the length that the ledger had.
type keys struct {
	ledger state.Log[string]
	sum    state.Counter
	slots  state.Table[string, int] // one entry per call that did its work
	kept   effects.Spec[sent]
	plain  effects.Spec[sent]
	later  phase.ActionSpec[string]
}

func newKeys() *keys {
	thread := state.ScopeThread
	return &keys{
		ledger: state.NewLog("crash.ledger", state.Options[string]{Scope: thread}),
		sum:    state.NewCounter("crash.sum", state.Options[int64]{Scope: thread}),
		slots:  state.NewTable[string]("crash.slots", state.Options[int]{Scope: thread}),
		kept:   effects.NewSpec[sent]("crash.kept", effects.Durable()),
		plain:  effects.NewSpec[sent]("crash.plain"),
		later:  phase.NewAction[string]("crash.later", phase.StepEnd),
	}
}

// watcher is told what happens beside commits. Its methods are called concurrently.
type watcher interface {
	body(thread, call string)
	delivered(durable bool, id effects.ID, s sent) error
}

// shop is the plugin that the threads are about.
type shop struct {
	*keys
	watch watcher
	seed  uint64
}

func (s *shop) Name() string { return "shop" }

func (s *shop) Register(r *engine.Registrar) error {
	r.Key(s.ledger, s.sum, s.slots)
	for _, name := range toolNames() {
		r.Tool(&tool{shop: s, name: name})
	}
	r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
		if pc.Call().Name == toolGated {
			ticket := gate.Ticket{Message: "Sell it?"}
			if hash(s.seed, pc.Call().ID)%2 == 0 { // a kill takes longer than that, by the clock
				ticket.Lifetime, ticket.Default = patience/2, gate.DefaultNo
			}
			return gate.Ask(ticket), nil
		}
		return gate.Approve(), nil
	}))
	for _, p := range []phase.Phase{phase.RunStart, phase.StepStart, phase.AfterToolExecute, phase.StepEnd, phase.RunEnd} {
		r.Hook(p, phase.HookFunc(s.hook))
	}
	r.Action(s.later.Handle(func(_ context.Context, pc *phase.Context, origin string) (cmd phase.Command, err error) {
		cmd.Update(s.ledger.Append("done:" + origin))
		return cmd, nil
	}))
	r.Effect(
		s.kept.Handle(func(ctx context.Context, _ *state.Snapshot, m sent) error { return s.handle(ctx, true, m) }),
		s.plain.Handle(func(ctx context.Context, _ *state.Snapshot, m sent) error { return s.handle(ctx, false, m) }))
	return nil
}

func (s *shop) handle(ctx context.Context, durable bool, m sent) error {
	id, ok := effects.IDFrom(ctx)
	if !ok {
		return fmt.Errorf("crash: effect %s has no id", m.What)
	}
	return s.watch.delivered(durable, id, m)
}

// hook notes the phase. At StepStart it also schedules something for StepEnd, at other
// phases it emits effects.
func (s *shop) hook(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	what := fmt.Sprintf("hook:%s:%d", pc.Phase(), s.ledger.Get(pc.Snapshot()).Len())
	switch pc.Phase() {
	case phase.StepStart:
		cmd.Schedule(s.later.New(what))
		what = "todo:" + what
	case phase.StepEnd, phase.RunStart:
		s.emit(&cmd, pc, &what)
	}
	cmd.Update(s.ledger.Append(what))
	return cmd, nil
}

// emit adds a durable and a plain effect to the command, and to its line of the
// ledger that it does.
func (s *shop) emit(cmd *phase.Command, pc *phase.Context, what *string) {
	*what = "sent:" + *what
	m := sent{Thread: pc.Run().Thread, What: *what}
	cmd.Emit(s.plain.New(m), s.kept.New(m))
}

// tool does its work once: it counts, takes the slot of its call and tells of it.
type tool struct {
	*shop
	name string
}

func (t *tool) Spec() inference.ToolSpec  { return inference.ToolSpec{Name: t.name, Kind: "write"} }
func (t *tool) Recovery() engine.Recovery { return recoveryOf(t.name) }

func (t *tool) Call(_ context.Context, pc *phase.Context) (engine.Output, error) {
	call := pc.Call().ID
	t.watch.body(pc.Run().Thread, call)
	time.Sleep(time.Duration(hash(t.seed, call)%500) * time.Microsecond) // the work
	if t.name == toolAsks && len(pc.Answers()) == 0 {
		return engine.Output{Ask: &gate.Ticket{Kind: gate.Choice, Message: "How many?", Choices: gate.Choices("one", "two")}}, nil
	}
	what := fmt.Sprintf("tool:%s:%d", call, t.ledger.Get(pc.Snapshot()).Len())
	out := engine.Text("sold")
	t.emit(&out.Command, pc, &what)
	out.Command.Update(t.ledger.Append(what), t.sum.With(1), t.slots.Put(call, 1))
	return out, nil
}

// hash mixes a seed and a text to a number.
func hash(seed uint64, text string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s", seed, text)
	return h.Sum64()
}

// scripts are the models: which answers a thread's model gives follows from the seed
// and the thread's name, so that a new process goes on with the same script.
type scripts struct {
	seed uint64
	mu   sync.Mutex
	made map[string]*enginetest.Script
}

// Generate implements inference.Model. The first message names the thread.
func (s *scripts) Generate(ctx context.Context, r inference.Request) (inference.Response, error) {
	thread, _ := cutPrompt(r.Messages[0].Text)
	s.mu.Lock()
	script := s.made[thread]
	if script == nil {
		script = enginetest.NewScript(answers(s.seed, thread)...)
		s.made[thread] = script
	}
	s.mu.Unlock()
	return script.Generate(ctx, r)
}

func answers(seed uint64, thread string) (list []enginetest.Answer) {
	random, tools := rand.New(rand.NewPCG(seed, hash(seed, thread))), toolNames()
	for run := range runsPerThread {
		for step := range 1 + random.IntN(3) {
			var a enginetest.Answer
			for i := range 1 + random.IntN(4) {
				id := fmt.Sprintf("c%d.%d.%d", run, step, i)
				a = a.And(enginetest.Call(id, tools[random.IntN(len(tools))], nil))
			}
			list = append(list, a)
		}
		list = append(list, enginetest.Say("That is all."))
	}
	return list
}

func prompt(thread string, run int) string { return fmt.Sprintf("%s run %d", thread, run) }

func cutPrompt(text string) (thread string, run int) {
	_, _ = fmt.Sscanf(text, "%s run %d", &thread, &run)
	return thread, run
}

// specOf alternates between sequential and parallel calls.
func specOf(lane int) engine.AgentSpec {
	spec := engine.AgentSpec{ID: "seller"}
	if lane%2 == 1 {
		spec.ToolExecution = engine.ToolsParallel
	}
	return spec
}
