package confirm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/confirm"
	"github.com/ddd26017/fixpoint/state"
)

// Capability G5. "n times" approves the call and the next n; the section can do the same
// for the first n calls of each run, or for all.
func TestTimes(t *testing.T) {
	yes := phase.Answer{Approved: true}
	for _, c := range []struct {
		section string
		first   phase.Answer
		asked   int // of the six calls a b c, sh, a b
	}{
		{``, yes, 6},
		{``, value(`{"choice":"times","n":1}`), 5},
		{``, value(`{"choice":"times","n":3}`), 3},
		{``, value(`{"choice":"times","n":3,"covers":"all"}`), 3},
		{``, value(`{"choice":"times","n":9,"covers":"all"}`), 1},
		{``, value(`{"choice":"times","n":9,"covers":"call"}`), 5},
		{`{"auto":2}`, yes, 4},
		{`{"auto":2}`, value(`{"choice":"times","n":1}`), 3},
		{`{"auto":-1}`, yes, 0},
	} {
		answers := []phase.Answer{c.first, yes, yes, yes, yes, yes}
		w := newWorld(t, setup{section: c.section, answers: answers}, saves("a", "b", "c", "sh:a", "a", "b")...)
		w.run(t)
		require.Len(t, w.ran, 6)
		require.Len(t, w.asked, c.asked, "%s %s", c.section, c.first.Value)
	}
}

// A counted approval is spent on calls that run, not on those that somebody blocks; each
// run has its own Auto.
func TestTimesAreSpentOnCallsThatRun(t *testing.T) {
	guard := gating("guard", func(pc *phase.Context) gate.Decision {
		if pc.Call().Name == "sh" {
			return gate.Block("no shells")
		}
		return gate.Abstain()
	})
	calls := append(append(saves("sh:a", "a", "b"), enginetest.Say("done")), saves("sh:a", "a", "b")...)
	w := newWorld(t, setup{section: `{"auto":1}`, plugins: []engine.Plugin{guard}, answers: []phase.Answer{{}, {}}}, calls...)
	w.run(t)
	w.run(t)
	require.Equal(t, []string{
		"sh blocked", "save ok", "save denied", "sh blocked", "save ok", "save denied",
	}, w.outcomes())
}

// A call that was approved by the last of a count, and is judged again after a pause, is
// the same call.
func TestCallIsCountedOnce(t *testing.T) {
	pause := engine.NewPlugin("pause", func(r *engine.Registrar) error {
		r.Hook(phase.BeforeToolExecute, phase.HookFunc(func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			cmd.Schedule(engine.SuspendCall.New(gate.Ticket{Message: "a moment"}))
			return cmd, nil
		}))
		return nil
	})
	w := newWorld(t, setup{section: `{"auto":1}`, plugins: []engine.Plugin{pause}}, saves("a")...)
	res := w.run(t)
	require.Equal(t, phase.Waiting, res.Status)
	require.Equal(t, "a moment", res.Tickets[0].Message)
	res, err := w.resume(t, phase.Answer{Approved: true})
	require.NoError(t, err)
	require.Equal(t, phase.Done, res.Status)
	require.Equal(t, []string{"save ok"}, w.outcomes())
}

// Capability M5. Without anybody to ask, the section's default counts; with a lifetime it
// counts at the end of that.
func TestUnattended(t *testing.T) {
	for section, want := range map[string]string{
		``:                       "save denied",
		`{"unattended":"deny"}`:  "save denied",
		`{"unattended":"allow"}`: "save ok",
	} {
		w := newWorld(t, setup{section: section}, saves("a")...)
		w.run(t)
		require.Equal(t, []string{want}, w.outcomes(), section)
	}
	w := newWorld(t, setup{section: `{"unattended":"wait"}`}, saves("a")...)
	res := w.run(t)
	require.Equal(t, phase.Waiting, res.Status)
	require.Len(t, res.Tickets, 1)
	require.Empty(t, w.ran)

	synctest.Test(t, func(t *testing.T) {
		for unattended, want := range map[string]string{"deny": "save denied", "allow": "save ok", "wait": "save cancelled"} {
			w := newWorld(t, setup{
				section: `{"lifetime":"10m","unattended":"` + unattended + `"}`,
				change:  func(c *engine.Config) { c.Now = nil },
			}, saves("a")...)
			require.Equal(t, phase.Waiting, w.run(t).Status)
			time.Sleep(10 * time.Minute)
			res, err := w.thread.Resume(t.Context(), w.spec, engine.Input{})
			require.NoError(t, err)
			require.Equal(t, phase.Done, res.Status)
			require.Equal(t, []string{want}, w.outcomes())
		}
	})
}

// Capability G5. Reports 3 and 11. In every order of plugins a block by a guard stays one,
// whatever allowlists approve, rules suspend, others answer with results and the person
// has granted; every gate is consulted.
func TestBlockBeatsEverything(t *testing.T) {
	decisions := map[string]gate.Decision{
		"guard": gate.Block("no"), "allowlist": gate.Approve(), "policy": gate.Suspend(gate.Ticket{Message: "sure?"}),
		"cache": gate.SetResult(inference.ToolResult{Content: "cached"}),
	}
	orders := permutations([]string{"guard", "allowlist", "policy", "cache", confirm.Name})
	require.Len(t, orders, 120)
	for i, order := range orders {
		section := []string{`{}`, `{"auto":-1}`}[i%2]
		var ran int
		var plugins []engine.Plugin
		for _, name := range order {
			if name == confirm.Name {
				plugins = append(plugins, confirm.New(confirm.Options{}))
				continue
			}
			plugins = append(plugins, gating(name, func(*phase.Context) gate.Decision { return decisions[name] }))
		}
		config, rec := enginetest.Config(t, plugins...)
		config.Schemas = confirm.Schemas(nil)
		config.Resolver = gate.ResolverFunc(func(context.Context, gate.Ticket) (phase.Answer, error) {
			t.Error("somebody was asked about a blocked call")
			return phase.Answer{Approved: true}, nil
		})
		config.Model = enginetest.NewScript(call("c1", "wipe", `{}`), enginetest.Say("done"))
		wipe := engine.NewTool(inference.ToolSpec{Name: "wipe", Kind: "exec"}, func(context.Context, *phase.Context, struct{}) (engine.Output, error) {
			ran++
			return engine.Text("wiped"), nil
		})
		in := engine.Prompt("go")
		in.Tools = []engine.Tool{wipe}
		th, err := enginetest.Engine(t, config).NewThread("")
		require.NoError(t, err)
		_, err = th.Run(t.Context(), engine.AgentSpec{ID: "a", Sections: map[string]inference.JSON{confirm.Name: inference.JSON(section)}}, in)
		require.NoError(t, err)
		require.Zero(t, ran)
		done := enginetest.Select[engine.ToolFinished](rec.Events())
		require.Len(t, done, 1)
		require.Equal(t, "blocked: no", done[0].Result.Content)
		require.Len(t, enginetest.Select[engine.GateVoted](rec.Events()), 5)
	}
}

func permutations(of []string) (all [][]string) {
	if len(of) == 0 {
		return [][]string{nil}
	}
	for i, first := range of {
		rest := append(append([]string(nil), of[:i]...), of[i+1:]...)
		for _, p := range permutations(rest) {
			all = append(all, append([]string{first}, p...))
		}
	}
	return all
}

// Capability G5. The fallback asker asks only if nobody approved; a policy that demands a
// question is not its concern.
func TestAsksOnlyIfNobodyApproved(t *testing.T) {
	w := newWorld(t, setup{answers: []phase.Answer{{Approved: true}}, plugins: []engine.Plugin{
		gating("allowlist", func(pc *phase.Context) gate.Decision {
			if pc.Call().Name == "sh" {
				return gate.Approve().Because("on the list")
			}
			return gate.Abstain()
		}),
	}}, saves("sh:a", "a")...)
	w.run(t)
	require.Len(t, w.ran, 2)
	require.Len(t, w.asked, 1)
	require.Equal(t, "Allow save?", w.asked[0].Message)
}

// A question can be answered in another process, also with an edit: the answer's meaning
// is in the state.
func TestAnsweredElsewhere(t *testing.T) {
	w := newWorld(t, setup{section: `{"unattended":"wait"}`}, saves("a", "b", "c")...)
	require.Equal(t, phase.Waiting, w.run(t).Status)
	dump, err := w.thread.Export()
	require.NoError(t, err)
	text, err := json.Marshal(dump)
	require.NoError(t, err)

	other := newWorld(t, setup{section: `{"unattended":"wait"}`}, saves("a", "b", "c")...)
	require.NoError(t, json.Unmarshal(text, &dump))
	require.NoError(t, other.thread.Import(dump, state.RefuseUnknown))
	res, err := other.resume(t, value(toB))
	require.NoError(t, err)
	require.Equal(t, phase.Waiting, res.Status, "the next call")
	require.Equal(t, []string{`save {"path":"b"}`}, other.ran)
	res, err = other.resume(t, value(`{"choice":"times","n":5}`))
	require.NoError(t, err)
	require.Equal(t, phase.Done, res.Status)
	require.Len(t, other.ran, 3)
}

// A delegate's call is one question, also if the gates of both runs ask it, and can be
// edited; if only the run that delegates asks, its person is asked about the edit too. What
// is counted for that run is not spent on the delegate's calls.
func TestDelegates(t *testing.T) {
	for _, c := range []struct {
		name    string
		parent  string // section of the agent that delegates
		filter  []string
		answers []phase.Answer
		ran     []string
		asked   int
	}{
		{"yes", `{"except":["kind:delegate","kind:read"]}`, nil, []phase.Answer{{Approved: true}}, []string{`save {"path":"a"}`}, 1},
		{"edit", `{"except":["kind:delegate"]}`, nil, []phase.Answer{value(toB)}, []string{`save {"path":"b"}`}, 1},
		{"edit of the parent's question", `{"except":["kind:delegate"]}`, []string{"tools"}, []phase.Answer{value(toB), {Approved: true}}, []string{`save {"path":"b"}`}, 2},
		{"no", `{"except":["kind:delegate"]}`, []string{"tools"}, []phase.Answer{value(`{"choice":"no"}`)}, nil, 1},
		{"counted", `{"auto":2}`, []string{"tools"}, []phase.Answer{{}}, nil, 1},
		{"for ever", `{"auto":-1}`, []string{"tools"}, []phase.Answer{{}}, []string{`save {"path":"a"}`}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, setup{answers: c.answers, change: func(config *engine.Config) {
				config.Agents = []engine.AgentSpec{{ID: "helper", Description: "saves", ModelID: "helper", ActiveHookFilter: c.filter}}
				config.Models = map[string]inference.Model{"helper": enginetest.NewScript(call("c1", "save", `{"path":"a"}`), enginetest.Say("saved"))}
			}}, enginetest.Call("d1", engine.DelegatePrefix+"helper", map[string]string{"input": "save it"}))
			w.spec.Delegates = []string{"helper"}
			w.spec.Sections = map[string]inference.JSON{confirm.Name: inference.JSON(c.parent)}
			w.run(t)
			require.Equal(t, c.ran, w.ran)
			require.Len(t, w.asked, c.asked)
		})
	}
}

// A yes to the parent's call is none to a delegate's that looks the same, also by its id.
func TestDelegateWithTheParentsID(t *testing.T) {
	for _, how := range []engine.ToolExecution{engine.ToolsParallel, engine.ToolsSequential} {
		w := newWorld(t, setup{section: `{"except":["kind:delegate"]}`, answers: []phase.Answer{{Approved: true}, {}}, change: func(config *engine.Config) {
			config.Agents = []engine.AgentSpec{{ID: "helper", Description: "saves", ModelID: "helper", ActiveHookFilter: []string{"tools"}}}
			config.Models = map[string]inference.Model{"helper": enginetest.NewScript(call("c1", "save", `{"path":"a"}`), enginetest.Say("saved"))}
		}}, call("c1", "save", `{"path":"a"}`).And(enginetest.Call("d1", engine.DelegatePrefix+"helper", map[string]string{"input": "save it"})))
		w.spec.Delegates, w.spec.ToolExecution = []string{"helper"}, how
		w.run(t)
		require.Len(t, w.asked, 2)
		require.Len(t, w.ran, 1)
	}
}

// Against a simple model: which of random calls are asked about, with random answers.
func TestGrantsAgainstAModel(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		left := map[string]int{"auto": rnd.IntN(3)} // -1 for ever
		section := fmt.Sprintf(`{"auto":%d}`, left["auto"])
		paths := make([]string, 14)
		for i := range paths {
			paths[i] = []string{"a", "b", "sh:a", "sh:b"}[rnd.IntN(4)]
		}
		var answers []phase.Answer
		var want, got []string
		for i, p := range paths {
			tool := "save"
			if len(p) > 1 {
				tool = "sh"
			}
			covering := []string{"call:" + p, "tool:" + tool, "all", "auto"}
			approved := ""
			for _, e := range covering {
				if left[e] == -1 {
					approved = e
				}
			}
			for _, e := range covering {
				if approved == "" && left[e] > 0 {
					approved = e
					left[e]--
				}
			}
			if approved != "" {
				continue
			}
			want = append(want, fmt.Sprintf("c%d", i+1))
			at := rnd.IntN(3)
			entry, covers := covering[at], []string{"call", "tool", "all"}[at]
			n := rnd.IntN(4) - 1
			switch {
			case n == -1 && rnd.IntN(3) == 0:
				left[entry] = -1
				answers = append(answers, value(inference.JSON(fmt.Sprintf(`{"choice":"always","covers":"%s"}`, covers))))
			case n > 0:
				left[entry] = n
				answers = append(answers, value(inference.JSON(fmt.Sprintf(`{"choice":"times","n":%d,"covers":"%s"}`, n, covers))))
			default:
				answers = append(answers, phase.Answer{Approved: true})
			}
		}
		w := newWorld(t, setup{section: section, answers: append(answers, phase.Answer{})}, saves(paths...)...)
		w.run(t)
		for _, ticket := range w.asked {
			got = append(got, ticket.Call)
		}
		require.Equal(t, want, got, "seed %d: %v", seed, paths)
		require.Len(t, w.ran, len(paths))
	}
}

// The same run has the same events whatever the timing, with parallel tools too.
func TestDeterminism(t *testing.T) {
	enginetest.CheckDeterminism(t, 6, func(shuffle enginetest.Shuffle) []string {
		w := newWorld(t, setup{
			section: `{"auto":1}`, answers: []phase.Answer{value(`{"choice":"times","n":1}`), {}},
			plugins: []engine.Plugin{gating("other", func(*phase.Context) gate.Decision { shuffle(); return gate.Abstain() })},
		}, call("c1", "save", `{"path":"a"}`).And(call("c2", "save", `{"path":"b"}`), call("c3", "save", `{"path":"c"}`), call("c4", "save", `{"path":"d"}`)))
		w.run(t)
		require.Len(t, w.asked, 2)
		return w.rec.Lines()
	})
}
