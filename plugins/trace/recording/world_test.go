package recording_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/trace/recording"
	"github.com/ddd26017/fixpoint/state"
)

// The keys of the tests, one of each kind.
var (
	board = state.NewCell("board", state.Options[string]{})
	total = state.NewCounter("total", state.Options[int64]{Scope: state.ScopeThread})
	doors = state.NewTable[string]("doors", state.Options[string]{Scope: state.ScopeThread})
	rooms = state.NewTable[int]("rooms", state.Options[string]{})
	tags  = state.NewSet[string]("tags", state.Options[string]{Scope: state.ScopeThread})
	notes = state.NewLog("notes", state.Options[string]{Scope: state.ScopeThread})
	dream = state.NewCell("dream", state.Options[string]{Transient: true})

	tidy     = phase.NewAction[string]("tidy", phase.StepStart)
	safeTidy = phase.NewAction[string]("tidy", phase.StepStart).ReplaySafe()
	mail     = effects.NewSpec[string]("mail")
)

func keys() engine.Plugin {
	return engine.NewPlugin("keys", func(r *engine.Registrar) error {
		r.Key(board, total, doors, rooms, tags, notes, dream)
		return nil
	})
}

type hookFunc func(pc *phase.Context, cmd *phase.Command) error

func (fn hookFunc) Run(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	err = fn(pc, &cmd)
	return cmd, err
}

// hook is a plugin of one hook.
func hook(name string, p phase.Phase, fn hookFunc, opts ...engine.HookOption) engine.Plugin {
	return engine.NewPlugin(name, func(r *engine.Registrar) error {
		r.Hook(p, fn, opts...)
		return nil
	})
}

// dumps keeps the exported state after each commit, by thread and revision.
type dumps struct {
	mu sync.Mutex
	of map[string]map[uint64]state.Dump
}

func (d *dumps) Observe(e engine.Event) {
	c, ok := e.(engine.Committed)
	if !ok {
		return
	}
	dump, err := c.After.Export()
	if err != nil {
		panic(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of == nil {
		d.of = map[string]map[uint64]state.Dump{}
	}
	if d.of[c.Thread] == nil {
		d.of[c.Thread] = map[uint64]state.Dump{}
	}
	d.of[c.Thread][c.Revision] = dump
}

// world is an engine whose runs are recorded.
type world struct {
	t      testing.TB
	rec    *recording.Recording
	dumps  *dumps
	engine *engine.Engine
	events *enginetest.Recorder
	tools  []engine.Tool
}

func newWorld(t testing.TB, configure func(*engine.Config), plugins ...engine.Plugin) *world {
	w := &world{t: t, rec: recording.New("test"), dumps: &dumps{}}
	c, events := enginetest.Config(t, append([]engine.Plugin{keys()}, plugins...)...)
	c.Observers = append(c.Observers, w.rec, w.dumps)
	c.Model = enginetest.NewScript(enginetest.Say("done"))
	if configure != nil {
		configure(&c)
	}
	w.events = events
	w.engine = enginetest.Engine(t, c)
	return w
}

func script(answers ...enginetest.Answer) func(*engine.Config) {
	return func(c *engine.Config) { c.Model = enginetest.NewScript(answers...) }
}

func (w *world) run(in engine.Input) *engine.Result {
	w.t.Helper()
	in.Tools = append(in.Tools, w.tools...)
	res, err := w.engine.Run(w.t.Context(), engine.AgentSpec{ID: "agent"}, in)
	require.NoError(w.t, err)
	return res
}

// explain returns the text of an explanation.
func (w *world) explain(q recording.Query) string {
	w.t.Helper()
	x, err := w.rec.Explain(q)
	require.NoError(w.t, err)
	return x.String()
}

func (w *world) why(call string) string {
	w.t.Helper()
	ds, err := w.rec.Why(call)
	require.NoError(w.t, err)
	require.Len(w.t, ds, 1)
	return ds[0].String()
}

// plain is a key's state as an export has it: tables as objects, sets as objects of true.
func plain(t testing.TB, k recording.KeyState) any {
	t.Helper()
	if k.Entries == nil {
		return decoded(t, []byte(k.Value.JSON))
	}
	out := map[string]any{}
	for name, v := range k.Entries {
		out[name] = decoded(t, []byte(v.JSON))
	}
	return out
}

func decoded(t testing.TB, raw []byte) (v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(raw, &v), "%s", raw)
	return v
}

// exported is the same of an export.
func exported(t testing.TB, e state.DumpEntry, entries bool) any {
	t.Helper()
	if !entries {
		return decoded(t, e.Raw)
	}
	var list []json.RawMessage
	require.NoError(t, json.Unmarshal(e.Raw, &list))
	out := map[string]any{}
	for _, one := range list {
		var pair []json.RawMessage
		if json.Unmarshal(one, &pair) == nil {
			out[strings.Trim(string(pair[0]), `"`)] = decoded(t, pair[1])
		} else {
			out[strings.Trim(string(one), `"`)] = true
		}
	}
	return out
}

// checkState compares every state that the recording puts together with the real one.
func checkState(t testing.TB, rec *recording.Recording, d *dumps) {
	t.Helper()
	for thread, revs := range d.of {
		for rev, dump := range revs {
			s, err := rec.State(recording.Query{Thread: thread, Revision: rev})
			require.NoError(t, err)
			require.Empty(t, s.Untold)
			want, got := map[string]any{}, map[string]any{}
			for key, k := range s.Keys {
				got[key] = plain(t, k)
			}
			for _, e := range dump.Entries {
				want[e.Name] = exported(t, e, s.Keys[e.Name].Entries != nil)
			}
			require.Equal(t, want, got, "revision %d", rev)
		}
	}
}

func nothing(context.Context, *state.Snapshot, string) error { return nil }

func toolSpec(name string) inference.ToolSpec { return inference.ToolSpec{Name: name} }
