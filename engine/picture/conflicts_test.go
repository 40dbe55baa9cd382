package picture_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/engine/picture"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

var (
	plan  = state.NewCell("plan", state.Options[int]{})
	draft = state.NewCell("draft", state.Options[int]{})
	calls = state.NewTable[string]("calls", state.Options[int]{})
	notes = state.NewLog("notes", state.Options[string]{})
	tags  = state.NewSet[string]("tags", state.Options[string]{})
	hits  = state.NewCounter("hits", state.Options[int64]{})
)

// writer is a plugin with a hook at step_end that always commits the updates.
func writer(name string, updates []state.Update, options ...engine.HookOption) engine.Plugin {
	return engine.NewPlugin(name, func(r *engine.Registrar) error {
		r.Hook(phase.StepEnd, always(updates...), options...)
		return nil
	})
}

func always(updates ...state.Update) phase.Hook {
	return phase.HookFunc(func(context.Context, *phase.Context) (cmd phase.Command, _ error) {
		cmd.Update(updates...)
		return cmd, nil
	})
}

var keys = engine.NewPlugin("keys", func(r *engine.Registrar) error {
	r.Key(plan, draft, calls, notes, tags, hits)
	return nil
})

func TestConflicts(t *testing.T) {
	again := phase.NewAction[string]("again", phase.StepEnd).ReplaySafe()
	m := manifestOf(t, keys,
		writer("early", nil, engine.Reads(plan), engine.Writes(notes)),
		writer("a", nil, engine.Writes(plan, draft, notes)),
		writer("b", nil, engine.Writes(plan, draft)),
		writer("c", nil, engine.Writes(plan), engine.Reads(hits)),
		writer("d", nil, engine.Reads(plan), engine.Writes()),
		writer("counter", nil, engine.Writes(hits)),
		writer("later", nil, engine.Writes(plan), engine.Tier(2)),
		writer("vague", nil),
		writer("alone", nil, engine.Tier(9)),
		writer("off", nil, engine.Writes(plan)),
		engine.NewPlugin("acts", func(r *engine.Registrar) error {
			r.Action(again.Handle(func(context.Context, *phase.Context, string) (phase.Command, error) { return phase.Command{}, nil }))
			return nil
		}))
	m = m.For(engine.AgentSpec{ID: "x", ActiveHookFilter: []string{"early", "a", "b", "c", "d", "counter", "later", "vague", "alone"}})
	require.Equal(t, `agent x
step_end, tier 0
  exclusive key draft
    written by a/step_end/0
    written by b/step_end/0
    when both write it, b/step_end/0 runs again on what a/step_end/0 wrote
  commutative key hits
    written by counter/step_end/0
    read by c/step_end/0
    comes before whoever writes the key, so keeps what it read: c/step_end/0
  exclusive key plan
    written by a/step_end/0
    written by b/step_end/0
    written by c/step_end/0
    read by early/step_end/0
    read by d/step_end/0
    the first of those that write it commits, the later ones run again one by one, in this order
    when a hook before it wrote the key, the reader runs again: d/step_end/0
    comes before whoever writes the key, so keeps what it read: early/step_end/0
merge, unless a hook resets the key or removes from it; what is put in order waits behind a hook that has to run again
  step_end, tier 0: notes
    written by early/step_end/0
    written by a/step_end/0
declare no writes, so could conflict with any hook of their phase and tier that reads or writes
  step_end, tier 0: vague/step_end/0; beside early/step_end/0, a/step_end/0, b/step_end/0, c/step_end/0, d/step_end/0, counter/step_end/0
  step_end, tier 9: alone/step_end/0; no such hook is beside it
action handlers that run in parallel, under the same rule; what they write is not declared
  step_end: again of acts
`, picture.Conflicts(m, nil))
	require.Equal(t, "no two hooks declare a key that they could fight over\n", picture.Conflicts(manifestOf(t, keys), nil))
}

// What hooks that declare nothing were seen to write is in the report, marked, with the
// number of conflicts.
func TestConflictsObserved(t *testing.T) {
	seen := new(picture.Observed)
	plugins := []engine.Plugin{
		keys,
		writer("a", []state.Update{plan.With(1), calls.Put("x", 1)}, engine.Writes(plan)),
		writer("b", []state.Update{plan.With(2), calls.Put("y", 1)}),
		writer("c", []state.Update{tags.Add("t")}),
		writer("d", []state.Update{tags.Remove("t")}),
		writer("idle", nil),
		writer("off", nil, engine.Writes(draft)),
	}
	config, _ := enginetest.Config(t, plugins...)
	config.Observers = append(config.Observers, seen)
	eng := enginetest.Engine(t, config)
	th, err := eng.NewThread("")
	require.NoError(t, err)
	for range 3 {
		_, err = th.RunPhase(t.Context(), engine.AgentSpec{ID: "x"}, phase.StepEnd)
		require.NoError(t, err)
	}
	m := eng.Describe().For(engine.AgentSpec{ID: "x", ActiveHookFilter: []string{"a", "b", "c", "d", "idle"}})
	require.Equal(t, `agent x
step_end, tier 0
  exclusive key plan
    written by a/step_end/0 (declared, observed in 3 commits)
    written by b/step_end/0 (observed in 3 commits)
    when both write it, b/step_end/0 runs again on what a/step_end/0 wrote
    observed: b/step_end/0 lost it to a 3 times
merge, unless a hook resets the key or removes from it; what is put in order waits behind a hook that has to run again
  step_end, tier 0: tags
    written by c/step_end/0 (observed in 3 commits)
    written by d/step_end/0 (observed in 3 commits)
    was reset or removed from by d/step_end/0
    observed: d/step_end/0 lost it to c 3 times
declare no writes, so could conflict with any hook of their phase and tier that reads or writes
  step_end, tier 0: b/step_end/0; beside a/step_end/0, c/step_end/0, d/step_end/0, idle/step_end/0
    observed to run 3 times and to write calls in 3 commits, plan in 3 commits
  step_end, tier 0: c/step_end/0; beside a/step_end/0, b/step_end/0, d/step_end/0, idle/step_end/0
    observed to run 3 times and to write tags in 3 commits
  step_end, tier 0: d/step_end/0; beside a/step_end/0, b/step_end/0, c/step_end/0, idle/step_end/0
    observed to run 3 times and to write tags in 3 commits
  step_end, tier 0: idle/step_end/0; beside a/step_end/0, b/step_end/0, c/step_end/0, d/step_end/0
    observed to run 3 times and to write nothing
observed, but no active hook of this agent
  off/step_end/0
`, picture.Conflicts(m, seen))
	require.Contains(t, picture.Conflicts(m, new(picture.Observed)), "\n    was not observed to run\n")
}

// What is reported is what happens: whatever hooks declare, each conflict of a run was in
// the report with its key, the hook that lost and one of the plugin that won; a report
// without keys means a run without conflicts; and hooks that always write a key that they
// could fight over do fight over it. The same holds for hooks that declare nothing, once
// they were observed.
//
// Capability B10.
func TestEveryConflictIsReported(t *testing.T) {
	conflicts, quiet := 0, 0
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 10))
		declare := seed%2 == 0
		plugins := append([]engine.Plugin{keys}, randomPlugins(rnd, declare)...)
		m, seen := manifestOf(t, plugins...), new(picture.Observed)
		out := enginetest.Driver{Plugins: plugins, Configure: func(c *engine.Config) { c.Observers = append(c.Observers, seen) }}.RunPhase(t, phase.StepEnd)
		require.NoError(t, out.Err)
		if declare {
			seen = nil
		}
		text := picture.Conflicts(m, seen)
		foretold := reported(text)
		happened := enginetest.Select[engine.Conflict](out.Events)
		for _, c := range happened {
			require.Truef(t, slices.ContainsFunc(foretold, func(f foretelling) bool {
				return f.key == c.Key && slices.Contains(f.hooks, c.Hook) &&
					slices.ContainsFunc(f.hooks, func(h string) bool { return h != c.Hook && strings.HasPrefix(h, c.Winner+"/") })
			}), "seed %d: %s lost %s to %s, which is not in\n%s", seed, c.Hook, c.Key, c.Winner, text)
		}
		conflicts += len(happened)
		if len(foretold) == 0 {
			quiet++
			require.Empty(t, happened)
		}
		for _, p := range m.Conflicts {
			if len(p.Hooks) > 1 && p.Merge == state.Exclusive && p.Key != calls.Name() {
				require.True(t, slices.ContainsFunc(happened, func(c engine.Conflict) bool { return slices.Contains(p.Hooks, c.Hook) }),
					"seed %d: %s", seed, p.Key)
			}
			require.True(t, slices.ContainsFunc(foretold, func(f foretelling) bool {
				return f.key == p.Key && f.at == fmt.Sprintf("%s, tier %d", p.Phase, p.Tier)
			}), "seed %d: %s is in the manifest only", seed, p.Key)
		}
	}
	require.Greater(t, conflicts, 100)
	require.Greater(t, quiet, 10)
}

func randomPlugins(rnd *rand.Rand, declare bool) (all []engine.Plugin) {
	entry := func() string { return string(rune('a' + rnd.IntN(2))) }
	for i := range 2 + rnd.IntN(3) {
		var register []func(*engine.Registrar)
		for range 1 + rnd.IntN(2) {
			var updates []state.Update
			written, options := []state.AnyKey{}, []engine.HookOption{engine.Tier(rnd.IntN(2))}
			for range rnd.IntN(3) {
				u := []state.Update{
					plan.With(i), draft.With(i), calls.Put(entry(), i), calls.Delete(entry()), notes.Append("n"),
					notes.Replace("r"), tags.Add(entry()), tags.Remove(entry()), hits.With(1), hits.Reset(),
				}[rnd.IntN(10)]
				updates, written = append(updates, u), append(written, u.Key())
			}
			if rnd.IntN(3) == 0 {
				options = append(options, engine.Reads([]state.AnyKey{plan, calls, notes, hits}[rnd.IntN(4)]))
			}
			if declare {
				options = append(options, engine.Writes(written...))
			}
			register = append(register, func(r *engine.Registrar) { r.Hook(phase.StepEnd, always(updates...), options...) })
		}
		all = append(all, engine.NewPlugin(fmt.Sprint("p", i), func(r *engine.Registrar) error {
			for _, hook := range register {
				hook(r)
			}
			return nil
		}))
	}
	return all
}

// foretelling is a key of a report and the hooks below it.
type foretelling struct {
	at, key string
	hooks   []string
}

// reported reads the keys of a report.
func reported(text string) (all []foretelling) {
	at := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		last := len(all) - 1
		switch fact := strings.TrimLeft(line, " "); len(line) - len(fact) {
		case 0:
			at = fact
		case 2:
			if _, key, is := strings.Cut(fact, " key "); is {
				all = append(all, foretelling{at: at, key: key})
			} else if place, key, is := strings.Cut(fact, ": "); is && strings.HasPrefix(at, "merge, ") {
				all = append(all, foretelling{at: place, key: key})
			}
		case 4:
			for _, lead := range []string{"written by ", "read by "} {
				if hook, is := strings.CutPrefix(fact, lead); is {
					hook, _, _ = strings.Cut(hook, " (")
					all[last].hooks = append(all[last].hooks, hook)
				}
			}
		}
	}
	return all
}

// What is kept of a hook does not grow with the number of events.
func TestObservedIsBounded(t *testing.T) {
	var seen picture.Observed
	for n := range 1000 {
		seen.Observe(engine.Committed{Writes: []engine.Write{
			{Plugin: "p", Hook: "p/step_end/0", Key: "calls", Entry: fmt.Sprint(n), Op: "put"},
			{Plugin: "p", Hook: "p/step_end/0", Key: "calls", Entry: "again", Op: "put"},
			{Plugin: "engine", Key: "calls", Entry: "x", Op: "put"},
		}})
	}
	seen.Observe(engine.Committed{Round: 1, Writes: []engine.Write{{Plugin: "p", Hook: "an action", Key: "calls"}}})
	seen.Observe(engine.Conflict{Header: engine.Header{Phase: phase.StepEnd}, Round: 2, Key: "calls", Hook: "an action", Loser: "p", Winner: "q"})
	all := slices.Collect(seen.Hooks())
	require.Len(t, all, 1)
	require.Equal(t, 1000, all[0].Writes[0].Commits)
	require.Len(t, all[0].Writes[0].Entries, 100)
	require.True(t, all[0].Writes[0].Whole)
	all[0].Writes[0].Entries[0] = "changed"
	require.NotEqual(t, all, slices.Collect(seen.Hooks()))
	require.Contains(t, picture.Conflicts(manifestOf(t), &seen),
		"observed conflicts of action handlers, tools and others\n  step_end: p lost key calls once\n")
}
