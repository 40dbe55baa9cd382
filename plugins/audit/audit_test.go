package audit_test

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/audit"
	"github.com/ddd26017/fixpoint/state"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// entries reads an audit file.
func entries(t *testing.T, file string) []map[string]any {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(string(text), "\n"))
	var out []map[string]any
	for line := range strings.Lines(string(text)) {
		var e map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		out = append(out, e)
	}
	return out
}

func guarded() engine.Plugin {
	return engine.NewPlugin("guarded", func(r *engine.Registrar) error {
		r.Tool(engine.NewTool(inference.ToolSpec{Name: "fine"}, func(context.Context, *phase.Context, struct{}) (engine.Output, error) {
			return engine.Text("secret"), nil
		}))
		r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			if pc.Call().ID == "no" {
				return gate.Block("never"), nil
			}
			return gate.Approve(), nil
		}))
		return nil
	})
}

func script() *enginetest.Script {
	return enginetest.NewScript(
		enginetest.Call("yes", "fine", nil).And(enginetest.Call("no", "fine", nil)).Costing(inference.Usage{InputTokens: 5, OutputTokens: 2}),
		enginetest.Say("done"))
}

// Every call has its line, whatever became of it, and so has the end of the run.
func TestEntries(t *testing.T) {
	dir := t.TempDir()
	p := audit.New(audit.Options{Dir: dir, Now: enginetest.NewClock(time.Unix(0, 0)).Now})
	config, _ := enginetest.Config(t, p, guarded())
	config.Model = script()
	eng, err := engine.New(config)
	require.NoError(t, err)
	spec := engine.AgentSpec{ID: "a", Sections: map[string]inference.JSON{"audit": `{"path": "deep/log.jsonl"}`}}
	for range 2 {
		res, err := eng.Run(t.Context(), spec, engine.Prompt("go"))
		require.NoError(t, err)
		require.NoError(t, res.Err)
		require.Equal(t, 3, res.Stats.EffectsDelivered)
	}
	require.NoError(t, eng.Close(t.Context()))

	got := entries(t, filepath.Join(dir, "deep", "log.jsonl"))
	require.Len(t, got, 6, "the second run appends")
	ids := map[any]bool{}
	for _, e := range got {
		ids[e["id"]] = true
		require.NotContains(t, e, "content")
	}
	require.Len(t, ids, 6)
	require.Equal(t, "1970-01-01T00:00:00Z", got[0]["time"])
	require.Equal(t, []any{"tool", "yes", "ok", 6.0}, []any{got[0]["event"], got[0]["call"], got[0]["outcome"], got[0]["size"]})
	require.Equal(t, []any{"tool", "no", "blocked"}, []any{got[1]["event"], got[1]["call"], got[1]["outcome"]})
	require.Equal(t, got[0]["fingerprint"], got[1]["fingerprint"])
	require.Equal(t, []any{"run_end", "natural", 7.0}, []any{got[2]["event"], got[2]["reason"], got[2]["tokens"]})
	if runtime.GOOS != "windows" { // which has no such modes
		info, err := os.Stat(filepath.Join(dir, "deep", "log.jsonl"))
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o077, "nobody else reads it")
	}
}

// Capability A2. The effect of a plugin that the filter leaves out still serves
// others, with the default file.
func TestInactivePluginStillWrites(t *testing.T) {
	dir := t.TempDir()
	p := audit.New(audit.Options{Dir: dir})
	other := engine.NewPlugin("other", func(r *engine.Registrar) error {
		r.Hook(phase.RunStart, phase.HookFunc(func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			cmd.Emit(audit.Record.New(audit.Entry{Event: "hello"}))
			return cmd, nil
		}))
		return nil
	})
	config, _ := enginetest.Config(t, p, other)
	config.Model = enginetest.NewScript(enginetest.Say("done"))
	eng, err := engine.New(config)
	require.NoError(t, err)
	_, err = eng.Run(t.Context(), engine.AgentSpec{ID: "a", ActiveHookFilter: []string{"other"}}, engine.Prompt("go"))
	require.NoError(t, err)
	require.NoError(t, eng.Close(t.Context()))
	got := entries(t, filepath.Join(dir, audit.DefaultPath))
	require.Len(t, got, 1)
	require.Equal(t, "hello", got[0]["event"])
}

// Capability A8. An audit that cannot be written is told and stops nothing.
func TestFailureStopsNothing(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, dir string, p *audit.Plugin){
		"no directory": func(t *testing.T, dir string, _ *audit.Plugin) { require.NoError(t, os.Remove(dir)) },
		"in the way": func(t *testing.T, dir string, _ *audit.Plugin) {
			require.NoError(t, os.Mkdir(filepath.Join(dir, audit.DefaultPath), 0o755))
		},
		"closed": func(t *testing.T, _ string, p *audit.Plugin) { require.NoError(t, p.Close(t.Context())) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "d")
			require.NoError(t, os.Mkdir(dir, 0o755))
			p := audit.New(audit.Options{Dir: dir})
			prepare(t, dir, p)
			config, rec := enginetest.Config(t, p, guarded())
			config.Model = script()
			eng, err := engine.New(config)
			require.NoError(t, err)
			res, err := eng.Run(t.Context(), engine.AgentSpec{ID: "a"}, engine.Prompt("go"))
			require.NoError(t, err)
			require.Equal(t, phase.ReasonNatural, res.Reason)
			require.Equal(t, 3, res.Stats.EffectsFailed)
			for _, e := range enginetest.Select[engine.EffectFinished](rec.Events()) {
				require.Contains(t, e.Error, "audit: ")
			}
			require.NoError(t, p.Close(t.Context()))
			require.NoError(t, p.Close(t.Context()), "closing twice is fine")
		})
	}
}

// Capability B7. What could not be written is written by a later process, with the ids
// that it had, and only that.
func TestNoEntryIsLost(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	journal := memstore.New(memstore.Options{})
	build := func() (*engine.Engine, *enginetest.Recorder, *audit.Plugin) {
		p := audit.New(audit.Options{Dir: dir, Sync: true})
		config, rec := enginetest.Config(t, p, guarded())
		config.Model, config.Journal = script(), journal
		eng, err := engine.New(config)
		require.NoError(t, err)
		return eng, rec, p
	}
	first, rec, p := build()
	th, err := first.NewThread("t")
	require.NoError(t, err)
	res, err := th.Run(t.Context(), engine.AgentSpec{ID: "a"}, engine.Prompt("go"))
	require.NoError(t, err)
	require.Equal(t, 3, res.Stats.EffectsFailed, "there is no directory")
	require.NoError(t, p.Close(t.Context()))
	want := map[any]bool{}
	for _, e := range enginetest.Select[engine.EffectFinished](rec.Events()) {
		want[e.ID.String()] = true
	}
	require.Len(t, want, 3)

	require.NoError(t, os.Mkdir(dir, 0o755))
	second, _, _ := build()
	rep, err := second.DeliverOutbox(t.Context())
	require.NoError(t, err)
	require.Equal(t, engine.OutboxReport{Delivered: 3}, rep)
	rep, err = second.DeliverOutbox(t.Context())
	require.NoError(t, err)
	require.Zero(t, rep)
	th, err = second.OpenThread(t.Context(), "t")
	require.NoError(t, err)
	_, err = th.Run(t.Context(), engine.AgentSpec{ID: "a"}, engine.Prompt("again"))
	require.NoError(t, err)
	rep, err = second.DeliverOutbox(t.Context())
	require.NoError(t, err)
	require.Zero(t, rep, "what the run delivered is settled")
	require.NoError(t, second.Close(t.Context()))
	got := map[any]bool{}
	for _, e := range entries(t, filepath.Join(dir, audit.DefaultPath)) {
		require.False(t, got[e["id"]], "%v is there twice", e["id"])
		got[e["id"]] = true
	}
	require.Len(t, got, 4)
	for id := range want {
		require.True(t, got[id], id)
	}
}

// Each thread has its entries where it works.
func TestDirOf(t *testing.T) {
	home := state.NewCell("home", state.Options[string]{Scope: state.ScopeThread})
	dirs := map[string]string{"a": t.TempDir(), "b": t.TempDir(), "c": ""}
	usual := t.TempDir()
	p := audit.New(audit.Options{Dir: usual, DirOf: home.Get})
	config, _ := enginetest.Config(t, p, guarded(), engine.NewPlugin("home", func(r *engine.Registrar) error { r.Key(home); return nil }))
	config.Model = enginetest.NewScript(enginetest.Say("1"), enginetest.Say("2"), enginetest.Say("3"))
	eng, err := engine.New(config)
	require.NoError(t, err)
	for id, dir := range dirs {
		th, err := eng.NewThread(id)
		require.NoError(t, err)
		var cmd phase.Command
		cmd.Update(home.With(dir))
		_, err = th.Submit(t.Context(), "home", cmd)
		require.NoError(t, err)
		_, err = th.Run(t.Context(), engine.AgentSpec{ID: "a"}, engine.Prompt("go"))
		require.NoError(t, err)
	}
	require.NoError(t, eng.Close(t.Context()))
	for id, dir := range dirs {
		got := entries(t, filepath.Join(cmp.Or(dir, usual), audit.DefaultPath))
		require.Len(t, got, 1)
		require.Equal(t, id, got[0]["thread"])
	}
}

func TestFaultySettings(t *testing.T) {
	config, _ := enginetest.Config(t, audit.New(audit.Options{Dir: t.TempDir()}))
	eng, err := engine.New(config)
	require.NoError(t, err)
	for _, path := range []string{"../out", "/etc/x", ".", "a//b"} {
		spec := engine.AgentSpec{ID: "a", Sections: map[string]inference.JSON{"audit": inference.JSON(`{"path": "` + path + `"}`)}}
		require.ErrorIs(t, eng.Check(spec), engine.ErrSpec, path)
	}
}
