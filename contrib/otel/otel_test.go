package otel_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	api "go.opentelemetry.io/otel/trace"

	"github.com/ddd26017/fixpoint/contrib/otel"
	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

var update = flag.Bool("update", false, "write the golden files")

// watch is an observer and what the SDK got of it.
type watch struct {
	*otel.Observer
	spans  *tracetest.InMemoryExporter
	reader *sdkmetric.ManualReader
	tracer api.Tracer
}

func newWatch(t *testing.T, o otel.Options, more ...sdktrace.TracerProviderOption) watch {
	t.Helper()
	w := watch{spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	tracers := sdktrace.NewTracerProvider(append(more, sdktrace.WithSyncer(w.spans))...)
	o.Tracers, o.Meters = tracers, sdkmetric.NewMeterProvider(sdkmetric.WithReader(w.reader))
	w.tracer = tracers.Tracer("test")
	var err error
	w.Observer, err = otel.New(o)
	require.NoError(t, err)
	return w
}

// span returns the only span of that name.
func (w watch) span(t *testing.T, name string) tracetest.SpanStub {
	t.Helper()
	all := w.named(name)
	require.Len(t, all, 1, name)
	return all[0]
}

func (w watch) named(name string) (out tracetest.SpanStubs) {
	for _, s := range w.spans.GetSpans() {
		if s.Name == name {
			out = append(out, s)
		}
	}
	return out
}

func attr(s tracetest.SpanStub, key string) attribute.Value {
	set := attribute.NewSet(s.Attributes...)
	v, _ := set.Value(attribute.Key(key))
	return v
}

// tree is what spans look like: names, kinds, statuses, attributes, events and links,
// below each other and in order of time.
func tree(spans tracetest.SpanStubs) string {
	below := map[api.SpanID][]tracetest.SpanStub{}
	names := map[api.SpanID]string{}
	for _, s := range spans {
		names[s.SpanContext.SpanID()] = s.Name
	}
	for _, s := range spans {
		parent := s.Parent.SpanID()
		if names[parent] == "" {
			parent = api.SpanID{}
		}
		below[parent] = append(below[parent], s)
	}
	var out strings.Builder
	var show func(parent api.SpanID, indent string)
	show = func(parent api.SpanID, indent string) {
		sort.SliceStable(below[parent], func(i, j int) bool { return below[parent][i].StartTime.Before(below[parent][j].StartTime) })
		for _, s := range below[parent] {
			fmt.Fprintf(&out, "%s%s", indent, s.Name)
			if s.SpanKind != api.SpanKindInternal {
				fmt.Fprintf(&out, " (%s)", s.SpanKind)
			}
			if s.Status.Code != codes.Unset {
				fmt.Fprintf(&out, " %s %q", s.Status.Code, s.Status.Description)
			}
			for _, l := range s.Links {
				fmt.Fprintf(&out, " -> %s", names[l.SpanContext.SpanID()])
			}
			fmt.Fprintf(&out, "%s\n", attrs(s.Attributes))
			for _, e := range s.Events {
				fmt.Fprintf(&out, "%s  * %s%s\n", indent, e.Name, attrs(e.Attributes))
			}
			show(s.SpanContext.SpanID(), indent+"    ")
		}
	}
	show(api.SpanID{}, "")
	return out.String()
}

func attrs(list []attribute.KeyValue) (out string) {
	set := attribute.NewSet(list...)
	for _, kv := range set.ToSlice() {
		value := kv.Value.String()
		if strings.HasSuffix(string(kv.Key), "time_to_first_chunk") {
			value = "#"
		}
		out += fmt.Sprintf(" %s=%s", strings.TrimPrefix(string(kv.Key), "fixpoint."), value)
	}
	return out
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "run the test with -update")
	require.Equal(t, strings.ReplaceAll(string(want), "\r\n", "\n"), got)
}

var (
	board  = state.NewCell("board", state.Options[string]{})
	report = phase.NewAction[int]("report", phase.StepEnd)
	mail   = effects.NewSpec[string]("mail")
)

// sleepy is a hook that takes its time and then does what fn says.
func sleepy(d time.Duration, fn func(pc *phase.Context, cmd *phase.Command) error) phase.Hook {
	return phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
		time.Sleep(d)
		if fn != nil {
			err = fn(pc, &cmd)
		}
		return cmd, err
	})
}

// office has a part of each kind, of which each takes a time of its own.
func office() engine.Plugin {
	return engine.NewPlugin("office", func(r *engine.Registrar) error {
		r.Key(board)
		for i, who := range []string{"a", "b"} {
			r.Hook(phase.StepStart, sleepy(time.Duration(i+3)*time.Millisecond, func(_ *phase.Context, cmd *phase.Command) error {
				cmd.Update(board.With(who))
				return nil
			}), engine.Writes(board))
		}
		r.Hook(phase.StepEnd, sleepy(time.Millisecond, func(pc *phase.Context, cmd *phase.Command) error {
			if pc.Run().Step == 1 {
				cmd.Schedule(report.New(2)).Emit(mail.New("a"))
				return nil
			}
			return errors.New("no paper")
		}), engine.OnError(engine.Skip))
		r.Action(report.Handle(func(_ context.Context, _ *phase.Context, n int) (cmd phase.Command, err error) {
			time.Sleep(7 * time.Millisecond)
			if n > 1 {
				cmd.Schedule(report.New(n - 1))
			}
			return cmd, nil
		}))
		r.Effect(mail.Handle(func(context.Context, *state.Snapshot, string) error {
			time.Sleep(20 * time.Millisecond)
			return errors.New("no network")
		}))
		r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			time.Sleep(2 * time.Millisecond)
			switch pc.Call().Name {
			case "pay":
				return gate.Ask(gate.Ticket{Message: "pay the bill?"}), nil
			case "wipe":
				return gate.Block("never"), nil
			}
			return gate.Abstain(), nil
		}))
		return nil
	})
}

func tools() []engine.Tool {
	of := func(name string, d time.Duration, err error) engine.Tool {
		return engine.NewTool(inference.ToolSpec{Name: name}, func(context.Context, *phase.Context, map[string]any) (engine.Output, error) {
			time.Sleep(d)
			return engine.Text(name + " done"), err
		})
	}
	return []engine.Tool{of("pay", 40*time.Millisecond, nil), of("wipe", 0, nil), of("burn", 5*time.Millisecond, errors.New("ouch"))}
}

// slow has the model think before it answers.
func slow(d time.Duration, a enginetest.Answer) enginetest.Answer {
	a.Wait = func(context.Context) error { time.Sleep(d); return nil }
	return a
}

func yes(after time.Duration) gate.Resolver {
	return gate.ResolverFunc(func(context.Context, gate.Ticket) (phase.Answer, error) {
		time.Sleep(after)
		return phase.Answer{Approved: true, Reason: "it is due"}, nil
	})
}

func config(t *testing.T, w watch, answers ...enginetest.Answer) engine.Config {
	c, _ := enginetest.Config(t, office())
	c.Now, c.Observers, c.Stream = nil, []engine.Observer{w}, true
	c.Model = enginetest.NewScript(answers...)
	return c
}

func run(t *testing.T, c engine.Config, spec engine.AgentSpec) *engine.Result {
	t.Helper()
	in := engine.Prompt("settle the bill")
	in.Tools = tools()
	res, err := enginetest.Engine(t, c).Run(t.Context(), spec, in)
	require.NoError(t, err)
	return res
}

// rich is a run with something of each kind.
func rich(t *testing.T, w watch) {
	c := config(t, w,
		slow(300*time.Millisecond, enginetest.Say("I pay.").
			And(enginetest.Call("c1", "pay", map[string]any{"sum": 12}), enginetest.Call("c2", "wipe", nil), enginetest.Call("c3", "burn", nil),
				enginetest.Call("c4", "delegate_to_helper", map[string]any{"input": "look"})).
			Costing(inference.Usage{InputTokens: 120, OutputTokens: 18, CachedTokens: 100})),
		slow(100*time.Millisecond, enginetest.Say("done")))
	c.Resolver = yes(time.Second)
	c.Agents = []engine.AgentSpec{{ID: "helper", ModelID: "small"}}
	c.Models = map[string]inference.Model{"small": enginetest.NewScript(slow(50*time.Millisecond, enginetest.Say("seen").Costing(inference.Usage{InputTokens: 7, OutputTokens: 3})))}
	res := run(t, c, engine.AgentSpec{ID: "clerk", Delegates: []string{"helper"}})
	require.NoError(t, res.Err)
}

// Capability H5. A run with a conflict and its retry, rounds, a blocked call, one that
// fails, one that waits for a person, and a delegate: the spans to the letter.
func TestTree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t, otel.Options{Provider: func(model string) string { return "scripted" }})
		rich(t, w)
		golden(t, "rich.txt", tree(w.spans.GetSpans()))
		sound(t, w.spans.GetSpans())

		tries := w.named("hook office/step_start/1")[:2]
		require.Equal(t, tries[0].SpanContext.SpanID(), tries[1].Links[0].SpanContext.SpanID())
		require.False(t, tries[1].StartTime.Before(tries[0].EndTime), "the retry is a span of its own, with its own time")
		require.Equal(t, 4*time.Millisecond, tries[0].EndTime.Sub(tries[0].StartTime))
		require.Equal(t, 4*time.Millisecond, tries[1].EndTime.Sub(tries[1].StartTime))
		body, call := w.span(t, "execute_tool pay"), w.named("call")[0]
		require.Equal(t, 40*time.Millisecond, body.EndTime.Sub(body.StartTime))
		require.Greater(t, call.EndTime.Sub(call.StartTime), time.Second, "a call lasts from its gates on, a body is the tool's time")
		wait := w.span(t, "wait confirm")
		require.Equal(t, time.Second, wait.EndTime.Sub(wait.StartTime))
		helper := w.span(t, "invoke_agent helper")
		require.Equal(t, w.span(t, "execute_tool delegate_to_helper").SpanContext.SpanID(), helper.Parent.SpanID())
		for _, s := range w.spans.GetSpans() {
			require.Equal(t, otel.ScopeName, s.InstrumentationScope.Name)
			require.Equal(t, helper.SpanContext.TraceID(), s.SpanContext.TraceID())
		}
	})
}

// sound checks what holds of any spans.
func sound(t *testing.T, spans tracetest.SpanStubs) {
	t.Helper()
	byID := map[api.SpanID]tracetest.SpanStub{}
	for _, s := range spans {
		_, twice := byID[s.SpanContext.SpanID()]
		require.False(t, twice, "%s ended twice", s.Name)
		byID[s.SpanContext.SpanID()] = s
	}
	for _, s := range spans {
		require.False(t, s.EndTime.Before(s.StartTime), s.Name)
		if p, ok := byID[s.Parent.SpanID()]; ok {
			require.False(t, s.StartTime.Before(p.StartTime), "%s begins before %s", s.Name, p.Name)
		} else {
			require.False(t, s.Parent.IsValid() && !s.Parent.IsRemote(), "%s has a parent that never ended", s.Name)
		}
	}
}

// What was said is recorded when that is asked for, and not otherwise.
func TestContent(t *testing.T) {
	secret := []string{"settle the bill", "I pay.", "pay done", "pay the bill?", "it is due", "ouch", `"sum"`}
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t, otel.Options{})
		rich(t, w)
		for _, word := range secret {
			require.NotContains(t, tree(w.spans.GetSpans()), word)
		}
		w = newWatch(t, otel.Options{Content: true})
		rich(t, w)
		for _, word := range secret {
			require.Contains(t, tree(w.spans.GetSpans()), word)
		}
		require.JSONEq(t, `[{"role":"user","parts":[{"type":"text","content":"settle the bill"}]}]`,
			attr(w.span(t, "invoke_agent clerk"), "gen_ai.input.messages").AsString())
		require.JSONEq(t, `[{"role":"assistant","finish_reason":"tool_call","parts":[{"type":"text","content":"I pay."},
			{"type":"tool_call","id":"c1","name":"pay","arguments":{"sum":12}},{"type":"tool_call","id":"c2","name":"wipe"},
			{"type":"tool_call","id":"c3","name":"burn"},{"type":"tool_call","id":"c4","name":"delegate_to_helper","arguments":{"input":"look"}}]}]`,
			attr(w.named("chat")[0], "gen_ai.output.messages").AsString())
		require.Equal(t, `{"sum":12}`, attr(w.span(t, "execute_tool pay"), "gen_ai.tool.call.arguments").AsString())
		require.Equal(t, "pay done", attr(w.span(t, "execute_tool pay"), "gen_ai.tool.call.result").AsString())

		w = newWatch(t, otel.Options{Content: true, ContentBytes: 4})
		rich(t, w)
		require.Equal(t, "pay …", attr(w.span(t, "execute_tool pay"), "gen_ai.tool.call.result").AsString())
		require.Contains(t, attr(w.named("chat")[0], "gen_ai.output.messages").AsString(), `"arguments":"{\"su…"`)
	})
}

// All phases are there when that is asked for.
func TestEmptyPhases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t, otel.Options{})
		rich(t, w)
		require.Empty(t, w.named("phase run_end"))
		w = newWatch(t, otel.Options{EmptyPhases: true})
		rich(t, w)
		require.Len(t, w.named("phase run_end"), 2)
	})
}

// A run that waits for a person ends its span, and the one that goes on has a link to
// it; with the generator of ids both are in one trace, in another process too.
func TestSuspendedAndResumed(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			answers := []enginetest.Answer{enginetest.Call("c1", "pay", nil), enginetest.Say("done")}
			w := newWatch(t, otel.Options{}, sdktrace.WithIDGenerator(otel.IDGenerator{}))
			eng := enginetest.Engine(t, config(t, w, answers...))
			th, err := eng.NewThread("")
			require.NoError(t, err)
			in := engine.Prompt("go")
			in.Tools = tools()
			spec := engine.AgentSpec{ID: "clerk"}
			res, err := th.Run(t.Context(), spec, in)
			require.NoError(t, err)
			require.Equal(t, phase.Waiting, res.Status)
			former := w.span(t, "invoke_agent clerk")
			later := w
			if elsewhere {
				dump, err := th.Export()
				require.NoError(t, err)
				later = newWatch(t, otel.Options{}, sdktrace.WithIDGenerator(otel.IDGenerator{}))
				th, err = enginetest.Engine(t, config(t, later, answers...)).NewThread("again")
				require.NoError(t, err)
				require.NoError(t, th.Import(dump, state.KeepUnknown))
			}
			time.Sleep(time.Hour)
			res, err = th.Resume(t.Context(), spec, engine.Input{Tools: tools()}, engine.Decision{Answer: phase.Answer{Approved: true}})
			require.NoError(t, err)
			require.NoError(t, res.Err)
			all := later.named("invoke_agent clerk")
			resumed := all[len(all)-1]
			require.Equal(t, former.SpanContext.TraceID(), resumed.SpanContext.TraceID())
			require.False(t, resumed.Parent.IsValid())
			require.Equal(t, attr(former, "fixpoint.run.id"), attr(resumed, "fixpoint.run.id"))
			require.Less(t, former.EndTime.Sub(former.StartTime), time.Minute, "nobody's waiting is in it")
			if elsewhere {
				require.Empty(t, resumed.Links)
				return
			}
			require.Equal(t, former.SpanContext.SpanID(), resumed.Links[0].SpanContext.SpanID())
			golden(t, "resumed.txt", tree(w.spans.GetSpans()))
			sound(t, w.spans.GetSpans())
		})
	}
}

// A run is part of the trace of its caller when Follow says so, by its id or that of
// its thread, once.
func TestFollow(t *testing.T) {
	w := newWatch(t, otel.Options{}, sdktrace.WithIDGenerator(otel.IDGenerator{}))
	c := config(t, w, enginetest.Say("a"), enginetest.Say("b"), enginetest.Say("c"))
	th, err := enginetest.Engine(t, c).NewThread("")
	require.NoError(t, err)
	var callers []api.SpanContext
	for i := range 3 {
		ctx, span := w.tracer.Start(t.Context(), "caller")
		in := engine.Prompt("go")
		switch i {
		case 0:
			w.Follow(ctx, th.ID())
		case 1:
			in.RunID = "mine"
			w.Follow(ctx, "mine")
		}
		_, err = th.Run(ctx, engine.AgentSpec{ID: "clerk"}, in)
		require.NoError(t, err)
		span.End()
		callers = append(callers, span.SpanContext())
	}
	for i, s := range w.named("invoke_agent clerk") {
		require.Equal(t, i < 2, s.SpanContext.TraceID() == callers[i].TraceID())
		require.Equal(t, i < 2, s.Parent.SpanID() == callers[i].SpanID())
	}
}

// What nobody comes for is forgotten.
func TestFollowed(t *testing.T) {
	w := newWatch(t, otel.Options{})
	ctx, span := w.tracer.Start(t.Context(), "caller")
	defer span.End()
	for i := range 1025 {
		w.Follow(ctx, fmt.Sprint(i))
	}
	for _, id := range []string{"0", "1", "1024", "1024"} {
		h := engine.Header{Run: id, Agent: id}
		w.Observe(engine.RunStarted{Header: h})
		w.Observe(engine.RunFinished{Header: h})
	}
	var followed []bool
	for _, s := range w.spans.GetSpans() {
		followed = append(followed, s.Parent.IsValid())
	}
	require.Equal(t, []bool{false, true, true, false}, followed)
}

type strict struct{ engine.Tool }

func (strict) Validate(args inference.JSON) error { return errors.New("no: " + string(args)) }
func (strict) Recovery() engine.Recovery          { return engine.Rerun }

// A tool that is wrapped finds its span, also when others run beside it, and an agent
// that was delegated to beside others finds one that is near.
func TestTool(t *testing.T) {
	w := newWatch(t, otel.Options{})
	c := config(t, w, enginetest.Call("c1", "ask", nil).And(enginetest.Call("c2", "ask", nil), enginetest.Call("c3", "delegate_to_helper", map[string]any{"input": "x"})), enginetest.Say("done"))
	helped := engine.NewPlugin("asker", func(r *engine.Registrar) error {
		r.Tool(w.Tool(engine.NewTool(inference.ToolSpec{Name: "ask"}, func(ctx context.Context, pc *phase.Context, _ struct{}) (engine.Output, error) {
			_, span := w.tracer.Start(ctx, "request of "+pc.Run().ID+" "+pc.Call().ID)
			span.End()
			return engine.Text("ok"), nil
		})))
		return nil
	})
	c.Plugins = append(c.Plugins, helped)
	c.Agents = []engine.AgentSpec{{ID: "helper", ModelID: "small"}}
	c.Models = map[string]inference.Model{"small": enginetest.NewScript(enginetest.Call("c1", "ask", nil), enginetest.Say("seen"))}
	in := engine.Prompt("go")
	in.RunID = "r"
	res, err := enginetest.Engine(t, c).Run(t.Context(), engine.AgentSpec{ID: "clerk", Delegates: []string{"helper"}, ToolExecution: engine.ToolsParallel}, in)
	require.NoError(t, err)
	require.NoError(t, res.Err)
	for _, id := range []string{"c1", "c2"} {
		body := w.spans.GetSpans()[slices.IndexFunc(w.spans.GetSpans(), func(s tracetest.SpanStub) bool {
			return s.Name == "execute_tool ask" && attr(s, "gen_ai.tool.call.id").AsString() == id && attr(s, "fixpoint.run.id").AsString() == "r"
		})]
		require.Equal(t, body.SpanContext.SpanID(), w.span(t, "request of r "+id).Parent.SpanID())
	}
	require.Equal(t, w.span(t, "invoke_agent clerk").SpanContext.TraceID(), w.span(t, "request of r/1/c3 c1").SpanContext.TraceID())

	plain := enginetest.StubTool("x", engine.Text(""))
	_, validates := w.Tool(plain).(engine.Validator)
	require.False(t, validates)
	both := w.Tool(strict{plain})
	require.EqualError(t, both.(engine.Validator).Validate("1"), "no: 1")
	require.Equal(t, engine.Rerun, both.(engine.Recoverer).Recovery())
	require.Equal(t, "x", both.Spec().Name)

	// Of a run that nobody observes there is no span, and nobody waits for one.
	out, err := w.Tool(engine.NewTool(inference.ToolSpec{Name: "x"}, func(ctx context.Context, _ *phase.Context, _ struct{}) (engine.Output, error) {
		require.False(t, api.SpanContextFromContext(ctx).IsValid())
		return engine.Text("fine"), nil
	})).Call(t.Context(), phase.NewContext(phase.Frame{Call: &phase.CallFrame{Call: inference.ToolCall{ID: "c"}}}))
	require.NoError(t, err)
	require.Equal(t, "fine", out.Content)
}

// Close ends what is open, in the middle of a run, and what comes later is counted.
func TestClosedEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t, otel.Options{})
		c := config(t, w, slow(time.Second, enginetest.Say("done")))
		over := make(chan struct{})
		go func() {
			defer close(over)
			run(t, c, engine.AgentSpec{ID: "clerk"})
		}()
		time.Sleep(500 * time.Millisecond)
		w.Close()
		spans := w.spans.GetSpans()
		<-over
		require.Len(t, w.spans.GetSpans(), len(spans))
		require.True(t, attr(w.span(t, "invoke_agent clerk"), "fixpoint.unfinished").AsBool())
		require.True(t, attr(w.span(t, "chat"), "fixpoint.unfinished").AsBool())
		sound(t, spans)
		require.Positive(t, w.sum(t, "fixpoint.events.dropped", attribute.String("fixpoint.drop.reason", "closed")))
		w.Close()
		w.Follow(t.Context(), "x")
	})
}

// Runs that never end do not pile up: the one that was silent longest is ended.
func TestMaxRuns(t *testing.T) {
	w := newWatch(t, otel.Options{MaxRuns: 3})
	for i := range 10 {
		id := fmt.Sprintf("run-%d", i)
		w.Observe(engine.RunStarted{Header: engine.Header{Seq: 1, Run: id, Agent: id, Time: enginetest.Epoch().Add(time.Duration(i) * time.Second)}})
		w.Observe(engine.StepStarted{Header: engine.Header{Seq: 2, Run: "run-0", Agent: "run-0", Step: i, Time: enginetest.Epoch().Add(time.Duration(i) * time.Second)}})
	}
	require.Len(t, w.named("invoke_agent run-1"), 1)
	require.Empty(t, w.named("invoke_agent run-0"), "it is busy")
	require.Len(t, w.named("invoke_agent run-7"), 1)
	require.Empty(t, w.named("invoke_agent run-8"))
	w.Close()
	require.Len(t, w.named("invoke_agent run-0"), 1)
	sound(t, w.spans.GetSpans())
}

// Events that are missing are counted, and what they would have told is made up for.
func TestGaps(t *testing.T) {
	w := newWatch(t, otel.Options{})
	at := func(seq uint64) engine.Header {
		return engine.Header{Seq: seq, Run: "r", Thread: "t", Agent: "a", Step: 1, Phase: phase.StepStart, Time: enginetest.Epoch().Add(time.Duration(seq) * time.Second)}
	}
	w.Observe(engine.RunStarted{Header: at(1)})
	w.Observe(engine.HookFinished{Header: at(5), Plugin: "p", Hook: "p/step_start/0", Duration: time.Second})
	w.Observe(nil)
	w.Observe(engine.ToolFinished{Header: at(8), Call: inference.ToolCall{ID: "c", Name: "x"}, Result: inference.ToolResult{Outcome: inference.OutcomeOK}})
	w.Observe(engine.RunFinished{Header: at(9), Reason: phase.ReasonError, Error: "broke"})
	w.Observe(engine.Warning{Header: at(10), Message: "late"})
	require.EqualValues(t, 5, w.sum(t, "fixpoint.events.dropped", attribute.String("fixpoint.drop.reason", "gap")))
	golden(t, "gaps.txt", tree(w.spans.GetSpans()))
}

// Phases outside a run have spans too, and leave nothing open.
func TestPhaseOutsideARun(t *testing.T) {
	w := newWatch(t, otel.Options{})
	c := config(t, w)
	th, err := enginetest.Engine(t, c).NewThread("")
	require.NoError(t, err)
	_, err = th.RunPhase(t.Context(), engine.AgentSpec{ID: "clerk"}, phase.StepStart)
	require.NoError(t, err)
	require.Len(t, w.named("outside a run"), 1)
	n := len(w.spans.GetSpans())
	w.Close()
	require.Len(t, w.spans.GetSpans(), n)
}

// Capability G9. Runs that go on at the same time have traces of their own, also while
// the observer is closed, and nothing is left running.
func TestParallelRuns(t *testing.T) {
	enginetest.CheckLeaks(t)
	for _, closing := range []bool{false, true} {
		w := newWatch(t, otel.Options{})
		c := config(t, w, enginetest.Call("c1", "burn", nil), enginetest.Say("done"))
		eng := enginetest.Engine(t, c)
		const n = 8
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				in := engine.Prompt("go")
				in.RunID = fmt.Sprintf("run-%d", i)
				for _, tool := range tools() {
					in.Tools = append(in.Tools, w.Tool(tool))
				}
				w.Follow(t.Context(), in.RunID)
				_, err := eng.Run(t.Context(), engine.AgentSpec{ID: "clerk"}, in)
				require.NoError(t, err)
			})
		}
		if closing {
			wg.Go(w.Close)
		}
		wg.Wait()
		sound(t, w.spans.GetSpans())
		traces := map[api.TraceID]int{}
		for _, s := range w.spans.GetSpans() {
			traces[s.SpanContext.TraceID()]++
		}
		if closing {
			continue
		}
		require.Len(t, traces, n)
		for _, spans := range traces {
			require.Equal(t, len(w.spans.GetSpans())/n, spans)
		}
		require.EqualValues(t, n, w.sum(t, "fixpoint.runs"))
	}
}

// A program that imports the package brings its own SDK.
func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "go.opentelemetry.io/otel/trace\n")
	for _, part := range []string{"otel/sdk", "otel/exporters", "google.golang.org", "prometheus", "testify"} {
		require.NotContains(t, string(out), part)
	}
}

// BenchmarkObserve is a whole run with two steps and a tool call, as a batch processor
// and a reader of metrics get it.
func BenchmarkObserve(b *testing.B) {
	rec := &enginetest.Recorder{}
	eng, err := engine.New(engine.Config{Observers: []engine.Observer{rec}, Plugins: []engine.Plugin{office()},
		Model: enginetest.NewScript(enginetest.Call("c1", "burn", nil), enginetest.Say("done"))})
	require.NoError(b, err)
	in := engine.Prompt("go")
	in.Tools = tools()
	_, err = eng.Run(b.Context(), engine.AgentSpec{ID: "clerk"}, in)
	require.NoError(b, err)
	tracers := sdktrace.NewTracerProvider(sdktrace.WithBatcher(tracetest.NewNoopExporter()))
	obs, err := otel.New(otel.Options{Tracers: tracers, Meters: sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))})
	require.NoError(b, err)
	events := rec.Events()
	b.ReportAllocs()
	for b.Loop() {
		for _, e := range events {
			obs.Observe(e)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(events)), "ns/event")
	require.NoError(b, tracers.Shutdown(b.Context()))
}

func TestBadOptions(t *testing.T) {
	_, err := otel.New(otel.Options{MaxRuns: -1})
	require.ErrorContains(t, err, "otel: ContentBytes and MaxRuns must not be negative")
	_, err = otel.New(otel.Options{})
	require.NoError(t, err, "the global providers do")
}

// metric returns a metric by its name.
func (w watch) metric(t *testing.T, name string) metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, w.reader.Collect(t.Context(), &all))
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name == name {
				require.Equal(t, otel.ScopeName, scope.Scope.Name)
				return m
			}
		}
	}
	t.Fatalf("no metric %s", name)
	return metricdata.Metrics{}
}

// sum adds up the points of a counter that have the attributes.
func (w watch) sum(t *testing.T, name string, with ...attribute.KeyValue) (n int64) {
	t.Helper()
	for _, p := range w.metric(t, name).Data.(metricdata.Sum[int64]).DataPoints {
		if has(p.Attributes, with) {
			n += p.Value
		}
	}
	return n
}

func has(set attribute.Set, with []attribute.KeyValue) bool {
	return !slices.ContainsFunc(with, func(kv attribute.KeyValue) bool { v, ok := set.Value(kv.Key); return !ok || v != kv.Value })
}
