package trace_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/trace"
	"github.com/ddd26017/fixpoint/state"
)

// engineCommits makes the events of commits of the keys that the engine writes in each
// step, among which there is one of a plugin's now and then.
func (c *chance) engineCommits(n int) (events []engine.Event) {
	own := state.NewCell("own", state.Options[int]{})
	store, err := state.NewStore(state.Config{Keys: []state.AnyKey{phase.RunLifecycle, engine.ToolCalls, engine.Transcript, engine.Usage, own}})
	require.NoError(c.t, err)
	id := func() string { return pick(c, []string{"c0", "c1", "c2"}, "", "token", "<c>", "\u2028", "a\"b") }
	call := func() engine.CallState {
		s := random[engine.CallState](c)
		s.Status = engine.CallNew // which each may become
		if c.IntN(4) > 0 {
			s.Ticket, s.Tickets, s.Answers = gate.Ticket{}, 0, nil
		}
		return s
	}
	updates := []func() state.Update{
		func() state.Update {
			return phase.RunLifecycle.With(phase.LifecycleUpdate{Step: c.IntN(3), Answered: c.IntN(3), Detail: c.text(), End: phase.Reason(c.text())})
		},
		func() state.Update {
			return phase.RunLifecycle.With(phase.LifecycleUpdate{Run: c.text(), Continue: c.text(), Granted: c.IntN(2) == 0})
		},
		func() state.Update { return engine.ToolCalls.Put(id(), call()) },
		func() state.Update { return engine.ToolCalls.Put(id(), call()) },
		func() state.Update { return engine.ToolCalls.Delete(id()) },
		func() state.Update { return engine.Transcript.Append(random[inference.Message](c)) },
		func() state.Update {
			return engine.Transcript.Append(random[inference.Message](c), random[inference.Message](c))
		},
		func() state.Update { return engine.Usage.With(random[inference.Usage](c)) },
		func() state.Update { return engine.Usage.With(inference.Usage{}) },
		func() state.Update {
			resets := []state.Update{engine.Transcript.Reset(), engine.ToolCalls.Reset(), phase.RunLifecycle.Reset(), own.With(7)}
			return resets[c.IntN(len(resets))]
		},
	}
	for len(events) < n {
		var batches []state.Batch
		e := engine.Committed{Header: random[engine.Header](c), Writes: []engine.Write{}}
		for range 1 + c.IntN(4) {
			u := updates[c.IntN(len(updates)-c.IntN(2))]()
			batches = append(batches, state.Batch{Owner: fmt.Sprint("p", len(batches)), Updates: []state.Update{u}})
			entry, _ := u.Entry().(string)
			e.Writes = append(e.Writes, engine.Write{Plugin: batches[len(batches)-1].Owner, Key: u.Key().Name(), Entry: entry, Op: u.Op(), Update: u})
		}
		res, err := store.Commit(batches...)
		if err != nil || len(res.Rejected) > 0 || !res.Committed {
			continue // of a value that cannot be, or two that want an entry
		}
		e.Before, e.After = res.Before, res.Snapshot
		events = append(events, e)
	}
	return events
}

// What a commit changed is the same if it is told by the writes and by state.DeltaOf.
func TestChangesOfUsualCommits(t *testing.T) {
	for name, rules := range map[string]trace.Rules{
		"default": {}, "bare": {Bare: true}, "members": {Bare: true, Members: []string{"content"}}, "keys": {Keys: []string{"fixpoint.t*"}},
		"entries": {Members: []string{"c1"}}, "all": {Keys: []string{"*"}}, "secrets": {Secrets: []string{"hunter22"}},
	} {
		t.Run(name, func(t *testing.T) {
			parts, usual := map[string]int{}, 0
			for seed := range uint64(6) {
				c := &chance{Rand: rand.New(rand.NewPCG(seed, 3)), t: t, odd: seed%3 > 1}
				events := c.engineCommits(60)
				trace.Encoded(rules, events, func(_ engine.Event, quick, slow []byte, err error, _, _ bool) {
					require.NoError(t, err)
					require.Equal(t, string(slow), string(quick))
					for _, part := range []string{"append", "entries", "reset"} {
						parts[part] += strings.Count(string(quick), `,"part":"`+part+`"`)
					}
				})
				usual += trace.Usual(rules, events)
			}
			for _, part := range []string{"append", "entries", "reset"} {
				require.Greater(t, parts[part], 10, "%q", part)
			}
			require.Equal(t, name == "members" || name == "all", usual == 0)
		})
	}
}
