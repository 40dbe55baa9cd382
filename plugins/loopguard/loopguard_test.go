package loopguard_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/loopguard"
	"github.com/ddd26017/fixpoint/store/faultstore"
	"github.com/ddd26017/fixpoint/store/memstore"
)

type call struct{ tool, args string }

// run has the model make the calls, all in one step or each in its own, and
// returns the result of each.
func run(t *testing.T, spec engine.AgentSpec, steps ...[]call) []inference.ToolResult {
	t.Helper()
	tool := func(name string) engine.Tool {
		return engine.NewTool(inference.ToolSpec{Name: name}, func(context.Context, *phase.Context, map[string]any) (engine.Output, error) {
			return engine.Text("ok"), nil
		})
	}
	var answers []enginetest.Answer
	for i, calls := range steps {
		var a enginetest.Answer
		for j, c := range calls {
			a = a.And(enginetest.Call(string(rune('a'+i))+string(rune('a'+j)), c.tool, inference.JSON(c.args)))
		}
		answers = append(answers, a)
	}
	config, rec := enginetest.Config(t, loopguard.New())
	config.Model = enginetest.NewScript(append(answers, enginetest.Say("done"))...)
	eng, err := engine.New(config)
	require.NoError(t, err)
	spec.ID = "a"
	in := engine.Prompt("go")
	in.Tools = []engine.Tool{tool("look"), tool("poll")}
	res, err := eng.Run(t.Context(), spec, in)
	require.NoError(t, err)
	require.NoError(t, res.Err)
	var out []inference.ToolResult
	for _, e := range enginetest.Select[engine.ToolFinished](rec.Events()) {
		out = append(out, e.Result)
	}
	return out
}

func outcomes(results []inference.ToolResult) (out []inference.Outcome) {
	for _, r := range results {
		out = append(out, r.Outcome)
	}
	return out
}

func with(section string) engine.AgentSpec {
	return engine.AgentSpec{Sections: map[string]inference.JSON{loopguard.Name: inference.JSON(section)}}
}

// Capability M1. The third call that is the same in all but white space is turned
// away with a reason.
func TestRepeats(t *testing.T) {
	got := run(t, engine.AgentSpec{},
		[]call{{"look", `{"at": 1, "x": 2}`}}, []call{{"look", `{"x":2,"at":1}`}}, []call{{"look", `{"at":1,"x":2}`}}, []call{{"look", `{"at":3}`}})
	require.Equal(t, []inference.Outcome{"ok", "ok", "blocked", "ok"}, outcomes(got))
	require.Contains(t, got[2].Content, "look ran 2 times before")
}

// Calls of one step count as well, also when they run at the same time.
func TestRepeatsWithinAStep(t *testing.T) {
	for _, how := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
		spec := with(`{"repeats": 1, "except": ["po*"]}`)
		spec.ToolExecution = how
		got := run(t, spec, []call{{"look", `{}`}, {"look", `{}`}, {"poll", `{}`}, {"poll", `{}`}, {"poll", `{}`}})
		require.Equal(t, []inference.Outcome{"ok", "blocked", "ok", "ok", "ok"}, outcomes(got), how)
		require.Contains(t, got[1].Content, "once before")
	}
}

// A call that begins again because its process ended, wherever that was, or in a fork,
// is not turned away on account of itself.
func TestCallThatBeginsAgain(t *testing.T) {
	spec := with(`{"repeats": 1}`)
	spec.ID = "a"
	resumed, blocked := 0, 0
	for n := 1; ; n++ {
		inner := memstore.New(memstore.Options{})
		broken, err := faultstore.New(inner, faultstore.Config{At: map[int]faultstore.Fault{n: faultstore.Crash}})
		require.NoError(t, err)
		build := func(j engine.Journal) *engine.Engine {
			tools := engine.NewPlugin("tools", func(r *engine.Registrar) error {
				r.Tool(idempotent{engine.NewTool(inference.ToolSpec{Name: "look"}, func(context.Context, *phase.Context, struct{}) (engine.Output, error) {
					return engine.Text("ok"), nil
				})})
				return nil
			})
			e, err := engine.New(engine.Config{Plugins: []engine.Plugin{loopguard.New(), tools}, Journal: j,
				Model: enginetest.NewScript(enginetest.Call("c", "look", nil), enginetest.Call("c", "look", nil), enginetest.Say("done"))})
			require.NoError(t, err)
			return e
		}
		first, err := build(broken).NewThread("t")
		require.NoError(t, err)
		_, err = first.Run(t.Context(), spec, engine.Prompt("go"))
		require.NoError(t, err)
		last := broken.Counts().Faults[faultstore.Crash] == 0
		th, err := build(inner).OpenThread(t.Context(), "t")
		require.NoError(t, err)
		var again []*engine.Thread
		if phase.RunLifecycle.Get(th.Snapshot()).Status == phase.Running {
			again = append(again, th)
		}
		for r, err := range th.History(t.Context()) {
			require.NoError(t, err)
			if last && r.Status == phase.Running {
				fork, err := th.Fork(t.Context(), r.Revision, "")
				require.NoError(t, err)
				again = append(again, fork)
			}
		}
		for _, th := range again {
			resumed++
			_, err := th.Resume(t.Context(), spec, engine.Input{})
			require.NoError(t, err)
			var got []inference.ToolResult
			for _, m := range engine.Transcript.Get(th.Snapshot()).All() {
				if m.Role == inference.RoleTool {
					got = append(got, m.Result)
				}
			}
			require.Len(t, got, 2)
			require.Equal(t, inference.OutcomeOK, got[0].Outcome, "append %d: %s", n, got[0].Content)
			blocked += map[bool]int{true: 1}[got[1].Outcome == inference.OutcomeBlocked]
		}
		if last {
			require.Greater(t, resumed, 20, "it has to begin again in many places")
			require.Greater(t, blocked, resumed/2, "and its repeat is seen")
			return
		}
	}
}

// idempotent is a tool that runs again after a crash.
type idempotent struct{ engine.Tool }

func (idempotent) Recovery() engine.Recovery { return engine.Rerun }

func TestFaultySettings(t *testing.T) {
	require.ErrorContains(t, loopguard.Settings{}.Validate(), "loopguard: repeats")
	require.ErrorContains(t, loopguard.Settings{Repeats: 1, Except: []string{"["}}.Validate(), "no pattern")
	require.ErrorContains(t, loopguard.Settings{Repeats: 1, Answers: -1}.Validate(), "loopguard: answers is -1")
	require.NoError(t, loopguard.Settings{Repeats: 1, Except: []string{"*"}}.Validate())
}

// Capability G7. Capability M8. A run that a hook makes go on ends when the model repeats
// itself, whatever the white space; answers that differ, or come with a call, are none.
func TestRepeatedAnswers(t *testing.T) {
	onward := engine.NewPlugin("onward", func(r *engine.Registrar) error {
		r.Hook(phase.StepEnd, phase.HookFunc(func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			cmd.Continue("more")
			return cmd, nil
		}), engine.Writes())
		return nil
	})
	look := engine.NewTool(inference.ToolSpec{Name: "look"}, func(context.Context, *phase.Context, map[string]any) (engine.Output, error) {
		return engine.Text("ok"), nil
	})
	say := func(texts ...string) (answers []enginetest.Answer) {
		for i, text := range texts {
			a := enginetest.Say(text)
			if called, ok := strings.CutPrefix(text, "look: "); ok {
				a = enginetest.Say(called).And(enginetest.Call(fmt.Sprint("c", i), "look", inference.JSON(fmt.Sprintf(`{"at":%d}`, i))))
			}
			answers = append(answers, a)
		}
		return answers
	}
	for name, c := range map[string]struct {
		section string
		answers []enginetest.Answer
		reason  phase.Reason
		steps   int
	}{
		"default":    {`{}`, say("so", "so ", " so", "s o", "so\n", "never"), loopguard.ReasonRepeats, 5},
		"of its own": {`{"answers": 1}`, say("so", "other", "so", "never"), loopguard.ReasonRepeats, 3},
		"with calls": {`{"answers": 1}`, say("look: so", "look: so", "so", "a", "b", "so"), loopguard.ReasonRepeats, 6},
		"no limit":   {`{"answers": 0}`, say("1", "1", "1", "1", "1", "1", "1", "1", "1"), phase.ReasonNatural, 9},
		"different":  {`{"answers": 1}`, say("1", "2", "3", "4", "5", "6", "7", "8", "9"), phase.ReasonNatural, 9},
	} {
		t.Run(name, func(t *testing.T) {
			config, _ := enginetest.Config(t, loopguard.New(), onward)
			config.Model = enginetest.NewScript(c.answers...)
			in := engine.Prompt("go")
			in.Tools = []engine.Tool{look}
			spec := with(c.section)
			spec.ID = "a"
			res, err := enginetest.Engine(t, config).Run(t.Context(), spec, in)
			require.NoError(t, err)
			require.NoError(t, res.Err)
			require.Equal(t, c.reason, res.Reason)
			require.Equal(t, c.steps, res.Steps)
		})
	}
}
