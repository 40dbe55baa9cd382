package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// gbStreamer streams what a gbModel answers, in pieces.
type gbStreamer struct{ *gbModel }

func (s gbStreamer) Stream(ctx context.Context, req inference.Request) iter.Seq2[inference.Chunk, error] {
	return func(yield func(inference.Chunk, error) bool) {
		resp, err := s.Generate(ctx, req)
		if err != nil {
			yield(inference.Chunk{}, err)
			return
		}
		for _, word := range strings.SplitAfter(resp.Message.Text, " ") {
			if !yield(inference.Chunk{Text: word}, nil) {
				return
			}
		}
		for i, c := range resp.Message.ToolCalls {
			half := len(c.Args) / 2
			for _, d := range []inference.ToolCallDelta{
				{Index: i, ID: c.ID, Name: c.Name, Args: string(c.Args[:half])}, {Index: i, Args: string(c.Args[half:])},
			} {
				if !yield(inference.Chunk{ToolCall: d}, nil) {
					return
				}
			}
		}
	}
}

// Fault B17. Fault F30. Report 4. A gate holds on every path that a call can take: it
// is asked, the body does not run, and exactly one result tells the reason.
func TestGateHoldsOnEveryPath(t *testing.T) {
	for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
		for name, build := range map[string]func(tool *gbTool, c *engine.Config, in *engine.Input, spec *engine.AgentSpec){
			"plain": func(tool *gbTool, c *engine.Config, _ *engine.Input, _ *engine.AgentSpec) {
				c.Plugins = append(c.Plugins, gbTools(tool))
			},
			"streaming model": func(tool *gbTool, c *engine.Config, _ *engine.Input, _ *engine.AgentSpec) {
				c.Plugins = append(c.Plugins, gbTools(tool))
				c.Model, c.Stream = gbStreamer{c.Model.(*gbModel)}, true
			},
			"unknown name": func(*gbTool, *engine.Config, *engine.Input, *engine.AgentSpec) {},
			"added at run time": func(tool *gbTool, _ *engine.Config, in *engine.Input, _ *engine.AgentSpec) {
				in.Tools = []engine.Tool{tool}
			},
			"through a sub-agent": func(tool *gbTool, c *engine.Config, _ *engine.Input, spec *engine.AgentSpec) {
				c.Plugins = append(c.Plugins, gbTools(tool))
				c.Agents = []engine.AgentSpec{{ID: "worker", ModelID: "worker", PluginIDs: []string{"tools"}}} // without the guard
				c.Models = map[string]inference.Model{"worker": c.Model}
				c.Model = gbScript(gbAsk(gbCall("d1", "delegate_to_worker", `{"input":"wipe it"}`)))
				spec.Delegates = []string{"worker"}
			},
		} {
			t.Run(name+" "+string(exec), func(t *testing.T) {
				var asked atomic.Int64
				log := &gbLog{}
				tool := gbToolOf("wipe", nil)
				model := gbScript(gbAsk(gbCall("c1", "wipe", `{"all":true}`), gbCall("c2", "wipe", `{"all":true}`)))
				c := engine.Config{Model: model, Plugins: []engine.Plugin{
					gbProbe(log),
					gbGate("guard", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
						if pc.Call().Name == "wipe" {
							asked.Add(1)
							return gate.Block("no wiping"), nil
						}
						return gate.Abstain(), nil
					}),
				}}
				in, spec := engine.Prompt("go"), engine.AgentSpec{ID: "agent", ToolExecution: exec}
				build(tool, &c, &in, &spec)
				w := gbNew(t, c)
				w.spec = spec
				res := w.run(in)
				require.Equal(t, phase.ReasonNatural, res.Reason)
				require.Equal(t, int64(2), asked.Load())
				require.Zero(t, tool.ran())
				told := model.sent()[1].Messages
				gbPaired(t, told)
				require.Len(t, told, 4)
				for _, m := range told[2:] {
					require.Equal(t, "blocked: no wiping", m.Text)
					require.Equal(t, inference.OutcomeBlocked, m.Result.Outcome)
				}
				if name != "through a sub-agent" { // whose own agent has no probe
					require.Equal(t, []string{"after_tool_execute c1 blocked", "after_tool_execute c2 blocked"}, gbLines(log.all(), "after_tool"))
				}
			})
		}
	}
}

// Fault B17. A name that nobody registered ends as an error for the model that
// names the nearest tool, after the gates were asked; the run goes on.
func TestUnknownToolNamesTheNearest(t *testing.T) {
	log := &gbLog{}
	w := gbNew(t, engine.Config{
		Model:   gbScript(gbAsk(gbCall("c1", "raed_file", ""), gbCall("c2", "zzzzzzzzz", ""), gbCall("c3", "read_file", ""))),
		Plugins: []engine.Plugin{gbTools(gbToolOf("read_file", nil)), gbProbe(log)},
	})
	res := w.say("go")
	require.Equal(t, phase.ReasonNatural, res.Reason)
	require.Equal(t, []string{"c1 error", "c2 error", "c3 ok"}, gbOutcomes(w.results()))
	require.Contains(t, w.results()[0].Content, `did you mean "read_file"?`)
	require.NotContains(t, w.results()[1].Content, "did you mean")
	require.Equal(t, []string{"tool_gate c1", "tool_gate c2", "tool_gate c3"}, gbLines(log.all(), "tool_gate"))
	require.Equal(t, []string{"before_tool_execute c3"}, gbLines(log.all(), "before_tool"))
	require.Len(t, gbLines(log.all(), "after_tool"), 3)
}

// Arguments that are not JSON, or that a typed tool does not take, are an error
// for the model. The thread can be saved with them in its history.
func TestBadArgumentsAreToldToTheModel(t *testing.T) {
	type args struct {
		Path string `json:"path"`
	}
	var bodies atomic.Int64
	tool := engine.NewTool(inference.ToolSpec{Name: "read"}, func(context.Context, *phase.Context, args) (engine.Output, error) {
		bodies.Add(1)
		return engine.Text("read"), nil
	})
	for _, bad := range []inference.JSON{`{"path":`, `{"path":"x"} trailing`, `{"path":5}`, `{"pth":"x"}`, `[]`, "\x00\xff", `nope`,
		"{\"path\":\"a\",\"path\":\"b\xff\"}", "{\"path\":\"a\",\"Path\":\"b\xff\"}"} {
		w := gbNew(t, engine.Config{
			Model:   gbScript(gbAsk(gbCall("c1", "read", bad))),
			Plugins: []engine.Plugin{gbTools(tool)},
		})
		res := w.say("go")
		require.Equal(t, phase.ReasonNatural, res.Reason)
		require.Equal(t, inference.OutcomeError, w.one().Outcome, bad)
		require.True(t, w.one().IsError)
		require.Contains(t, w.one().Content, "arguments of read")
		_, err := w.thread.Export()
		require.NoError(t, err)
	}
	require.Zero(t, bodies.Load())
	for _, fine := range []inference.JSON{``, `{}`, `null`, ` {"path":"x"} `} {
		w := gbNew(t, engine.Config{Model: gbScript(gbAsk(gbCall("c1", "read", fine))), Plugins: []engine.Plugin{gbTools(tool)}})
		w.say("go")
		require.Equal(t, inference.OutcomeOK, w.one().Outcome, fine)
	}
}

// Report 13. Capability H1. Whatever a body does, the call has one BeforeToolExecute,
// one AfterToolExecute and one result, and the run goes on.
func TestToolsThatMisbehave(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		name    string
		fn      func(ctx context.Context, pc *phase.Context) (engine.Output, error)
		outcome inference.Outcome
		text    string
	}{
		{"ok", func(context.Context, *phase.Context) (engine.Output, error) { return engine.Text("fine"), nil }, inference.OutcomeOK, "fine"},
		{"zero output", func(context.Context, *phase.Context) (engine.Output, error) { return engine.Output{}, nil }, inference.OutcomeOK, ""},
		{"error", func(context.Context, *phase.Context) (engine.Output, error) { return engine.Text("x"), boom }, inference.OutcomeError, "error: boom"},
		{"says it failed", func(context.Context, *phase.Context) (engine.Output, error) {
			return engine.Output{Content: "no such file", IsError: true}, nil
		}, inference.OutcomeError, "no such file"},
		{"panic", func(context.Context, *phase.Context) (engine.Output, error) { panic("oh no") }, inference.OutcomeError, "oh no"},
		{"panic with an error", func(context.Context, *phase.Context) (engine.Output, error) { panic(boom) }, inference.OutcomeError, "boom"},
		{"goexit", func(context.Context, *phase.Context) (engine.Output, error) {
			runtime.Goexit()
			return engine.Output{}, nil
		}, inference.OutcomeError, "Goexit"},
		{"details that are not JSON", func(context.Context, *phase.Context) (engine.Output, error) {
			return engine.Output{Content: "x", Details: `{"a":`}, nil
		}, inference.OutcomeError, "not JSON"},
		{"hangs, obeying", func(ctx context.Context, _ *phase.Context) (engine.Output, error) {
			<-ctx.Done()
			return engine.Output{}, ctx.Err()
		}, inference.OutcomeTimedOut, "timed out after 1s"},
		{"hangs, ignoring", func(context.Context, *phase.Context) (engine.Output, error) {
			time.Sleep(time.Hour)
			return engine.Text("late"), nil
		}, inference.OutcomeTimedOut, "timed out after 1s"},
		{"its own timeout", func(ctx context.Context, _ *phase.Context) (engine.Output, error) {
			return engine.Output{}, context.DeadlineExceeded
		}, inference.OutcomeError, "deadline exceeded"},
		{"its own engine's timeout", func(ctx context.Context, _ *phase.Context) (engine.Output, error) {
			return engine.Output{}, &engine.TimeoutError{Plugin: "inner", Limit: time.Minute}
		}, inference.OutcomeError, "inner"},
	} {
		for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
			t.Run(c.name+" "+string(exec), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					log := &gbLog{}
					w := gbNew(t, engine.Config{
						Model:   gbScript(gbAsk(gbCall("c1", "t", ""), gbCall("c2", "good", ""))),
						Plugins: []engine.Plugin{gbTools(gbToolOf("t", c.fn), gbToolOf("good", nil)), gbProbe(log)},
						Limits:  engine.Limits{ToolTimeout: time.Second},
					})
					w.spec.ToolExecution = exec
					res := w.say("go")
					require.Equal(t, phase.ReasonNatural, res.Reason)
					require.NoError(t, res.Err)
					require.Equal(t, c.outcome, w.results()[0].Outcome)
					require.Equal(t, c.outcome != inference.OutcomeOK, w.results()[0].IsError)
					require.Contains(t, w.results()[0].Content, c.text)
					require.Equal(t, inference.OutcomeOK, w.results()[1].Outcome)
					require.Equal(t, []string{"before_tool_execute c1", "before_tool_execute c2"}, gbLines(log.all(), "before_tool"))
					require.Equal(t, []string{"after_tool_execute c1 " + string(c.outcome), "after_tool_execute c2 ok"}, gbLines(log.all(), "after_tool"))
					finished := gbOf[engine.ToolFinished](w.events)
					require.Len(t, finished, 2)
					require.Equal(t, w.results()[0], finished[0].Result)
					require.Len(t, gbOf[engine.ToolStarted](w.events), 2)
					gbPaired(t, w.messages())
					_, err := w.thread.Export()
					require.NoError(t, err)
					time.Sleep(2 * time.Hour) // what is late comes now and changes nothing
					require.Len(t, w.results(), 2)
				})
			})
		}
	}
}

// gbValidating is a tool whose Validate is user code like any other.
type gbValidating struct {
	*gbTool
	validate func() error
}

func (v gbValidating) Validate(inference.JSON) error { return v.validate() }

// A validator may fail, panic or end its goroutine: the call fails, the run does
// not. One that hangs does not hold up a cancelled run.
func TestValidatorsThatMisbehave(t *testing.T) {
	for name, fn := range map[string]func() error{
		"error":  func() error { return errors.New("bad shape") },
		"panic":  func() error { panic("bad shape") },
		"goexit": func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			tool := gbToolOf("t", nil)
			w := gbNew(t, engine.Config{Model: gbScript(gbAsk(gbCall("c1", "t", ""))), Plugins: []engine.Plugin{gbTools(gbValidating{tool, fn})}})
			var res *engine.Result
			done := make(chan struct{})
			go func() { // since a Goexit that gets through would end the test
				defer close(done)
				res, _ = w.thread.Run(t.Context(), w.spec, engine.Prompt("go"))
			}()
			<-done
			require.NotNil(t, res, "the run must survive")
			require.Equal(t, phase.ReasonNatural, res.Reason)
			require.Equal(t, inference.OutcomeError, w.one().Outcome)
			require.Zero(t, tool.ran())
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	defer close(release)
	tool := gbToolOf("t", nil)
	w := gbNew(t, engine.Config{Model: gbScript(gbAsk(gbCall("c1", "t", ""))), Plugins: []engine.Plugin{gbTools(gbValidating{tool, func() error {
		cancel()
		<-release
		return nil
	}})}})
	res := w.runCtx(ctx, engine.Prompt("go"))
	require.Equal(t, phase.ReasonCancelled, res.Reason)
	require.Equal(t, inference.OutcomeNotRun, w.one().Outcome)
}

// Fault B14. Report 16. What a hook or gate does to the arguments in its own hands
// reaches nobody: an argument is changed by a named decision or not at all. The same
// holds for everything else it can reach.
func TestNothingHandedOutIsShared(t *testing.T) {
	mangle := func(pc *phase.Context) {
		var args map[string]any
		_ = pc.Call().Args.Decode(&args)
		if args != nil {
			args["path"] = "/hacked"
		}
		call := pc.Call()
		call.Args = `{"path":"/hacked"}`
		_ = call
		if req, ok := pc.Request(); ok {
			for i := range req.Messages {
				req.Messages[i].Text = "hacked"
				for j := range req.Messages[i].ToolCalls {
					req.Messages[i].ToolCalls[j].Args = `{"path":"/hacked"}`
				}
			}
			for i := range req.Tools {
				req.Tools[i].Name = "hacked"
			}
		}
		if resp, ok := pc.Response(); ok {
			for j := range resp.Message.ToolCalls {
				resp.Message.ToolCalls[j].Args = `{"path":"/hacked"}`
			}
		}
		for _, m := range pc.Messages().All() {
			for j := range m.ToolCalls {
				m.ToolCalls[j].Args = `{"path":"/hacked"}`
			}
		}
		for _, m := range engine.Transcript.Get(pc.Snapshot()).All() {
			for j := range m.ToolCalls {
				m.ToolCalls[j].Name = "hacked"
			}
		}
	}
	evil := engine.NewPlugin("evil", func(r *engine.Registrar) error {
		for p := range phase.All() {
			if p == phase.ToolGate {
				r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
					mangle(pc)
					return gate.Abstain(), nil
				}))
				continue
			}
			for range 3 { // three at the same time, for the race detector
				r.Hook(p, phase.HookFunc(func(_ context.Context, pc *phase.Context) (phase.Command, error) {
					mangle(pc)
					return phase.Command{}, nil
				}))
			}
		}
		return nil
	})
	run := func(plugins ...engine.Plugin) (string, string) {
		tool := gbToolOf("read", func(_ context.Context, pc *phase.Context) (engine.Output, error) {
			return engine.Text(string(pc.Call().Args)), nil
		})
		model := gbScript(gbAsk(gbCall("c1", "read", `{"path":"/x"}`), gbCall("c2", "read", `{"path":"/y"}`)))
		w := gbNew(t, engine.Config{Model: model, Plugins: append([]engine.Plugin{gbTools(tool)}, plugins...)})
		w.say("go")
		dump, err := w.thread.Export(state.ScopeThread)
		require.NoError(t, err)
		return fmt.Sprintf("%+v", dump), fmt.Sprintf("%+v", model.sent())
	}
	dump, sent := run()
	evilDump, evilSent := run(evil)
	require.Equal(t, dump, evilDump)
	require.Equal(t, sent, evilSent)
	require.NotContains(t, evilDump, "hacked")
}

// Fault B22. An AfterInference hook ends the run: none of the tools the model
// asked for runs, each has a result that says so, and the reason is the hook's.
func TestEndAfterInferenceRunsNoTool(t *testing.T) {
	for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
		synctest.Test(t, func(t *testing.T) {
			log := &gbLog{}
			tool := gbToolOf("t", nil)
			w := gbNew(t, engine.Config{
				Model: gbScript(gbAsk(gbCall("c1", "t", ""), gbCall("c2", "t", ""), gbCall("c3", "t", ""))),
				Plugins: []engine.Plugin{gbTools(tool), gbProbe(log), gbHook("guardrail", phase.AfterInference, func(context.Context, *phase.Context) (cmd phase.Command, err error) {
					time.Sleep(100 * time.Millisecond)
					cmd.EndRun("guardrail", "off topic")
					return cmd, nil
				})},
			})
			w.spec.ToolExecution = exec
			res := w.say("go")
			require.Equal(t, phase.Reason("guardrail"), res.Reason)
			require.Equal(t, "off topic", res.Detail)
			require.NoError(t, res.Err)
			require.Zero(t, tool.ran())
			require.Equal(t, []string{"c1 not_run", "c2 not_run", "c3 not_run"}, gbOutcomes(w.results()))
			for _, r := range w.results() {
				require.Contains(t, r.Content, "off topic")
				require.True(t, r.IsError)
			}
			require.Empty(t, gbLines(log.all(), "tool_gate"))
			require.Len(t, gbLines(log.all(), "after_tool"), 3)
		})
	}
}

// Scenario: clean end. Ending the run from BeforeToolExecute, or from a tool's own
// command, ends it cleanly: no tool error, and the later calls are told.
func TestEndFromTheToolPhases(t *testing.T) {
	for name, c := range map[string]struct {
		plugin   engine.Plugin
		tool     *gbTool
		want     []string
		parallel []string
	}{
		"before": {
			gbHook("ender", phase.BeforeToolExecute, func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
				cmd.EndRun("enough", "")
				return cmd, nil
			}), gbToolOf("t", nil), []string{"c1 not_run", "c2 not_run"}, []string{"c1 not_run", "c2 not_run"},
		},
		"tool": {
			gbVote("none", gate.Abstain()),
			gbToolOf("t", func(context.Context, *phase.Context) (out engine.Output, err error) {
				out.Content = "goodbye"
				out.Command.EndRun("enough", "")
				return out, nil
			}), []string{"c1 ok", "c2 not_run"}, []string{"c1 ok", "c2 ok"},
		},
		"after": {
			gbHook("ender", phase.AfterToolExecute, func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
				cmd.EndRun("enough", "")
				return cmd, nil
			}), gbToolOf("t", nil), []string{"c1 ok", "c2 not_run"}, []string{"c1 ok", "c2 ok"},
		},
	} {
		for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
			t.Run(name+" "+string(exec), func(t *testing.T) {
				model := gbScript(gbAsk(gbCall("c1", "t", ""), gbCall("c2", "t", "")))
				w := gbNew(t, engine.Config{Model: model, Plugins: []engine.Plugin{gbTools(c.tool), c.plugin}})
				w.spec.ToolExecution = exec
				res := w.say("go")
				require.Equal(t, phase.Reason("enough"), res.Reason)
				require.NoError(t, res.Err)
				require.Equal(t, phase.Done, res.Status)
				want := c.want
				if exec == engine.ToolsParallel {
					want = c.parallel
				}
				require.Equal(t, want, gbOutcomes(w.results()))
				require.Len(t, model.sent(), 1)
				gbPaired(t, w.messages())
			})
		}
	}
}

// A hook that fails before the body fails the run. The call it belongs to is told
// as not run, what earlier calls came to is kept, and each call still has exactly
// one AfterToolExecute.
func TestFaultBeforeTheBody(t *testing.T) {
	boom := errors.New("boom")
	for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
		log := &gbLog{}
		tool := gbToolOf("t", nil)
		w := gbNew(t, engine.Config{
			Model: gbScript(gbAsk(gbCall("c1", "no", ""), gbCall("c2", "t", ""), gbCall("c3", "t", ""), gbCall("c4", "t", ""))),
			Plugins: []engine.Plugin{
				gbTools(tool), gbProbe(log),
				gbGate("guard", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
					if pc.Call().Name == "no" {
						return gate.Block("no"), nil
					}
					return gate.Abstain(), nil
				}),
				gbHook("broken", phase.BeforeToolExecute, func(_ context.Context, pc *phase.Context) (phase.Command, error) {
					if pc.Call().ID == "c3" {
						return phase.Command{}, boom
					}
					return phase.Command{}, nil
				}),
			},
		})
		w.spec.ToolExecution = exec
		res := w.say("go")
		require.Equal(t, phase.ReasonError, res.Reason)
		require.ErrorIs(t, res.Err, boom)
		second := "c2 ok"
		if exec == engine.ToolsParallel {
			second = "c2 not_run"
		}
		require.Equal(t, []string{"c1 blocked", second, "c3 not_run", "c4 not_run"}, gbOutcomes(w.results()))
		require.Len(t, gbLines(log.all(), "after_tool"), 4)
		require.Equal(t, "blocked: no", w.results()[0].Content)
	}
}

// A tool of the run itself obeys the spec's tool lists, is offered besides those
// of plugins, and cannot take a plugin's name.
func TestToolsOfTheInput(t *testing.T) {
	own, plugin := gbToolOf("extra", nil), gbToolOf("base", nil)
	model := gbScript(gbAsk(gbCall("c1", "extra", ""), gbCall("c2", "base", "")))
	w := gbNew(t, engine.Config{Model: model, Plugins: []engine.Plugin{gbTools(plugin)}})
	in := engine.Prompt("go")
	in.Tools = []engine.Tool{own}
	w.run(in)
	require.Equal(t, []string{"c1 ok", "c2 ok"}, gbOutcomes(w.results()))
	require.Equal(t, []inference.ToolSpec{{Name: "base"}, {Name: "extra"}}, model.sent()[0].Tools)

	// The spec takes it away: it is not offered, and a call of it does not run.
	model = gbScript(gbAsk(gbCall("c1", "extra", "")))
	w = gbNew(t, engine.Config{Model: model, Plugins: []engine.Plugin{gbTools(plugin)}})
	w.spec.ExcludedToolPatterns = []string{"ext*"}
	ran := own.ran()
	w.run(in)
	require.Equal(t, []inference.ToolSpec{{Name: "base"}}, model.sent()[0].Tools)
	require.Equal(t, inference.OutcomeError, w.one().Outcome)
	require.Equal(t, ran, own.ran())

	// Two tools of one name would make every call ambiguous.
	in.Tools = []engine.Tool{gbToolOf("base", nil)}
	_, err := w.thread.Run(t.Context(), engine.AgentSpec{ID: "agent"}, in)
	require.ErrorIs(t, err, engine.ErrInput)
	require.ErrorContains(t, err, "base")
	in.Tools = []engine.Tool{own, own}
	_, err = w.thread.Run(t.Context(), w.spec, in)
	require.ErrorIs(t, err, engine.ErrInput)
	in.Tools = []engine.Tool{nil}
	_, err = w.thread.Run(t.Context(), w.spec, in)
	require.ErrorIs(t, err, engine.ErrInput)
}

// Fault F26. A result is told only after its commit: when ToolFinished says so,
// the state has the result and what the tool wrote.
func TestToolFinishedComesAfterItsCommit(t *testing.T) {
	seen := state.NewCounter("gb.seen", state.Options[int64]{Scope: state.ScopeThread})
	tool := gbToolOf("t", func(context.Context, *phase.Context) (out engine.Output, err error) {
		out.Command.Update(seen.With(1))
		return out, nil
	})
	var w *gbWorld
	log := &gbLog{}
	w = gbNew(t, engine.Config{
		Model:   gbScript(gbAsk(gbCall("c1", "t", ""), gbCall("c2", "t", ""))),
		Plugins: []engine.Plugin{gbTools(tool), engine.NewPlugin("keys", func(r *engine.Registrar) error { r.Key(seen); return nil })},
		Limits:  engine.Limits{History: 1000},
		Observers: []engine.Observer{engine.ObserverFunc(func(e engine.Event) {
			f, ok := e.(engine.ToolFinished)
			if !ok {
				return
			}
			snap, ok := w.thread.At(f.Revision)
			if !ok {
				log.add("revision %d is unknown", f.Revision)
				return
			}
			c, _ := engine.ToolCalls.Get(snap, f.Call.ID)
			last := engine.Transcript.Get(snap).At(engine.Transcript.Get(snap).Len() - 1)
			log.add("%s %v %s %d %s", f.Call.ID, c.Settled, c.Status, seen.Get(snap), last.Result.CallID)
		})},
	})
	w.say("go")
	require.Equal(t, []string{"c1 true succeeded 1 c1", "c2 true succeeded 2 c2"}, log.all())
}

// A command of a tool that is refused does not pass for done: the model is told,
// and nothing of the command is kept.
func TestRefusedToolCommandIsTold(t *testing.T) {
	unknown := state.NewCell[int]("gb.unregistered", state.Options[int]{})
	action := phase.NewAction[int]("gb.nobody", phase.StepEnd)
	for name, fill := range map[string]func(*phase.Command){
		"unknown key":    func(c *phase.Command) { c.Update(unknown.With(1)) },
		"unknown action": func(c *phase.Command) { c.Schedule(action.New(1)) },
	} {
		for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
			t.Run(name+" "+string(exec), func(t *testing.T) {
				tool := gbToolOf("t", func(context.Context, *phase.Context) (out engine.Output, err error) {
					out.Content = "did it"
					out.Command.Update(engine.Transcript.Append(inference.User("leftover")))
					fill(&out.Command)
					return out, nil
				})
				w := gbNew(t, engine.Config{
					Model:   gbScript(gbAsk(gbCall("c1", "t", ""), gbCall("c2", "good", ""))),
					Plugins: []engine.Plugin{gbTools(tool, gbToolOf("good", nil))},
				})
				w.spec.ToolExecution = exec
				res := w.say("go")
				require.Equal(t, phase.ReasonNatural, res.Reason)
				require.Equal(t, []string{"c1 error", "c2 ok"}, gbOutcomes(w.results()))
				require.Contains(t, w.results()[0].Content, "refused")
				require.Contains(t, w.results()[0].Content, "did it", "what the tool said is not hidden")
				for _, m := range w.messages() {
					require.NotEqual(t, "leftover", m.Text)
				}
			})
		}
	}
}

// Capability A13. The moves of a call's status: each that is listed passes, every
// other one is refused by the state itself.
func TestCallStatusMoves(t *testing.T) {
	all := []engine.CallStatus{engine.CallNew, engine.CallRunning, engine.CallSuspended, engine.CallResuming, engine.CallSucceeded, engine.CallFailed, engine.CallCancelled}
	allowed := map[engine.CallStatus][]engine.CallStatus{
		engine.CallNew:       {engine.CallRunning, engine.CallSuspended, engine.CallSucceeded, engine.CallFailed, engine.CallCancelled},
		engine.CallRunning:   {engine.CallSuspended, engine.CallSucceeded, engine.CallFailed, engine.CallCancelled},
		engine.CallSuspended: {engine.CallResuming, engine.CallFailed, engine.CallCancelled},
		engine.CallResuming:  {engine.CallRunning, engine.CallSuspended, engine.CallSucceeded, engine.CallFailed, engine.CallCancelled},
	}
	path := map[engine.CallStatus][]engine.CallStatus{
		engine.CallNew: {}, engine.CallRunning: {engine.CallRunning}, engine.CallSuspended: {engine.CallSuspended},
		engine.CallResuming: {engine.CallSuspended, engine.CallResuming}, engine.CallSucceeded: {engine.CallSucceeded},
		engine.CallFailed: {engine.CallFailed}, engine.CallCancelled: {engine.CallCancelled},
	}
	for _, from := range all {
		for _, to := range all {
			store, err := state.NewStore(state.Config{Keys: []state.AnyKey{engine.ToolCalls}})
			require.NoError(t, err)
			put := func(s engine.CallStatus) error {
				_, err := store.Commit(state.Batch{Updates: []state.Update{engine.ToolCalls.Put("c", engine.CallState{Status: s})}})
				return err
			}
			require.NoError(t, put(engine.CallNew))
			for _, s := range path[from] {
				require.NoError(t, put(s))
			}
			err = put(to)
			ok := from == to || to == engine.CallNew // a new step's call may have the same id
			for _, s := range allowed[from] {
				ok = ok || s == to
			}
			if ok {
				require.NoError(t, err, "%s to %s", from, to)
			} else {
				require.ErrorContains(t, err, fmt.Sprintf("from %s to %s", from, to))
			}
		}
		require.Equal(t, allowed[from] == nil, from.Ended())
	}
}

// Capability A13. A call passes through its statuses in order, as commits show.
func TestCallStatusInARun(t *testing.T) {
	for _, c := range []struct {
		name     string
		decision gate.Decision
		fail     bool
		want     []engine.CallStatus
	}{
		{"ok", gate.Abstain(), false, []engine.CallStatus{"new", "running", "succeeded"}},
		{"error", gate.Abstain(), true, []engine.CallStatus{"new", "running", "failed"}},
		{"blocked", gate.Block(""), false, []engine.CallStatus{"new", "failed"}},
		{"substituted", gate.SetResult(inference.ToolResult{}), false, []engine.CallStatus{"new", "succeeded"}},
		{"approved by answer", gate.Suspend(gate.Ticket{Default: gate.DefaultYes}), false, []engine.CallStatus{"new", "suspended", "resuming", "running", "succeeded"}},
		{"denied", gate.Suspend(gate.Ticket{Default: gate.DefaultNo}), false, []engine.CallStatus{"new", "suspended", "resuming", "failed"}},
		{"waiting", gate.Suspend(gate.Ticket{}), false, []engine.CallStatus{"new", "suspended"}},
		{"run ended", gate.Block("").EndRun(), false, []engine.CallStatus{"new", "failed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tool := gbToolOf("t", func(context.Context, *phase.Context) (engine.Output, error) {
				return engine.Output{IsError: c.fail}, nil
			})
			w := gbNew(t, engine.Config{
				Model:   gbScript(gbAsk(gbCall("c1", "t", ""))),
				Plugins: []engine.Plugin{gbTools(tool), gbVote("gate", c.decision)},
			})
			var seen []engine.CallStatus
			cancel := w.thread.Subscribe(func(commit state.Commit) {
				s, ok := engine.ToolCalls.Get(commit.Snapshot, "c1")
				if ok && (len(seen) == 0 || seen[len(seen)-1] != s.Status) {
					seen = append(seen, s.Status)
				}
			})
			defer cancel()
			w.say("go")
			require.Equal(t, c.want, seen)
		})
	}
}
