package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// gaAgent is the spec of an agent that uses everything there is.
var gaAgent = engine.AgentSpec{ID: "agent"}

// gaPlugin is a plugin whose registration makes no mistakes of its own.
func gaPlugin(name string, register func(r *engine.Registrar)) engine.Plugin {
	return engine.NewPlugin(name, func(r *engine.Registrar) error {
		register(r)
		return nil
	})
}

// gaOn is a plugin with one hook.
func gaOn(name string, p phase.Phase, hook phase.HookFunc, options ...engine.HookOption) engine.Plugin {
	return gaPlugin(name, func(r *engine.Registrar) { r.Hook(p, hook, options...) })
}

// gaKeys is a plugin that registers keys only.
func gaKeys(keys ...state.AnyKey) engine.Plugin {
	return gaPlugin("keys", func(r *engine.Registrar) { r.Key(keys...) })
}

func gaNew(t testing.TB, c engine.Config) *engine.Engine {
	t.Helper()
	if c.Model == nil {
		c.Model = gaSays("done")
	}
	e, err := engine.New(c)
	require.NoError(t, err)
	return e
}

func gaThread(t testing.TB, c engine.Config) *engine.Thread {
	t.Helper()
	th, err := gaNew(t, c).NewThread("thread")
	require.NoError(t, err)
	return th
}

// gaPlugins is a thread of an engine with the given plugins and nothing else.
func gaPlugins(t testing.TB, plugins ...engine.Plugin) *engine.Thread {
	t.Helper()
	return gaThread(t, engine.Config{Plugins: plugins})
}

// gaPhase runs one phase that must not fail.
func gaPhase(t testing.TB, th *engine.Thread, p phase.Phase) *engine.Report {
	t.Helper()
	rep, err := th.RunPhase(t.Context(), gaAgent, p)
	require.NoError(t, err)
	return rep
}

// gaRun runs the agent to an end that must not be an error.
func gaRun(t testing.TB, th *engine.Thread) *engine.Result {
	t.Helper()
	res, err := th.Run(t.Context(), gaAgent, engine.Prompt("hello"))
	require.NoError(t, err)
	require.NoError(t, res.Err)
	return res
}

func gaUpdates(us ...state.Update) phase.Command {
	var cmd phase.Command
	cmd.Update(us...)
	return cmd
}

// gaDoes is a hook that returns the same command each time.
func gaDoes(cmd phase.Command) phase.HookFunc {
	return func(context.Context, *phase.Context) (phase.Command, error) { return cmd, nil }
}

func gaWrites(us ...state.Update) phase.HookFunc { return gaDoes(gaUpdates(us...)) }

// gaScript is a model that gives one answer after the other and then repeats the
// last. It keeps the requests.
type gaScript struct {
	mu       sync.Mutex
	answers  []inference.Message
	requests []inference.Request
}

func gaSays(texts ...string) *gaScript {
	s := &gaScript{}
	for _, text := range texts {
		s.answers = append(s.answers, inference.Assistant(text))
	}
	return s
}

// gaCalls is a model that asks for the calls in its first step and then ends.
func gaCalls(calls ...inference.ToolCall) *gaScript {
	return &gaScript{answers: []inference.Message{inference.Assistant("", calls...), inference.Assistant("done")}}
}

func (s *gaScript) Generate(_ context.Context, r inference.Request) (inference.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := min(len(s.requests), len(s.answers)-1)
	s.requests = append(s.requests, r)
	return inference.Response{Message: s.answers[at]}, nil
}

func (s *gaScript) asked() []inference.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// gaTool is a tool that accepts any arguments.
type gaTool struct {
	name string
	call func(ctx context.Context, pc *phase.Context) (engine.Output, error)
}

func (g gaTool) Spec() inference.ToolSpec { return inference.ToolSpec{Name: g.name} }

func (g gaTool) Call(ctx context.Context, pc *phase.Context) (engine.Output, error) {
	if g.call == nil {
		return engine.Text("ok"), nil
	}
	return g.call(ctx, pc)
}

// gaTools is a plugin with tools.
func gaTools(tools ...engine.Tool) engine.Plugin {
	return gaPlugin("tools", func(r *engine.Registrar) { r.Tool(tools...) })
}

// gaTape is an observer that keeps every event.
type gaTape struct {
	mu     sync.Mutex
	events []engine.Event
}

func (g *gaTape) Observe(e engine.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.events = append(g.events, e)
}

func (g *gaTape) all() []engine.Event {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.events)
}

// gaOf returns the events of one type.
func gaOf[E engine.Event](tape *gaTape) []E {
	var out []E
	for _, e := range tape.all() {
		if one, ok := e.(E); ok {
			out = append(out, one)
		}
	}
	return out
}

// lines renders every event as its type and its JSON, one a line.
func (g *gaTape) lines(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	for _, e := range g.all() {
		text, err := json.Marshal(e)
		require.NoError(t, err)
		fmt.Fprintf(&b, "%s %s\n", e.Type(), text)
	}
	return b.String()
}

// gaClock is a clock that stands still, so that events of equal runs are equal.
func gaClock() time.Time { return time.Unix(1_000_000, 0).UTC() }

// gaIDs returns a source of ids that counts.
func gaIDs() func() string {
	var n atomic.Int64
	return func() string { return fmt.Sprintf("id-%d", n.Add(1)) }
}

// gaStatuses lists the fate of each hook of a report, in its order.
func gaStatuses(rep *engine.Report) []engine.HookStatus {
	var out []engine.HookStatus
	for _, h := range rep.Hooks {
		out = append(out, h.Status)
	}
	return out
}

// gaHookCalls lists how often each hook of a report was called.
func gaHookCalls(rep *engine.Report) []int {
	var out []int
	for _, h := range rep.Hooks {
		out = append(out, h.Calls)
	}
	return out
}

// gaNoLeak fails the test if goroutines that run code of this module are left
// when it ends that were not there when it began.
func gaNoLeak(t testing.TB) {
	t.Helper()
	before := gaModuleGoroutines()
	t.Cleanup(func() {
		deadline := time.Now().Add(5 * time.Second)
		for gaModuleGoroutines() > before {
			if time.Now().After(deadline) {
				buf := make([]byte, 1<<20)
				t.Errorf("goroutines were left behind:\n%s", buf[:runtime.Stack(buf, true)])
				return
			}
			runtime.Gosched()
		}
	})
}

func gaModuleGoroutines() int {
	buf := make([]byte, 1<<20)
	n := 0
	for one := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(one, "fixpoint/engine.") || strings.Contains(one, "fixpoint/effects.") || strings.Contains(one, "fixpoint/state.") {
			n++
		}
	}
	return n
}
