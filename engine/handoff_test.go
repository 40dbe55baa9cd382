package engine_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// gbMember is a plugin with one key, that it sets when it becomes active and
// clears when it stops being so.
type gbMember struct {
	name    string
	key     state.Cell[string]
	log     *gbLog
	fail    error
	also    []state.Update // written on activation too
	keys    []state.AnyKey
	panicky bool
}

func (m *gbMember) Name() string { return m.name }

func (m *gbMember) Register(r *engine.Registrar) error {
	r.Key(m.key)
	r.Key(m.keys...)
	r.Hook(phase.StepStart, phase.HookFunc(func(_ context.Context, pc *phase.Context) (phase.Command, error) {
		m.log.add("%s step %d of %s: %q", m.name, pc.Run().Step, pc.Agent().ID, m.key.Get(pc.Snapshot()))
		return phase.Command{}, nil
	}))
	return nil
}

func (m *gbMember) OnActivate(spec engine.AgentSpec, b *engine.Batch) error {
	b.Update(m.key.With("for " + spec.ID))
	b.Update(m.also...)
	if m.panicky {
		panic(m.fail)
	}
	return m.fail
}

func (m *gbMember) OnDeactivate(b *engine.Batch) error {
	b.Update(m.key.With("off"))
	return nil
}

func gbMemberOf(name string, log *gbLog) *gbMember {
	return &gbMember{name: name, log: log, key: state.NewCell[string]("gb.member."+name, state.Options[string]{Scope: state.ScopeThread})}
}

// gbHandingTool is a tool that hands the run over.
func gbHandingTool(to string) *gbTool {
	return gbToolOf("hand_over", func(context.Context, *phase.Context) (out engine.Output, err error) {
		out.Content = "handed"
		out.Command.Update(engine.HandOff(to))
		return out, nil
	})
}

// Capability A18. Fault F36. A handoff happens at the end of the step in exactly
// one commit: the new agent, what its plugins prepare and what the former's clean
// up. Plugins active in both are not asked.
func TestHandoffInOneCommit(t *testing.T) {
	log := &gbLog{}
	old, both, next := gbMemberOf("old", log), gbMemberOf("both", log), gbMemberOf("next", log)
	boss := gbScript(gbAsk(gbCall("c1", "hand_over", "")))
	expert := gbScript(gbSay(""), gbSay("expert here"))
	w := gbNew(t, engine.Config{
		Models:  map[string]inference.Model{"boss": boss, "expert": expert},
		Agents:  []engine.AgentSpec{{ID: "expert", ModelID: "expert", SystemPrompt: "be precise", ActiveHookFilter: []string{"both", "next", "tools"}}},
		Plugins: []engine.Plugin{gbTools(gbHandingTool("expert")), old, both, next},
	})
	w.spec = engine.AgentSpec{ID: "boss", ModelID: "boss", ActiveHookFilter: []string{"old", "both", "tools"}}
	type view struct{ old, both, next string }
	var seen []view
	stop := w.thread.Subscribe(func(c state.Commit) {
		v := view{old.key.Get(c.Snapshot), both.key.Get(c.Snapshot), next.key.Get(c.Snapshot)}
		if len(seen) == 0 || seen[len(seen)-1] != v {
			seen = append(seen, v)
		}
	})
	res := w.say("go")
	stop()
	require.Equal(t, []view{{"for boss", "for boss", ""}, {"off", "for boss", "for expert"}}, seen)
	require.Equal(t, phase.ReasonNatural, res.Reason)
	require.Equal(t, "expert", res.Agent)
	require.Equal(t, "expert here", res.Text)
	require.Equal(t, "be precise", expert.sent()[0].System)
	require.Equal(t, []string{
		`old step 1 of boss: "for boss"`, `both step 1 of boss: "for boss"`,
		`both step 2 of expert: "for boss"`, `next step 2 of expert: "for expert"`,
	}, sortedPairs(log.all()))
	handed := gbOf[engine.HandedOff](w.events)
	require.Len(t, handed, 1)
	require.Equal(t, "boss", handed[0].From)
	require.Equal(t, "expert", handed[0].To)
	require.Len(t, gbOf[engine.RunStarted](w.events), 1, "it is one run")
}

// sortedPairs puts the lines of the first step, and those of the second, into the
// order of registration, since hooks of one phase run at the same time.
func sortedPairs(lines []string) []string {
	for i := 0; i+1 < len(lines); i += 2 {
		if lines[i][0] == 'b' && lines[i+1][0] == 'o' || lines[i][0] == 'n' && lines[i+1][0] == 'b' {
			lines[i], lines[i+1] = lines[i+1], lines[i]
		}
	}
	return lines
}

// Fault F36. When a plugin fails on the way, in whatever form, nothing of the
// handoff is committed and the run ends with the cause.
func TestFailedHandoffChangesNothing(t *testing.T) {
	boom := errors.New("boom")
	shared := state.NewCell[string]("gb.shared", state.Options[string]{Scope: state.ScopeThread})
	strict := state.NewCell("gb.strict", state.Options[string]{Scope: state.ScopeThread, Check: func(_, _ string) error { return boom }})
	unknown := state.NewCell[string]("gb.unknown", state.Options[string]{Scope: state.ScopeThread})
	for name, spoil := range map[string]func(a, b *gbMember){
		"error":   func(_, b *gbMember) { b.fail = boom },
		"panic":   func(_, b *gbMember) { b.fail, b.panicky = boom, true },
		"refused": func(_, b *gbMember) { b.also, b.keys = []state.Update{strict.With("x")}, []state.AnyKey{strict} },
		"unknown": func(_, b *gbMember) { b.also = []state.Update{unknown.With("x")} },
		"two fight over a key": func(a, b *gbMember) {
			a.keys = []state.AnyKey{shared}
			a.also, b.also = []state.Update{shared.With("a")}, []state.Update{shared.With("b")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			log := &gbLog{}
			old, a, b := gbMemberOf("old", log), gbMemberOf("a", log), gbMemberOf("b", log)
			spoil(a, b)
			w := gbNew(t, engine.Config{
				Model:   gbScript(gbAsk(gbCall("c1", "hand_over", ""))),
				Agents:  []engine.AgentSpec{{ID: "expert", ActiveHookFilter: []string{"a", "b"}}},
				Plugins: []engine.Plugin{gbTools(gbHandingTool("expert")), old, a, b},
			})
			w.spec.ActiveHookFilter = []string{"old", "tools"}
			res := w.say("go")
			require.Equal(t, phase.ReasonError, res.Reason)
			require.Error(t, res.Err)
			if name != "two fight over a key" && name != "unknown" {
				require.ErrorIs(t, res.Err, boom)
			}
			if name != "refused" && name != "unknown" {
				require.ErrorContains(t, res.Err, "b")
			}
			require.Equal(t, "agent", res.Agent, "the former agent still has the run")
			snap := w.thread.Snapshot()
			require.Equal(t, "for agent", old.key.Get(snap))
			require.Empty(t, a.key.Get(snap), "nothing of the handoff is committed")
			require.Empty(t, b.key.Get(snap))
			require.Empty(t, shared.Get(snap))
			require.Empty(t, gbOf[engine.HandedOff](w.events))
		})
	}
}

// The same holds for the start of a run: when one plugin fails to become active,
// none of the others' updates is committed.
func TestFailedActivationAtTheStart(t *testing.T) {
	shared := state.NewCell[string]("gb.shared", state.Options[string]{Scope: state.ScopeThread})
	log := &gbLog{}
	a, b := gbMemberOf("a", log), gbMemberOf("b", log)
	a.keys = []state.AnyKey{shared}
	a.also, b.also = []state.Update{shared.With("a")}, []state.Update{shared.With("b")}
	model := gbScript()
	w := gbNew(t, engine.Config{Model: model, Plugins: []engine.Plugin{a, b}})
	res := w.say("go")
	require.Equal(t, phase.ReasonError, res.Reason)
	require.Empty(t, a.key.Get(w.thread.Snapshot()))
	require.Empty(t, shared.Get(w.thread.Snapshot()))
	require.Empty(t, model.sent())
}

// Two plugins may write the same table or set at activation as long as they do not
// touch the same entry for themselves.
func TestActivationsThatShareAKey(t *testing.T) {
	table := state.NewTable[string]("gb.table", state.Options[int]{Scope: state.ScopeThread})
	set := state.NewSet[string]("gb.set", state.Options[string]{Scope: state.ScopeThread})
	list := state.NewLog("gb.list", state.Options[int]{Scope: state.ScopeThread})
	for _, c := range []struct {
		name  string
		a, b  []state.Update
		clash bool
	}{
		{"other entries", []state.Update{table.Put("a", 1)}, []state.Update{table.Put("b", 2)}, false},
		{"one entry", []state.Update{table.Put("a", 1)}, []state.Update{table.Put("a", 2)}, true},
		{"an entry that another deletes", []state.Update{table.Put("a", 1)}, []state.Update{table.Delete("a")}, true},
		{"a table that another resets", []state.Update{table.Put("a", 1)}, []state.Update{table.Reset()}, true},
		{"a table that another has reset", []state.Update{table.Reset()}, []state.Update{table.Put("a", 1)}, true},
		{"a set", []state.Update{set.Add("a", "b")}, []state.Update{set.Add("b", "c")}, false},
		{"elements taken from a set", []state.Update{set.Add("a", "b")}, []state.Update{set.Remove("c", "d")}, false},
		{"an element taken from a set", []state.Update{set.Add("a")}, []state.Update{set.Remove("a")}, true},
		{"a log", []state.Update{list.Append(1)}, []state.Update{list.Append(2)}, false},
		{"a log that another resets", []state.Update{list.Append(1)}, []state.Update{list.Reset()}, true},
		{"one plugin twice", []state.Update{table.Put("a", 1), table.Put("a", 2), table.Reset()}, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := &gbLog{}
			a, b := gbMemberOf("a", log), gbMemberOf("b", log)
			a.keys, a.also, b.also = []state.AnyKey{table, set, list}, c.a, c.b
			w := gbNew(t, engine.Config{Model: gbScript(), Plugins: []engine.Plugin{a, b}})
			res := w.say("go")
			if !c.clash {
				require.NoError(t, res.Err)
				require.Equal(t, "for agent", b.key.Get(w.thread.Snapshot()))
				return
			}
			require.ErrorIs(t, res.Err, state.ErrConflict)
			require.Empty(t, a.key.Get(w.thread.Snapshot()))
		})
	}
}

// gbSleeper is a plugin whose activation misbehaves.
type gbSleeper struct{ act func() }

func (gbSleeper) Name() string                                           { return "sleeper" }
func (gbSleeper) Register(*engine.Registrar) error                       { return nil }
func (s gbSleeper) OnActivate(_ engine.AgentSpec, _ *engine.Batch) error { s.act(); return nil }

// An activation that ends its goroutine fails the run; one that hangs does not hold
// up a cancelled run.
func TestActivationsThatMisbehave(t *testing.T) {
	run := func(ctx context.Context, act func()) *engine.Result {
		w := gbNew(t, engine.Config{Model: gbScript(), Plugins: []engine.Plugin{gbSleeper{act}}})
		var res *engine.Result
		done := make(chan struct{})
		go func() { // since a Goexit that gets through would end the test
			defer close(done)
			res, _ = w.thread.Run(ctx, w.spec, engine.Prompt("go"))
		}()
		<-done
		require.NotNil(t, res, "the run must survive")
		return res
	}
	res := run(t.Context(), runtime.Goexit)
	require.Equal(t, phase.ReasonError, res.Reason)
	require.ErrorIs(t, res.Err, engine.ErrGoexit)
	require.ErrorContains(t, res.Err, "sleeper")

	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	defer close(release)
	res = run(ctx, func() {
		cancel()
		<-release
	})
	require.Equal(t, phase.ReasonCancelled, res.Reason)
}

// A handoff to nobody known ends the run with an error; to oneself it is allowed;
// of several the last written counts.
func TestHandoffTargets(t *testing.T) {
	w := gbNew(t, engine.Config{
		Model:   gbScript(gbAsk(gbCall("c1", "hand_over", ""))),
		Plugins: []engine.Plugin{gbTools(gbHandingTool("exprt"))},
		Agents:  []engine.AgentSpec{{ID: "expert"}},
	})
	res := w.say("go")
	require.Equal(t, phase.ReasonError, res.Reason)
	require.ErrorIs(t, res.Err, engine.ErrUnknownAgent)
	require.ErrorContains(t, res.Err, "exprt")
	require.Len(t, w.results(), 1)

	w = gbNew(t, engine.Config{
		Model: gbScript(gbSay("over to you")),
		Plugins: []engine.Plugin{gbHook("twice", phase.AfterInference, func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
			if pc.Run().Step == 1 {
				cmd.Update(engine.HandOff("a"), engine.HandOff("b"))
			}
			return cmd, nil
		})},
		Agents: []engine.AgentSpec{{ID: "a"}, {ID: "b"}},
	})
	res = w.say("go")
	require.Equal(t, "b", res.Agent)
	require.Equal(t, 2, res.Steps, "the new agent speaks although the former one was done")
}

// The new agent's gates, tools and limits hold from its first step on.
func TestHandoffChangesWhatHolds(t *testing.T) {
	tool := gbToolOf("wipe", nil)
	w := gbNew(t, engine.Config{
		Model: gbScript(gbAsk(gbCall("c1", "wipe", ""), gbCall("c2", "hand_over", "")), gbAsk(gbCall("c3", "wipe", ""), gbCall("c4", "hand_over", ""))),
		Plugins: []engine.Plugin{gbTools(tool, gbHandingTool("safe")), gbGate("guard", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			if pc.Call().Name == "wipe" {
				return gate.Block("no"), nil
			}
			return gate.Abstain(), nil
		})},
		Agents: []engine.AgentSpec{{ID: "safe", ExcludedTools: []string{"hand_over"}, MaxRounds: 2}},
	})
	w.spec.ActiveHookFilter, w.spec.MaxRounds = []string{"tools"}, 50
	res := w.say("go")
	require.Equal(t, []string{"c1 ok", "c2 ok", "c3 blocked", "c4 error"}, gbOutcomes(w.results()))
	require.Equal(t, phase.ReasonMaxRounds, res.Reason)
}
