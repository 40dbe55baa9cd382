package inspect_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/inspect"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/trace"
	"github.com/ddd26017/fixpoint/plugins/trace/recording"
	"github.com/ddd26017/fixpoint/state"
	"github.com/ddd26017/fixpoint/store"
)

// shop has the story happen on threads of a store, as the command does.
type shop struct {
	t      *testing.T
	folder string
	store  *kept.Store
}

func newShop(t *testing.T) *shop {
	s := &shop{t: t, folder: filepath.Join(t.TempDir(), "store")}
	s.open()
	t.Cleanup(func() { _ = s.store.Close() })
	return s
}

func (s *shop) open() {
	var err error
	s.store, err = kept.Create(s.folder)
	require.NoError(s.t, err)
}

// run has the next run of a thread happen, with a trace if it has a name.
func (s *shop) run(thread string, n, steps int, file string, more ...engine.Plugin) {
	s.t.Helper()
	config := story(s.t, steps)
	config.Journal = s.store.Journal
	config.Plugins = append(append(config.Plugins, kept.Plugin()), more...)
	if file != "" {
		out, err := os.Create(file)
		require.NoError(s.t, err)
		tr := trace.New(trace.Options{Lines: out})
		config.Observers = append(config.Observers, tr)
		defer func() {
			require.NoError(s.t, tr.Close(s.t.Context()))
			require.NoError(s.t, out.Close())
		}()
	}
	eng := enginetest.Engine(s.t, config)
	th, err := eng.OpenThread(s.t.Context(), thread)
	require.NoError(s.t, err)
	var cmd phase.Command
	id := kept.RunID(thread, n)
	cmd.Update(kept.Key.With(kept.Record{Run: id, Runs: n, Agent: "actor", Trace: file, Prompt: "run " + id}))
	_, err = th.Submit(s.t.Context(), kept.Name, cmd)
	require.NoError(s.t, err)
	in := engine.Prompt("run " + id)
	in.RunID = id
	_, err = th.Run(s.t.Context(), engine.AgentSpec{ID: "actor", MaxRounds: steps}, in)
	require.NoError(s.t, err)
	require.NoError(s.t, eng.Close(s.t.Context()))
}

// check compares the state at each revision with that of the journal.
func (s *shop) check(rec *recording.Recording, thread string) {
	s.t.Helper()
	th, err := s.store.Open(s.t.Context(), thread)
	require.NoError(s.t, err)
	seen := 0
	for r, err := range th.History(s.t.Context()) {
		require.NoError(s.t, err)
		past, err := th.Past(s.t.Context(), r.Revision)
		require.NoError(s.t, err)
		want, err := past.Export()
		require.NoError(s.t, err)
		got, err := rec.State(recording.Query{Thread: thread, Revision: r.Revision})
		require.NoError(s.t, err)
		require.Equal(s.t, r.Revision, got.Revision)
		for _, e := range want.Entries {
			k, ok := got.Keys[e.Name]
			require.True(s.t, ok, "%s at %d", e.Name, r.Revision)
			if k.Entries == nil {
				require.JSONEq(s.t, string(e.Raw), string(k.Value.JSON), "%s at %d", e.Name, r.Revision)
			} else {
				require.Equal(s.t, strings.Count(string(e.Raw), `"index":`), len(k.Entries), "%s at %d", e.Name, r.Revision)
			}
		}
		for name, k := range got.Keys {
			if k.Value.Set || len(k.Entries) > 0 {
				require.True(s.t, slices.ContainsFunc(want.Entries, func(e state.DumpEntry) bool { return e.Name == name }), "%s at %d", name, r.Revision)
			}
		}
		seen++
	}
	require.Greater(s.t, seen, 10)
}

func (s *shop) read() *recording.Recording {
	s.t.Helper()
	rec, err := inspect.ReadStore(s.t.Context(), s.folder)
	require.NoError(s.t, err)
	return rec
}

func runs(v recording.View) (ids []string) {
	for _, r := range v.Runs {
		if r.Detail != "outside a run" {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// Capability B4. A store tells the state at every revision, the runs with their steps
// and calls, and says what it does not know; also while a process has it open.
func TestStore(t *testing.T) {
	s := newShop(t)
	s.run("a", 1, 3, "")
	s.run("b", 1, 2, "")
	s.run("a", 2, 4, "")
	rec := s.read()
	v := rec.View()
	require.Equal(t, []string{"a.run-1", "a.run-2", "b.run-1"}, runs(v))
	require.Equal(t, []string{inspect.JournalLimits}, v.Notes)
	for _, r := range v.Runs {
		if r.Detail == "outside a run" {
			continue
		}
		require.Equal(t, "done", r.Status)
		require.Equal(t, "natural", r.Reason)
		require.Equal(t, "run "+r.ID, r.Input)
		require.Equal(t, "actor", r.Agent)
	}
	require.Len(t, v.Calls, 2+1+3)
	for _, c := range v.Calls {
		require.Equal(t, "blocked", c.Outcome)
		require.Contains(t, c.Result, "no knocking")
	}
	s.check(rec, "a")
	s.check(rec, "b")
	x, err := rec.Explain(recording.Query{Thread: "a", Key: board.Name()})
	require.NoError(t, err)
	require.Contains(t, x.String(), "was not told", "the store does not know who")
	files, err := os.ReadDir(s.folder)
	require.NoError(t, err)
	for _, f := range files {
		require.Contains(t, []string{".gitignore", "fixpoint.db"}, f.Name(), "nothing is left in the store")
	}
}

// A run that has a trace is told by it, what came before and after it by the journal.
func TestStoreWithTraces(t *testing.T) {
	s := newShop(t)
	file := filepath.Join(t.TempDir(), "trace")
	s.run("a", 1, 2, "")
	s.run("a", 2, 2, file)
	s.run("a", 3, 2, "")
	s.run("a", 4, 2, filepath.Join(t.TempDir(), "gone"))
	rec := s.read()
	v := rec.View()
	require.Equal(t, []string{"a.run-1", "a.run-2", "a.run-3", "a.run-4"}, runs(v))
	hooks := map[string]int{}
	for _, x := range v.Spans {
		if x.Kind == recording.KindHook {
			hooks[x.Run]++
		}
	}
	require.Equal(t, map[string]int{"a.run-2": 6, "a.run-4": 6}, hooks, "two in each step, and a retry")
	revisions := map[uint64]int{}
	for _, c := range v.Commits {
		revisions[c.Rev]++
	}
	for rev, n := range revisions {
		require.Equal(t, 1, n, "revision %d is told once", rev)
	}
	s.check(rec, "a")

	// A trace that stops short is completed by the journal.
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, text[:len(text)/2], 0o600))
	rec = s.read()
	require.Equal(t, []string{"a.run-1", "a.run-2", "a.run-3", "a.run-4"}, runs(rec.View()))
	s.check(rec, "a")
}

// What is added to a store is shown, and what is taken from it is not shown any more.
func TestFollowStore(t *testing.T) {
	s := newShop(t)
	s.run("a", 1, 2, "")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f := &following{t: t, source: inspect.NewSource(recording.New("x")), cancel: cancel, ended: make(chan error, 1)}
	caught := make(chan struct{})
	go func() {
		f.ended <- inspect.FollowStoreAt(ctx, s.folder, f.source, func() { close(caught) }, time.Millisecond)
	}()
	<-caught
	first := f.source.Recording()
	require.Equal(t, []string{"a.run-1"}, runs(first.View()))
	require.True(t, first.View().Live)

	s.run("b", 1, 3, "")
	s.run("a", 2, 3, "")
	f.until(func(v recording.View) bool {
		return len(runs(v)) == 3 && !slices.ContainsFunc(v.Runs, func(r recording.Run) bool { return r.Status != "done" })
	})
	require.Same(t, first, f.source.Recording(), "pages are sent what is new")
	s.check(first, "a")
	s.check(first, "b")

	require.NoError(t, s.store.Delete(t.Context(), "b"))
	f.until(func(v recording.View) bool { return len(runs(v)) == 2 })
	// What was dropped of the past is still true.
	require.NoError(t, s.store.Journal.Prune(t.Context(), "a", store.PrunePolicy{KeepSnapshots: 1}))
	s.run("a", 3, 3, "")
	f.until(func(v recording.View) bool { return len(runs(v)) == 3 && v.Runs[len(v.Runs)-1].Status == "done" })
	s.check(f.source.Recording(), "a")
	f.stop()
}

// A store that is written all the time is read whole, never torn.
func TestStoreThatChanges(t *testing.T) {
	s := newShop(t)
	s.run("a", 1, 2, "")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := range 3 {
			s.run("a", n+2, 2, "")
		}
	}()
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		rec := s.read()
		last := uint64(0)
		for _, c := range rec.View().Commits {
			require.Greater(t, c.Rev, last)
			last = c.Rev
		}
	}
	rec := s.read()
	require.Len(t, runs(rec.View()), 4)
	s.check(rec, "a")
}

var letter = effects.NewSpec[string]("story.letter", effects.Durable())

// Effects that were committed and not delivered are shown as such.
func TestStoreOutbox(t *testing.T) {
	s := newShop(t)
	s.run("a", 1, 2, "", engine.NewPlugin("post", func(r *engine.Registrar) error {
		r.Effect(letter.Handle(func(context.Context, *state.Snapshot, string) error { return errors.New("no stamps") }))
		r.Hook(phase.RunEnd, phase.HookFunc(func(context.Context, *phase.Context) (phase.Command, error) {
			var c phase.Command
			c.Emit(letter.New("dear"))
			return c, nil
		}))
		return nil
	}))
	v := s.read().View()
	require.Len(t, v.Effects, 1)
	require.Equal(t, "story.letter", v.Effects[0].Effect)
	require.Equal(t, "post", v.Effects[0].Plugin)
	require.Contains(t, v.Effects[0].Error, "not delivered yet")
	// Looking did not take it from who delivers it.
	require.Len(t, s.read().View().Effects, 1)
}

func TestNoStore(t *testing.T) {
	folder := t.TempDir()
	_, err := inspect.ReadStore(t.Context(), folder)
	require.ErrorIs(t, err, kept.ErrNoStore)
	require.NoError(t, os.WriteFile(kept.File(folder), []byte("not a store"), 0o600))
	_, err = inspect.ReadStore(t.Context(), folder)
	require.ErrorIs(t, err, engine.ErrCorrupt)
	require.ErrorContains(t, err, "fixpoint verify")
}
