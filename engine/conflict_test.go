package engine_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

var (
	conflictN     = state.NewCell[int]("n", state.Options[int]{Scope: state.ScopeThread})
	conflictM     = state.NewCell[int]("m", state.Options[int]{Scope: state.ScopeThread})
	conflictK     = state.NewCell[string]("k", state.Options[string]{})
	conflictAdd   = state.NewCounter("add", state.Options[int64]{})
	conflictLog   = state.NewLog("log", state.Options[string]{})
	conflictTable = state.NewTable[string]("table", state.Options[int]{})
	conflictSet   = state.NewSet[string]("set", state.Options[string]{})
)

// Capability A4. Faults B01 and F09. Three hooks that each read n and write n+1 come to 3
// in every phase: the second and third run again, alone, on fresh snapshots.
func TestConflictIsRetriedInEveryPhase(t *testing.T) {
	for p := range phase.All() {
		if p == phase.ToolGate {
			continue // takes gates, no hooks
		}
		t.Run(p.String(), func(t *testing.T) {
			var calls [3]atomic.Int64
			var mu sync.Mutex
			var read []int
			tape := &gaTape{}
			plugins := []engine.Plugin{gaKeys(conflictN), gaTools(gaTool{name: "tool"})}
			for i := range calls {
				plugins = append(plugins, gaOn(fmt.Sprintf("p%d", i+1), p, func(_ context.Context, pc *phase.Context) (phase.Command, error) {
					if p != phase.RunEnd && pc.Run().Step > 1 {
						return phase.Command{}, nil
					}
					calls[i].Add(1)
					n := conflictN.Get(pc.Snapshot())
					mu.Lock()
					read = append(read, n)
					mu.Unlock()
					return gaUpdates(conflictN.With(n + 1)), nil
				}))
			}
			th := gaThread(t, engine.Config{
				Plugins: plugins, Observers: []engine.Observer{tape},
				Model: gaCalls(inference.ToolCall{ID: "c", Name: "tool", Args: "{}"}),
			})
			res := gaRun(t, th)
			require.Equal(t, 3, conflictN.Get(th.Snapshot()))
			require.Equal(t, []int64{1, 2, 2}, []int64{calls[0].Load(), calls[1].Load(), calls[2].Load()})
			require.ElementsMatch(t, []int{0, 0, 0, 1, 2}, read)
			require.Equal(t, []int{1, 2}, read[3:], "retries are serial, each on a fresh snapshot")
			require.Equal(t, 2, res.Stats.Retries)
			require.Equal(t, 2, res.Stats.Conflicts)
			retries, statuses := 0, map[string]engine.HookStatus{}
			for _, e := range gaOf[engine.PhaseFinished](tape) {
				if e.Head().Phase == p {
					retries += e.Retries
				} else {
					require.Zero(t, e.Retries)
				}
			}
			for _, e := range gaOf[engine.HookFinished](tape) {
				if e.Step <= 1 || p == phase.RunEnd {
					statuses[e.Plugin] = e.Status
				}
			}
			require.Equal(t, 2, retries)
			require.Equal(t, map[string]engine.HookStatus{"p1": engine.HookCommitted, "p2": engine.HookRetried, "p3": engine.HookRetried}, statuses)
		})
	}
}

// Capability A4. The partition is greedy in registration order: a hook that fits
// the batch joins it though an earlier one was deferred, and one commit holds the
// batch.
func TestConflictGreedyPartition(t *testing.T) {
	tape := &gaTape{}
	th := gaThread(t, engine.Config{Observers: []engine.Observer{tape}, Plugins: []engine.Plugin{
		gaKeys(conflictN, conflictM, conflictK),
		gaOn("a", phase.StepStart, gaWrites(conflictN.With(1))),
		gaOn("b", phase.StepStart, gaWrites(conflictN.With(2), conflictM.With(2))), // deferred: n
		gaOn("c", phase.StepStart, gaWrites(conflictM.With(3))),                    // joins: b took nothing
		gaOn("d", phase.StepStart, gaWrites(conflictM.With(4), conflictK.With("d"))),
		gaOn("e", phase.StepStart, gaWrites(conflictK.With("e"))),
	}})
	rep := gaPhase(t, th, phase.StepStart)
	require.Equal(t, []engine.HookStatus{engine.HookCommitted, engine.HookRetried, engine.HookCommitted, engine.HookRetried, engine.HookCommitted}, gaStatuses(rep))
	require.Equal(t, []int{1, 2, 1, 2, 1}, gaHookCalls(rep))
	require.Equal(t, 3, rep.Commits)
	require.Equal(t, 2, rep.Retries)
	require.Equal(t, 2, conflictN.Get(th.Snapshot()))
	require.Equal(t, 4, conflictM.Get(th.Snapshot()))
	require.Equal(t, "d", conflictK.Get(th.Snapshot()))
	commits := gaOf[engine.Committed](tape)
	require.Len(t, commits, 3)
	require.Len(t, commits[0].Writes, 3)
	require.Equal(t, []string{"b", "d"}, []string{commits[1].Writes[0].Plugin, commits[2].Writes[0].Plugin})
}

// Capability A4. A deferred hook's first command is dropped whole: what it wrote,
// scheduled and emitted besides does not happen twice, and comes from the second
// call.
func TestConflictDropsFirstCommandWhole(t *testing.T) {
	action := phase.NewAction[string]("act", phase.StepStart)
	effect := effects.NewSpec[string]("tell")
	var acted, told []string
	both := func(tag string) phase.HookFunc {
		calls := 0
		return func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			calls++
			name := fmt.Sprintf("%s%d", tag, calls)
			cmd.Update(conflictK.With(name), conflictLog.Append(name), conflictAdd.With(1))
			cmd.Schedule(action.New(name)).Emit(effect.New(name))
			return cmd, nil
		}
	}
	th := gaPlugins(t, gaKeys(conflictK, conflictLog, conflictAdd),
		gaPlugin("handlers", func(r *engine.Registrar) {
			r.Action(action.Handle(func(_ context.Context, _ *phase.Context, name string) (phase.Command, error) {
				acted = append(acted, name)
				return phase.Command{}, nil
			}))
			r.Effect(effect.Handle(func(_ context.Context, _ *state.Snapshot, name string) error {
				told = append(told, name)
				return nil
			}))
		}),
		gaOn("a", phase.StepStart, both("a")), gaOn("b", phase.StepStart, both("b")))
	gaPhase(t, th, phase.StepStart)
	require.Equal(t, "b2", conflictK.Get(th.Snapshot()))
	require.Equal(t, []string{"a1", "b2"}, conflictLog.Get(th.Snapshot()).Slice())
	require.EqualValues(t, 2, conflictAdd.Get(th.Snapshot()))
	require.Equal(t, []string{"a1", "b2"}, acted)
	require.Equal(t, []string{"a1", "b2"}, told)
}

// Capability A4. Touching one key twice in one command is no conflict with itself.
func TestConflictNotWithinOneCommand(t *testing.T) {
	th := gaPlugins(t, gaKeys(conflictN, conflictTable),
		gaOn("a", phase.StepStart, gaWrites(conflictN.With(1), conflictN.With(2), conflictTable.Put("x", 1), conflictTable.Delete("x"), conflictTable.Put("x", 3))))
	rep := gaPhase(t, th, phase.StepStart)
	require.Zero(t, rep.Retries)
	require.Equal(t, 2, conflictN.Get(th.Snapshot()))
	x, _ := conflictTable.Get(th.Snapshot(), "x")
	require.Equal(t, 3, x)
}

// Capability B1. The unit of conflict of a table is the entry: hooks that write
// different entries commit together, and two that write one do not.
func TestConflictPerTableEntry(t *testing.T) {
	put := func(entry string) phase.HookFunc {
		return func(_ context.Context, pc *phase.Context) (phase.Command, error) {
			v, _ := conflictTable.Get(pc.Snapshot(), entry)
			return gaUpdates(conflictTable.Put(entry, v+1)), nil
		}
	}
	tape := &gaTape{}
	th := gaThread(t, engine.Config{Observers: []engine.Observer{tape}, Plugins: []engine.Plugin{
		gaKeys(conflictTable),
		gaOn("a", phase.AfterToolExecute, put("x")),
		gaOn("b", phase.AfterToolExecute, put("y")),
		gaOn("c", phase.AfterToolExecute, put("x")),
		gaOn("d", phase.AfterToolExecute, put("z")),
	}})
	rep := gaPhase(t, th, phase.AfterToolExecute)
	require.Equal(t, []int{1, 1, 2, 1}, gaHookCalls(rep))
	require.Equal(t, 2, rep.Commits)
	x, _ := conflictTable.Get(th.Snapshot(), "x")
	require.Equal(t, 2, x)
	require.Equal(t, 3, conflictTable.Len(th.Snapshot()))
	lost := gaOf[engine.Conflict](tape)
	require.Len(t, lost, 1)
	require.Len(t, lost[0].Lost, 1)
	require.Equal(t, 1, lost[0].Lost[0].Update.Arg())
	require.Equal(t, engine.Conflict{
		Header: lost[0].Header, Key: "table", Entry: "x", Winner: "a", Loser: "c", Hook: "c/after_tool_execute/0", Fate: "retried",
		Lost: []engine.Write{{Plugin: "c", Hook: "c/after_tool_execute/0", Key: "table", Entry: "x", Op: "put", Update: lost[0].Lost[0].Update}},
	}, lost[0])
}

// Capability B1. Clearing a whole table conflicts with a write of any entry, and
// an element of a set may be added by many but removed by one.
func TestConflictOfWholeTableAndSet(t *testing.T) {
	th := gaPlugins(t, gaKeys(conflictTable, conflictSet),
		gaOn("put", phase.StepStart, gaWrites(conflictTable.Put("x", 1), conflictSet.Add("s"))),
		gaOn("clear", phase.StepStart, gaWrites(conflictTable.Reset())),
		gaOn("add", phase.StepStart, gaWrites(conflictSet.Add("s", "t"))),
		gaOn("remove", phase.StepStart, gaWrites(conflictSet.Remove("s"))))
	rep := gaPhase(t, th, phase.StepStart)
	require.Equal(t, []int{1, 2, 1, 2}, gaHookCalls(rep))
	require.Zero(t, conflictTable.Len(th.Snapshot()))
	require.False(t, conflictSet.Has(th.Snapshot(), "s"))
	require.True(t, conflictSet.Has(th.Snapshot(), "t"))
}

// Capability B2. The events tell for every revision who wrote which key in which
// phase and round, and who lost what to whom.
func TestConflictEventsExplainEveryWrite(t *testing.T) {
	action := phase.NewAction[int]("bump", phase.StepEnd)
	tape := &gaTape{}
	bump := func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
		cmd.Update(conflictN.With(conflictN.Get(pc.Snapshot())+1), conflictLog.Append("x"))
		return cmd, nil
	}
	th := gaThread(t, engine.Config{Observers: []engine.Observer{tape}, Plugins: []engine.Plugin{
		gaKeys(conflictN, conflictLog),
		gaPlugin("handler", func(r *engine.Registrar) {
			r.Action(action.Handle(func(_ context.Context, _ *phase.Context, _ int) (phase.Command, error) {
				return gaUpdates(conflictN.With(100)), nil
			}))
		}),
		gaOn("a", phase.StepEnd, bump),
		gaOn("b", phase.StepEnd, func(ctx context.Context, pc *phase.Context) (phase.Command, error) {
			cmd, err := bump(ctx, pc)
			cmd.Schedule(action.New(1))
			return cmd, err
		}),
	}})
	gaPhase(t, th, phase.StepEnd)
	type write struct {
		Revision     uint64
		Round        int
		Plugin, Key  string
		Entry, Op    string
		AtPhaseStart phase.Phase
	}
	var got []write
	for _, c := range gaOf[engine.Committed](tape) {
		for _, w := range c.Writes {
			if w.Key == "n" || w.Key == "log" {
				got = append(got, write{c.Revision, c.Round, w.Plugin, w.Key, w.Entry, w.Op, c.Phase})
			}
		}
	}
	require.Equal(t, []write{
		{1, 0, "a", "n", "", "apply", phase.StepEnd},
		{1, 0, "a", "log", "", "append", phase.StepEnd},
		{2, 0, "b", "n", "", "apply", phase.StepEnd},
		{2, 0, "b", "log", "", "append", phase.StepEnd},
		{3, 1, "handler", "n", "", "apply", phase.StepEnd},
	}, got)
	lost := gaOf[engine.Conflict](tape)
	require.Len(t, lost, 1)
	require.Equal(t, "n", lost[0].Key)
	require.Equal(t, "a", lost[0].Winner)
	require.Equal(t, "b", lost[0].Loser)
}

// Capability B9. Two hooks that each check the other's key and write their own
// would both go ahead (write skew); with declared reads the second runs again and
// sees what the first did. Declared for the hook or in its command.
func TestConflictReadsExcludeWriteSkew(t *testing.T) {
	guard := func(own, other state.Cell[int], declare bool) phase.HookFunc {
		return func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
			if declare {
				cmd.Reads(other)
			}
			if other.Get(pc.Snapshot()) == 0 {
				cmd.Update(own.With(1))
			}
			return cmd, nil
		}
	}
	for name, c := range map[string]struct {
		option, command bool
		n, m            int
	}{
		"undeclared": {n: 1, m: 1},
		"by hook":    {option: true, n: 1, m: 0},
		"by command": {command: true, n: 1, m: 0},
	} {
		t.Run(name, func(t *testing.T) {
			var a, b []engine.HookOption
			if c.option {
				a, b = append(a, engine.Reads(conflictM)), append(b, engine.Reads(conflictN))
			}
			th := gaPlugins(t, gaKeys(conflictN, conflictM),
				gaOn("a", phase.StepStart, guard(conflictN, conflictM, c.command), a...),
				gaOn("b", phase.StepStart, guard(conflictM, conflictN, c.command), b...))
			rep := gaPhase(t, th, phase.StepStart)
			require.Equal(t, c.n, conflictN.Get(th.Snapshot()))
			require.Equal(t, c.m, conflictM.Get(th.Snapshot()))
			if c.m == 0 {
				require.Equal(t, []int{1, 2}, gaHookCalls(rep))
			}
		})
	}
}

// Capability B9. A declared read of a Commutative key counts too, and reading what
// nobody writes is no conflict.
func TestConflictReadsOfCommutativeKey(t *testing.T) {
	var seen []int64
	th := gaPlugins(t, gaKeys(conflictAdd, conflictM),
		gaOn("add", phase.StepStart, gaWrites(conflictAdd.With(5))),
		gaOn("reader", phase.StepStart, func(_ context.Context, pc *phase.Context) (phase.Command, error) {
			seen = append(seen, conflictAdd.Get(pc.Snapshot()))
			return phase.Command{}, nil
		}, engine.Reads(conflictAdd)),
		gaOn("calm", phase.StepStart, gaDoes(phase.Command{}), engine.Reads(conflictM)))
	rep := gaPhase(t, th, phase.StepStart)
	require.Equal(t, []int{1, 2, 1}, gaHookCalls(rep))
	require.Equal(t, []int64{0, 5}, seen)
}

// Fault B09. Fault F10. Commits from outside to other keys disturb no phase, and
// commits to keys a hook writes make it run again: no update is lost and no
// conflict reaches the caller.
func TestConflictWithCommitsFromOutside(t *testing.T) {
	background := state.NewCell[int]("bg", state.Options[int]{})
	add := func(_ context.Context, pc *phase.Context) (phase.Command, error) {
		return gaUpdates(conflictAdd.With(1), conflictN.With(conflictN.Get(pc.Snapshot())+1)), nil
	}
	th := gaPlugins(t, gaKeys(conflictAdd, conflictN, background), gaOn("a", phase.StepStart, add), gaOn("b", phase.StepStart, add))
	stop := make(chan struct{})
	var outside sync.WaitGroup
	outside.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := th.Submit(context.Background(), "bg", gaUpdates(background.With(i))); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 200 {
		gaPhase(t, th, phase.StepStart)
	}
	close(stop)
	outside.Wait()
	require.EqualValues(t, 400, conflictAdd.Get(th.Snapshot()))
	require.Equal(t, 400, conflictN.Get(th.Snapshot()))
}

// Fault B09. An outside commit of the very key a hook writes, made while the hook
// runs, is not overwritten: the hook runs again and builds on it.
func TestConflictOutsideWriteWinsAndHookRunsAgain(t *testing.T) {
	var th *engine.Thread
	tape := &gaTape{}
	calls := 0
	th = gaThread(t, engine.Config{Observers: []engine.Observer{tape}, Plugins: []engine.Plugin{
		gaKeys(conflictN),
		gaOn("hook", phase.StepStart, func(ctx context.Context, pc *phase.Context) (phase.Command, error) {
			n := conflictN.Get(pc.Snapshot())
			if calls++; calls == 1 {
				_, err := th.Submit(ctx, "outside", gaUpdates(conflictN.With(40)))
				require.NoError(t, err)
			}
			return gaUpdates(conflictN.With(n + 2)), nil
		}),
	}})
	rep := gaPhase(t, th, phase.StepStart)
	require.Equal(t, 42, conflictN.Get(th.Snapshot()))
	require.Equal(t, 2, rep.Hooks[0].Calls)
	require.Equal(t, engine.HookRetried, rep.Hooks[0].Status)
	lost := gaOf[engine.Conflict](tape)
	require.Len(t, lost, 1)
	require.Equal(t, "outside", lost[0].Winner)
}

// Fault B09. Retries are bounded: a hook that loses every time ends as a conflict
// error that names both sides, after Limits.CommitRetries repeats.
func TestConflictRetriesAreBounded(t *testing.T) {
	var th *engine.Thread
	hook := func(ctx context.Context, pc *phase.Context) (phase.Command, error) {
		n := conflictN.Get(pc.Snapshot())
		_, err := th.Submit(ctx, "outside", gaUpdates(conflictN.With(n+1)))
		return gaUpdates(conflictN.With(-1)), err
	}
	for _, rule := range []engine.ErrorRule{engine.Fail, engine.Skip} {
		th = gaThread(t, engine.Config{Limits: engine.Limits{CommitRetries: 3}, Plugins: []engine.Plugin{
			gaKeys(conflictN), gaOn("hook", phase.StepStart, hook, engine.OnError(rule)),
		}})
		rep, err := th.RunPhase(t.Context(), gaAgent, phase.StepStart)
		require.Equal(t, 4, rep.Hooks[0].Calls, "the first call and 3 repeats")
		require.Equal(t, 4, conflictN.Get(th.Snapshot()))
		var lost *state.ConflictError
		require.ErrorAs(t, rep.Hooks[0].Err, &lost)
		require.Equal(t, "outside", lost.Winner)
		require.Equal(t, "hook", lost.Loser)
		if rule == engine.Fail {
			require.ErrorIs(t, err, state.ErrConflict)
		} else {
			require.NoError(t, err)
		}
	}
}

// Fault F12. The order of a log is registration order whether or not there was a
// conflict: A(k), B(k and log), C(log) and A(log, k), B(k), C(log).
func TestConflictKeepsLogOrder(t *testing.T) {
	appendTo := func(name string, k bool, log bool) engine.Plugin {
		return gaOn(name, phase.StepStart, func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			if k {
				cmd.Update(conflictK.With(name))
			}
			if log {
				cmd.Update(conflictLog.Append(name))
			}
			return cmd, nil
		})
	}
	for _, c := range []struct {
		plugins []engine.Plugin
		log     []string
		k       string
		calls   []int
	}{
		{[]engine.Plugin{appendTo("A", true, false), appendTo("B", true, true), appendTo("C", false, true)}, []string{"B", "C"}, "B", []int{1, 2, 2}},
		{[]engine.Plugin{appendTo("A", true, true), appendTo("B", true, true), appendTo("C", false, true)}, []string{"A", "B", "C"}, "B", []int{1, 2, 2}},
		{[]engine.Plugin{appendTo("A", true, true), appendTo("B", true, false), appendTo("C", false, true)}, []string{"A", "C"}, "B", []int{1, 2, 1}},
		{[]engine.Plugin{appendTo("A", false, true), appendTo("B", false, true), appendTo("C", false, true)}, []string{"A", "B", "C"}, "", []int{1, 1, 1}},
	} {
		th := gaPlugins(t, append([]engine.Plugin{gaKeys(conflictK, conflictLog)}, c.plugins...)...)
		rep := gaPhase(t, th, phase.StepStart)
		require.Equal(t, c.log, conflictLog.Get(th.Snapshot()).Slice())
		require.Equal(t, c.k, conflictK.Get(th.Snapshot()))
		require.Equal(t, c.calls, gaHookCalls(rep))
	}
}

// Fault F13. When a deferred hook fails after the batch has committed, the report
// is there and tells which hooks count; what committed stays, and so do its effects.
func TestConflictFailureOfDeferredHookLeavesReport(t *testing.T) {
	told := 0
	effect := effects.NewSpec[int]("tell")
	boom := fmt.Errorf("boom")
	calls := 0
	th := gaPlugins(t, gaKeys(conflictN, conflictM),
		gaPlugin("handler", func(r *engine.Registrar) {
			r.Effect(effect.Handle(func(context.Context, *state.Snapshot, int) error { told++; return nil }))
		}),
		gaOn("a", phase.StepStart, func(context.Context, *phase.Context) (phase.Command, error) {
			cmd := gaUpdates(conflictN.With(1))
			cmd.Emit(effect.New(1))
			return cmd, nil
		}),
		gaOn("b", phase.StepStart, func(context.Context, *phase.Context) (phase.Command, error) {
			if calls++; calls > 1 {
				return phase.Command{}, boom
			}
			return gaUpdates(conflictN.With(2)), nil
		}),
		gaOn("c", phase.StepStart, gaWrites(conflictN.With(3))),
		gaOn("later", phase.StepStart, gaWrites(conflictM.With(9)), engine.Tier(1)))
	rep, err := th.RunPhase(t.Context(), gaAgent, phase.StepStart)
	require.ErrorIs(t, err, boom)
	var he *engine.HookError
	require.ErrorAs(t, err, &he)
	require.Equal(t, "b", he.Plugin)
	require.NotNil(t, rep)
	require.Equal(t, []engine.HookStatus{engine.HookCommitted, engine.HookFailed, engine.HookRetried}, gaStatuses(rep))
	require.Equal(t, 3, conflictN.Get(th.Snapshot()))
	require.Zero(t, conflictM.Get(th.Snapshot()), "later tiers do not run")
	require.Equal(t, 2, rep.Commits)
	require.Len(t, rep.Effects, 1)
	require.Equal(t, 1, told)
	require.Equal(t, th.Snapshot().Revision(), rep.Revision)
}
