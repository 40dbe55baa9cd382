package enginetest_test

import (
	"context"
	"testing"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/stretchr/testify/require"
)

// Capability A13. Whatever the moment at which a run is cancelled: it ends once,
// RunEnd fires once, phases and steps that began also end, and every call that the
// model asked for has exactly one result. No goroutine stays.
func TestACancelledRunIsWhole(t *testing.T) {
	enginetest.CheckLeaks(t)
	for _, execution := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
		for moment := 1; ; moment += 5 {
			if !cancelledRun(t, execution, moment) {
				require.Greater(t, moment, 100, "the run has more events than that")
				break
			}
		}
	}
}

// cancelledRun cancels a run when its observer gets to see event number moment. It
// reports whether there was such an event.
func cancelledRun(t *testing.T, execution engine.ToolExecution, moment int) bool {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	quiet := func() {}
	rec := &enginetest.Recorder{}
	seen := 0
	eng, err := engine.New(engine.Config{
		Plugins: []engine.Plugin{busyCore(quiet), busyPlugin("a", 0, quiet), busyPlugin("b", 0, quiet)},
		Stream:  true,
		Limits:  engine.Limits{EventBuffer: 1}, // so that the observer is never far behind
		Observers: []engine.Observer{rec, engine.ObserverFunc(func(engine.Event) {
			if seen++; seen == moment {
				cancel()
			}
		})},
		Agents: []engine.AgentSpec{{ID: "scout", ModelID: "scout", ActiveHookFilter: []string{"core", "b"}}},
		Models: map[string]inference.Model{"scout": enginetest.NewScript(enginetest.Say("nothing to see"))},
		Model: enginetest.NewScript(
			enginetest.Call("c1", "look", nil).And(enginetest.Call("c2", "mend", inference.JSON("{}")),
				enginetest.Call("c3", "forbidden", nil), enginetest.Call("c4", engine.DelegatePrefix+"scout", map[string]string{"input": "go"})),
			enginetest.Say("end")),
	})
	require.NoError(t, err)
	th, err := eng.NewThread("")
	require.NoError(t, err)
	spec := engine.AgentSpec{ID: "busy", ToolExecution: execution, Delegates: []string{"scout"}}
	res, err := th.Run(ctx, spec, engine.Prompt("work"))
	require.NoError(t, err)

	all := rec.Events()
	runs, phases, steps, ends := 0, 0, 0, map[string]int{}
	for i, e := range all {
		require.EqualValues(t, i+1, e.Head().Seq)
		switch e := e.(type) {
		case engine.RunStarted:
			runs++
		case engine.RunFinished:
			runs--
		case engine.StepStarted:
			steps++
		case engine.StepFinished:
			steps--
		case engine.PhaseStarted:
			phases++
			if e.Phase == phase.RunEnd {
				ends[e.Run]++
			}
		case engine.PhaseFinished:
			phases--
		}
	}
	require.Zero(t, runs, "every run that started finished")
	require.Zero(t, steps, "every step that started finished")
	require.Zero(t, phases, "every phase that started finished")
	for run, n := range ends {
		require.Equal(t, 1, n, "RunEnd of %s", run)
	}
	require.Equal(t, 1, ends[res.Run])
	require.Equal(t, "run_finished", all[len(all)-1].Type())
	require.Equal(t, phase.Done, res.Status)

	asked, answered, finished := map[string]int{}, map[string]int{}, map[string]int{}
	for _, m := range engine.Transcript.Get(th.Snapshot()).All() {
		for _, c := range m.ToolCalls {
			asked[c.ID]++
		}
		if m.Role == inference.RoleTool {
			answered[m.Result.CallID]++
		}
	}
	for _, e := range enginetest.Select[engine.ToolFinished](rec.Run(res.Run)) {
		finished[e.Call.ID]++
	}
	require.Equal(t, asked, answered, "cancelled at event %d", moment)
	require.Equal(t, asked, finished, "cancelled at event %d", moment)
	return moment <= len(all)
}
