package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/trace"
	"github.com/ddd26017/fixpoint/state"
)

// What the agent of these tests keeps: a plan that is fought over, and things that merge.
var (
	course = state.NewCell("plan.current", state.Options[[]string]{Scope: state.ScopeThread, Shared: true})
	left   = state.NewCounter("budget.used", state.Options[int64]{})
	facts  = state.NewTable[string]("memory.facts", state.Options[string]{Scope: state.ScopeThread})
	index  = state.NewTable[string]("index.files", state.Options[string]{})
	diary  = state.NewLog("log", state.Options[string]{})

	load   = phase.NewAction[string]("load", phase.BeforeInference)
	parse  = phase.NewAction[string]("parse", phase.BeforeInference)
	link   = phase.NewAction[string]("link", phase.BeforeInference)
	metric = effects.NewSpec[string]("metric")
	notify = effects.NewSpec[string]("notify")
)

// atOnce are the plugins whose hooks run at the same time, in the order of registration.
var atOnce = []string{"planner", "critic", "style", "memory", "budget", "cost", "files", "headline"}

// workshop is an engine of plugins that do all there is to see in a run. Its clock is moved
// by what happens, so that a run takes believable times in no time.
type workshop struct {
	clock *enginetest.Clock
	ids   func() string
	hold  func(at string) // is called where the run can be held
	steps int             // of a long run; 0 for the short one with everything in it

	mu     sync.Mutex
	called map[string]int
	meet   map[string]*sync.WaitGroup
}

func newWorkshop() *workshop {
	start := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	return &workshop{clock: enginetest.NewClock(start), ids: enginetest.NewIDs("id"), hold: func(string) {}, called: map[string]int{}, meet: map[string]*sync.WaitGroup{}}
}

// together returns when all hooks of the step have begun; a retry waits for nobody.
func (w *workshop) together(pc *phase.Context, name string) {
	w.mu.Lock()
	run := pc.Run()
	step := fmt.Sprint(run.ID, " ", run.Step)
	w.called[name+step]++
	if w.called[name+step] > 1 {
		w.mu.Unlock()
		return
	}
	all := w.meet[step]
	if all == nil {
		all = &sync.WaitGroup{}
		all.Add(len(atOnce))
		w.meet[step] = all
	}
	w.mu.Unlock()
	all.Done()
	all.Wait()
}

func (w *workshop) took(d time.Duration) { w.clock.Advance(d) }

// plugins of the workshop. Those that are at once have a hook in the same tier, of which
// three want the plan.
func (w *workshop) plugins() []engine.Plugin {
	var list []engine.Plugin
	for i, name := range atOnce {
		list = append(list, engine.NewPlugin(name, func(r *engine.Registrar) error {
			if i == 0 {
				r.Key(course, left, facts, index, diary)
			}
			r.Hook(phase.BeforeInference, phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
				w.together(pc, name)
				w.hold(fmt.Sprintf("hook %s of step %d", name, pc.Run().Step))
				w.took(time.Duration(9+(i*5)%7) * time.Millisecond)
				w.write(name, pc, &cmd)
				return cmd, nil
			}))
			return nil
		}))
	}
	return append(list,
		engine.NewPlugin("summary", func(r *engine.Registrar) error {
			r.Hook(phase.BeforeInference, phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
				w.took(22 * time.Millisecond)
				cmd.Update(diary.Append(fmt.Sprintf("step %d: %s", pc.Run().Step, strings.Join(course.Get(pc.Snapshot()), ", "))))
				return cmd, nil
			}), engine.Tier(1))
			return nil
		}),
		engine.NewPlugin("weather", func(r *engine.Registrar) error {
			r.Hook(phase.AfterInference, phase.HookFunc(func(context.Context, *phase.Context) (cmd phase.Command, err error) {
				w.took(6 * time.Millisecond)
				return cmd, errors.New("the forecast cannot be had: no route to host")
			}), engine.OnError(engine.Skip))
			return nil
		}),
		engine.NewPlugin("indexer", func(r *engine.Registrar) error {
			act := func(next ...phase.Action) func(context.Context, *phase.Context, string) (phase.Command, error) {
				return func(_ context.Context, pc *phase.Context, what string) (cmd phase.Command, err error) {
					w.took(14 * time.Millisecond)
					cmd.Update(index.Put(what, fmt.Sprint("round ", pc.Round()))).Schedule(next...)
					return cmd, nil
				}
			}
			r.Action(load.Handle(act(parse.New("config.go"), parse.New("loader.go"))), parse.Handle(act(link.New("config"))), link.Handle(act()))
			return nil
		}),
		engine.NewPlugin("reporter", func(r *engine.Registrar) error {
			r.Hook(phase.StepEnd, phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
				w.took(3 * time.Millisecond)
				cmd.Emit(metric.New(fmt.Sprint("step ", pc.Run().Step)))
				if pc.Run().Step == 1 {
					cmd.Emit(notify.New("the first step is over"))
				}
				return cmd, nil
			}))
			r.Effect(metric.Handle(func(context.Context, *state.Snapshot, string) error { w.took(time.Millisecond); return nil }),
				notify.Handle(func(context.Context, *state.Snapshot, string) error {
					w.took(8 * time.Millisecond)
					return errors.New("the webhook answered 503")
				}))
			return nil
		}),
		w.gate("workspace", func(c inference.ToolCall) gate.Decision {
			if strings.Contains(string(c.Args), "/etc/") {
				return gate.Block("/etc/passwd is outside the workspace")
			}
			return gate.Abstain()
		}),
		w.gate("shell", func(c inference.ToolCall) gate.Decision {
			if c.Name == "shell" && strings.Contains(string(c.Args), `"rm -rf build"`) {
				return gate.Edit(`{"command":"rm -rf ./build"}`).Because("paths are relative to the workspace")
			}
			return gate.Abstain()
		}),
		w.gate("permission", func(c inference.ToolCall) gate.Decision {
			if c.Name == "deploy" {
				return gate.Ask(gate.Ticket{Message: "Deploy to staging?"})
			}
			return gate.Approve().Because(c.Name + " is on the allowlist")
		}))
}

// write is what a hook of those at once has to say in a step.
func (w *workshop) write(name string, pc *phase.Context, cmd *phase.Command) {
	step := pc.Run().Step
	held := course.Get(pc.Snapshot())
	switch name {
	case "planner":
		cmd.Update(course.With([]string{"find the callers", fmt.Sprintf("rename the loader, part %d", step)}))
	case "critic":
		cmd.Update(course.With(append([]string{"read the tests"}, held...)))
	case "style":
		cmd.Update(course.With(append(held[:len(held):len(held)], "say it tersely")))
	case "memory":
		cmd.Update(facts.Put("loader", "three packages call it"), facts.Put("tests", fmt.Sprint("seen in step ", step)))
	case "budget":
		cmd.Update(left.With(1200))
	case "cost":
		cmd.Update(left.With(int64(step) * 7))
	case "files":
		if pc.Agent().ID == "worker" && step == 1 {
			cmd.Schedule(load.New("go.mod"))
		}
	}
}

func (w *workshop) gate(name string, decide func(inference.ToolCall) gate.Decision) engine.Plugin {
	return engine.NewPlugin(name, func(r *engine.Registrar) error {
		r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			w.took(2 * time.Millisecond)
			return decide(pc.Call()), nil
		}))
		return nil
	})
}

// Generate is the worker's model: calls of every kind, a step in which all is done, the end.
func (w *workshop) Generate(_ context.Context, req inference.Request) (inference.Response, error) {
	w.mu.Lock()
	w.called["model"]++
	n := w.called["model"]
	w.mu.Unlock()
	if w.steps > 0 {
		return w.oneOfMany(n), nil
	}
	w.hold(fmt.Sprintf("model of step %d", n))
	w.took(time.Duration(900+400*n) * time.Millisecond)
	answer := inference.Response{Message: inference.Assistant("The loader is renamed."), Stop: inference.StopEnd, Usage: inference.Usage{InputTokens: int64(2100 + 700*n), OutputTokens: 310}}
	if n == 1 {
		answer.Message, answer.Stop = inference.Assistant("I look at who calls the loader.",
			toolCall("call-1", "write_file", `{"path":"/etc/passwd","text":"root::0:0"}`),
			toolCall("call-2", "shell", `{"command":"rm -rf build"}`),
			toolCall("call-3", "deploy", `{"target":"staging"}`),
			toolCall("call-4", "delegate_to_researcher", `{"input":"Who calls config.Load?"}`)), inference.StopToolUse
	}
	if n == 2 {
		answer.Message, answer.Stop = inference.Assistant("Now the rename.", toolCall("call-5", "write_file", `{"path":"config.go","text":"package config"}`)), inference.StopToolUse
	}
	return answer, nil
}

// oneOfMany is the answer in a step of a long run: four calls, until the last step.
func (w *workshop) oneOfMany(n int) inference.Response {
	w.took(time.Duration(400+n*7919%900) * time.Millisecond)
	if n == w.steps {
		return inference.Response{Message: inference.Assistant("Every package is migrated."), Stop: inference.StopEnd}
	}
	var calls []inference.ToolCall
	for i := range 4 {
		calls = append(calls, toolCall(fmt.Sprintf("call-%d-%d", n, i), "write_file", fmt.Sprintf(`{"path":"pkg%d/file%d.go","text":"package pkg%d"}`, n, i, n)))
	}
	if n%10 == 0 {
		calls[3].Args = `{"path":"/etc/hosts","text":""}`
	}
	return inference.Response{Message: inference.Assistant("The next package.", calls...), Stop: inference.StopToolUse, Usage: inference.Usage{InputTokens: 1200, OutputTokens: 140}}
}

func toolCall(id, tool, args string) inference.ToolCall {
	return inference.ToolCall{ID: id, Name: tool, Args: inference.JSON(args)}
}

// tool takes time and says what it did.
func (w *workshop) tool(name, result string, took time.Duration) engine.Tool {
	return engine.NewTool(inference.ToolSpec{Name: name}, func(context.Context, *phase.Context, map[string]string) (engine.Output, error) {
		w.hold("tool " + name)
		w.took(took)
		return engine.Text(result), nil
	})
}

// run has it all happen under observers.
func (w *workshop) run(t testing.TB, observers ...engine.Observer) {
	eng := enginetest.Engine(t, engine.Config{
		Plugins: w.plugins(), Model: w, Observers: observers, Now: w.clock.Now, NewID: w.ids,
		Agents: []engine.AgentSpec{{ID: "researcher", ModelID: "small"}},
		Models: map[string]inference.Model{"small": enginetest.NewScript(enginetest.Say("cmd, engine and store call it"))},
	})
	in := engine.Prompt("Rename the configuration loader")
	in.RunID = "run-1"
	in.Tools = []engine.Tool{
		w.tool("write_file", "written", 5*time.Millisecond), w.tool("shell", "removed 214 files", 410*time.Millisecond), w.tool("deploy", "deployed", 300*time.Millisecond),
	}
	in.Resolver = gate.ResolverFunc(func(context.Context, gate.Ticket) (phase.Answer, error) {
		w.hold("answer")
		w.took(4200 * time.Millisecond)
		return phase.Answer{Approved: true, Reason: "the window is open"}, nil
	})
	_, err := eng.Run(t.Context(), engine.AgentSpec{ID: "worker", MaxRounds: w.steps + 20, Delegates: []string{"researcher"}}, in)
	require.NoError(t, err)
	require.NoError(t, eng.Close(t.Context()))
}

// trace has it all happen into a trace, whose path it returns.
func (w *workshop) trace(t testing.TB, observers ...engine.Observer) string {
	path := filepath.Join(t.TempDir(), "rename.jsonl")
	file, err := os.Create(path)
	require.NoError(t, err)
	tr := trace.New(trace.Options{Lines: file})
	w.run(t, append(observers, tr)...)
	require.NoError(t, tr.Close(context.WithoutCancel(t.Context())))
	require.NoError(t, file.Close())
	return path
}
