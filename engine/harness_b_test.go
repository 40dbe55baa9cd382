package engine_test

import (
	"context"
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
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// gbStep is one answer of a scripted model.
type gbStep func(ctx context.Context, req inference.Request) (inference.Response, error)

// gbModel answers by script. The position is the number of assistant messages in
// the request, so that one model serves many runs at once. Past the end of the
// script it says "done".
type gbModel struct {
	steps []gbStep

	mu       sync.Mutex
	requests []inference.Request
}

func gbScript(steps ...gbStep) *gbModel { return &gbModel{steps: steps} }

func (m *gbModel) Generate(ctx context.Context, req inference.Request) (inference.Response, error) {
	m.mu.Lock()
	m.requests = append(m.requests, req.Clone())
	m.mu.Unlock()
	n := 0
	for _, msg := range req.Messages {
		if msg.Role == inference.RoleAssistant {
			n++
		}
	}
	if n < len(m.steps) {
		return m.steps[n](ctx, req)
	}
	return gbSay("done")(ctx, req)
}

// sent returns the requests so far.
func (m *gbModel) sent() []inference.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

func gbSay(text string) gbStep {
	return func(context.Context, inference.Request) (inference.Response, error) {
		return inference.Response{Message: inference.Assistant(text), Stop: inference.StopEnd}, nil
	}
}

// gbAsk answers with tool calls.
func gbAsk(calls ...inference.ToolCall) gbStep {
	return func(context.Context, inference.Request) (inference.Response, error) {
		return inference.Response{Message: inference.Assistant("", calls...), Stop: inference.StopToolUse}, nil
	}
}

func gbFail(err error) gbStep {
	return func(context.Context, inference.Request) (inference.Response, error) {
		return inference.Response{}, err
	}
}

func gbCall(id, tool string, args inference.JSON) inference.ToolCall {
	return inference.ToolCall{ID: id, Name: tool, Args: args}
}

// gbEvents is an observer that keeps what it sees.
type gbEvents = gaTape

// gbOf returns the events of one type, in order.
func gbOf[E engine.Event](g *gbEvents) []E { return gaOf[E](g) }

// gbWorld is an engine with one thread and one agent.
type gbWorld struct {
	t       testing.TB
	engine  *engine.Engine
	thread  *engine.Thread
	events  *gbEvents
	spec    engine.AgentSpec
	journal engine.Journal // of the engine
}

// gbNew builds a world from c, with ids that count up.
func gbNew(t testing.TB, c engine.Config) *gbWorld {
	t.Helper()
	w := &gbWorld{t: t, events: &gbEvents{}, spec: engine.AgentSpec{ID: "agent"}, journal: c.Journal}
	c.Observers = append(c.Observers, w.events)
	if c.NewID == nil {
		c.NewID = gbIDs()
	}
	var err error
	w.engine, err = engine.New(c)
	require.NoError(t, err)
	w.thread, err = w.engine.NewThread("thread")
	require.NoError(t, err)
	return w
}

func gbIDs() func() string {
	var n atomic.Int64
	return func() string { return fmt.Sprintf("id-%d", n.Add(1)) }
}

func (w *gbWorld) run(in engine.Input) *engine.Result {
	w.t.Helper()
	return w.runCtx(w.t.Context(), in)
}

func (w *gbWorld) runCtx(ctx context.Context, in engine.Input) *engine.Result {
	w.t.Helper()
	res, err := w.thread.Run(ctx, w.spec, in)
	require.NoError(w.t, err)
	return res
}

// say runs the agent with one user message.
func (w *gbWorld) say(text string) *engine.Result {
	w.t.Helper()
	return w.run(engine.Prompt(text))
}

// messages returns the thread's history.
func (w *gbWorld) messages() []inference.Message {
	return engine.Transcript.Get(w.thread.Snapshot()).Slice()
}

// results returns the tool results in the history, in order.
func (w *gbWorld) results() []inference.ToolResult {
	var out []inference.ToolResult
	for _, m := range w.messages() {
		if m.Role == inference.RoleTool {
			out = append(out, m.Result)
		}
	}
	return out
}

// one returns the only tool result of the thread.
func (w *gbWorld) one() inference.ToolResult {
	w.t.Helper()
	require.Len(w.t, w.results(), 1)
	return w.results()[0]
}

// gbOutcomes lists "id outcome" of results.
func gbOutcomes(results []inference.ToolResult) []string {
	var out []string
	for _, r := range results {
		out = append(out, r.CallID+" "+string(r.Outcome))
	}
	return out
}

// gbTexts lists the texts of messages.
func gbTexts(messages []inference.Message) (out []string) {
	for _, m := range messages {
		out = append(out, m.Text)
	}
	return out
}

// gbTool is a tool without a schema that counts its calls.
type gbTool struct {
	spec  inference.ToolSpec
	fn    func(ctx context.Context, pc *phase.Context) (engine.Output, error)
	calls atomic.Int64
}

// gbToolOf makes a tool; without fn it answers "<name> ran".
func gbToolOf(name string, fn func(ctx context.Context, pc *phase.Context) (engine.Output, error)) *gbTool {
	if fn == nil {
		fn = func(context.Context, *phase.Context) (engine.Output, error) { return engine.Text(name + " ran"), nil }
	}
	return &gbTool{spec: inference.ToolSpec{Name: name}, fn: fn}
}

func (g *gbTool) Spec() inference.ToolSpec { return g.spec }

func (g *gbTool) Call(ctx context.Context, pc *phase.Context) (engine.Output, error) {
	g.calls.Add(1)
	return g.fn(ctx, pc)
}

func (g *gbTool) ran() int { return int(g.calls.Load()) }

// gbTools is a plugin that brings tools.
func gbTools(tools ...engine.Tool) engine.Plugin {
	return engine.NewPlugin("tools", func(r *engine.Registrar) error {
		r.Tool(tools...)
		return nil
	})
}

// gbGate is a plugin with one gate.
func gbGate(name string, check func(ctx context.Context, pc *phase.Context) (gate.Decision, error), options ...engine.GateOption) engine.Plugin {
	return engine.NewPlugin(name, func(r *engine.Registrar) error {
		r.Gate(gate.Func(check), options...)
		return nil
	})
}

// gbVote is a plugin whose gate always says d.
func gbVote(name string, d gate.Decision) engine.Plugin {
	return gbGate(name, func(context.Context, *phase.Context) (gate.Decision, error) { return d, nil })
}

// gbHook is a plugin with one hook.
func gbHook(name string, p phase.Phase, fn func(ctx context.Context, pc *phase.Context) (phase.Command, error), options ...engine.HookOption) engine.Plugin {
	return engine.NewPlugin(name, func(r *engine.Registrar) error {
		r.Hook(p, phase.HookFunc(fn), options...)
		return nil
	})
}

// gbLog is a list of lines that several goroutines add to.
type gbLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *gbLog) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *gbLog) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// gbProbe is a plugin that notes every phase it passes, tool phases with the call
// and, at the end of a call, its outcome.
func gbProbe(l *gbLog) engine.Plugin {
	return engine.NewPlugin("probe", func(r *engine.Registrar) error {
		for p := range phase.All() {
			if p == phase.ToolGate {
				r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
					l.add("%s %s", pc.Phase(), pc.Call().ID)
					return gate.Abstain(), nil
				}))
				continue
			}
			r.Hook(p, phase.HookFunc(func(_ context.Context, pc *phase.Context) (phase.Command, error) {
				switch {
				case pc.Phase() == phase.AfterToolExecute:
					l.add("%s %s %s", pc.Phase(), pc.Call().ID, pc.Result().Outcome)
				case pc.Call().ID != "":
					l.add("%s %s", pc.Phase(), pc.Call().ID)
				default:
					l.add("%s", pc.Phase())
				}
				return phase.Command{}, nil
			}))
		}
		return nil
	})
}

// gbLines returns the lines that begin with prefix.
func gbLines(lines []string, prefix string) []string {
	var out []string
	for _, l := range lines {
		if strings.HasPrefix(l, prefix) {
			out = append(out, l)
		}
	}
	return out
}

// gbNoLeaks checks at the end of the test that no goroutine of the engine is left.
func gbNoLeaks(t testing.TB) {
	t.Helper()
	before := gbGoroutines()
	t.Cleanup(func() {
		deadline := time.Now().Add(5 * time.Second)
		for gbGoroutines() > before {
			if time.Now().After(deadline) {
				buf := make([]byte, 1<<20)
				t.Errorf("goroutines left: %d, before: %d\n%s", gbGoroutines(), before, buf[:runtime.Stack(buf, true)])
				return
			}
			runtime.Gosched()
		}
	})
}

// gbGoroutines counts the goroutines that run code of the engine package.
func gbGoroutines() int {
	buf := make([]byte, 1<<20)
	n := 0
	for _, stack := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(stack, "fixpoint/engine.") && !strings.Contains(stack, "testing.tRunner") {
			n++
		}
	}
	return n
}

// gbPaired checks that every assistant message with calls is followed at once by
// exactly one result per call, in call order.
func gbPaired(t testing.TB, messages []inference.Message) {
	t.Helper()
	for i := 0; i < len(messages); i++ {
		require.NotEqual(t, inference.RoleTool, messages[i].Role, "message %d is a result that nobody asked for", i)
		for _, c := range messages[i].ToolCalls {
			i++
			require.Less(t, i, len(messages), "no result for %s", c.ID)
			require.Equal(t, inference.RoleTool, messages[i].Role)
			require.Equal(t, c.ID, messages[i].Result.CallID)
		}
	}
}
