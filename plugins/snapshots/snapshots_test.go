package snapshots_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/snapshots"
	"github.com/ddd26017/fixpoint/store/faultstore"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// Capability G7. What a run does to the workspace can be taken back: a snapshot is
// complete before the tool begins, one for each step that writes and none if nothing
// has changed since the last.
func TestTakenBeforeTools(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		for take, want := range map[string][]string{
			// c2 comes in the step of c1, and what c5 does changes nothing.
			"step": {"s1 run_start 0 ", "s2 before_tool 3 c4", "s3 before_tool 4 c5"},
			"call": {"s1 run_start 0 ", "s2 before_tool 1 c2", "s3 before_tool 3 c4", "s4 before_tool 4 c5"},
		} {
			t.Run(mode+"/"+take, func(t *testing.T) {
				t.Parallel()
				var w *place
				w = newPlace(t, mode, with(&w,
					put("c1", "a", "1").And(put("c2", "b", "1")), enginetest.Call("c3", "look", nil),
					put("c4", "a", "2"), put("c5", "a", "2"), put("c6", "a", "3")))
				w.section(`{"take": "` + take + `"}`)
				res := w.run()
				require.NoError(t, res.Err)
				var got []string
				for _, s := range w.list() {
					got = append(got, fmt.Sprintf("%s %s %d %s", s.ID, s.Why, s.Step, s.Call))
					require.Equal(t, res.Run, s.Run)
					require.Equal(t, mode, s.Store)
				}
				require.Equal(t, want, got)
				require.Equal(t, map[string]string{"a": "file 3", "b": "file 1"}, w.files())
				w.restore(got[1][:2])
				if take == "call" {
					require.Equal(t, map[string]string{"a": "file 1"}, w.files())
				} else {
					require.Equal(t, map[string]string{"a": "file 1", "b": "file 1"}, w.files())
				}
				w.restore("s1")
				require.Empty(t, w.files())
			})
		}
	}
}

// Of tools that run at the same time none begins before the snapshot is there.
func TestParallelTools(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		var w *place
		w = newPlace(t, mode, with(&w, put("c1", "a", "1").And(put("c2", "b", "1")).And(put("c3", "c", "1"))))
		w.put("a", "0")
		w.spec.ToolExecution = engine.ToolsParallel
		w.section(`{"take": "call"}`)
		require.NoError(t, w.run().Err)
		require.Len(t, w.list(), 1, "it is that of the run's start")
		w.restore("s1")
		require.Equal(t, map[string]string{"a": "file 0"}, w.files())
	}
}

// A snapshot that cannot be taken is told, and if it is required the tool does not run.
func TestCannotBeTaken(t *testing.T) {
	t.Parallel()
	for _, required := range []bool{false, true} {
		var w *place
		w = newPlace(t, "copies", func(o *snapshots.Options, c *engine.Config) {
			with(&w, put("c1", "c", "1"))(o, c)
			o.Limits.Files = 2
		})
		w.put("a", "0")
		w.put("b", "0")
		w.put("d", "0")
		w.section(fmt.Sprintf(`{"required": %v}`, required))
		res := w.run()
		require.Empty(t, w.list())
		if required {
			require.Equal(t, snapshots.ReasonFailed, res.Reason)
			require.Contains(t, res.Detail, "the limits are 2 files")
			require.NoFileExists(t, filepath.Join(w.dir, "c"))
			continue
		}
		require.Equal(t, phase.ReasonNatural, res.Reason)
		require.FileExists(t, filepath.Join(w.dir, "c"))
		dead := 0
		for _, d := range w.th.DeadLetters() {
			require.Contains(t, d.Reason, "snapshots: the workspace is too large")
			dead++
		}
		require.Equal(t, 2, dead)
	}
	w := newPlace(t, "git", func(o *snapshots.Options, _ *engine.Config) { o.Limits.Bytes = 4 })
	w.put("a", "12345")
	_, err := w.p.Take(t.Context(), w.th)
	require.ErrorIs(t, err, snapshots.ErrTooLarge)
	w = newPlace(t, "none", func(o *snapshots.Options, _ *engine.Config) { o.Store = "" })
	_, err = w.p.Take(t.Context(), w.th)
	require.ErrorIs(t, err, snapshots.ErrNoStore)
}

// The agent lists, compares and goes back, and can take that back too.
func TestTools(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			var w *place
			w = newPlace(t, mode, with(&w,
				enginetest.Call("l1", "list_snapshots", nil), put("c1", "a", "12").And(put("c2", "b", "1")),
				enginetest.Call("d1", "diff_snapshot", map[string]string{"id": "s1"}),
				enginetest.Call("r1", "restore_snapshot", map[string]string{"id": "s1"}),
				enginetest.Call("d2", "diff_snapshot", map[string]string{"id": "s1", "with": "s2"}),
				enginetest.Call("r2", "restore_snapshot", map[string]string{"id": "s9"}),
				enginetest.Call("r3", "restore_snapshot", map[string]string{"id": "s2"}),
				enginetest.Call("l2", "list_snapshots", nil)))
			w.put("a", "0")
			require.NoError(t, w.run().Err)
			results := map[string]inference.ToolResult{}
			for _, m := range engine.Transcript.Get(w.th.Snapshot()).All() {
				if m.Role == inference.RoleTool {
					results[m.Result.CallID] = m.Result
				}
			}
			require.Contains(t, results["l1"].Content, "s1 ")
			const both = "modified a (1 -> 2 bytes)\nadded b (0 -> 1 bytes)"
			require.Equal(t, both, results["d1"].Content)
			require.Equal(t, both, results["d2"].Content)
			require.Equal(t, "The workspace is as in snapshot s1. Snapshot s2 is what it was before.\nmodified a (2 -> 1 bytes)\ndeleted b (1 -> 0 bytes)", results["r1"].Content)
			require.True(t, results["r2"].IsError)
			require.Contains(t, results["r2"].Content, `no such snapshot "s9": there are s1 to s3`)
			require.Contains(t, results["r3"].Content, "Snapshot s3 is")
			require.Equal(t, 3, strings.Count(results["l2"].Content, "\n")+1, results["l2"].Content)
			require.Equal(t, map[string]string{"a": "file 12", "b": "file 1"}, w.files())
		})
	}
}

// Capability A18. Wherever a process ends, each snapshot that the thread knows can be
// restored, and one that it does not know is in nobody's way.
func TestCrash(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		resumed, every := 0, 1
		if mode == "git" { // which takes its time
			every = 3
		}
		for n := 1; ; n += every {
			inner := memstore.New(memstore.Options{})
			broken, err := faultstore.New(inner, faultstore.Config{At: map[int]faultstore.Fault{n: faultstore.Crash}})
			require.NoError(t, err)
			var w *place
			build := func(j engine.Journal) func(*snapshots.Options, *engine.Config) {
				return func(o *snapshots.Options, c *engine.Config) {
					with(&w, put("c1", "a", "1"), put("c2", "a", "2"))(o, c)
					c.Journal, c.NewID = j, nil
				}
			}
			w = newPlace(t, mode, build(broken))
			w.put("a", "0")
			w.section(`{"take": "call"}`)
			first := w.run()
			if broken.Counts().Faults[faultstore.Crash] == 0 {
				require.NoError(t, first.Err)
				break
			}
			again := w
			w = newPlace(t, mode, build(inner))
			w.dir, w.p = again.dir, again.p // whose store is where the snapshots are
			w.th, err = w.eng.OpenThread(t.Context(), "t")
			require.NoError(t, err)
			if s := phase.RunLifecycle.Get(w.th.Snapshot()).Status; s == phase.Running {
				resumed++
			}
			for _, s := range w.list() {
				w.restore(s.ID)
				text := map[int]string{0: "0", 1: "0", 2: "1"}[s.Step]
				if s.Why != snapshots.BeforeBack {
					require.Equal(t, map[string]string{"a": "file " + text}, w.files(), "crash at append %d, %s", n, s.ID)
				}
			}
			_, err = w.p.Prune(t.Context(), w.th, 10)
			require.NoError(t, err)
		}
		require.Greater(t, resumed, 5, "the process has to end in many places")
	}
}

// Takes and restorings by several threads do not get into each other's way.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		w := newPlace(t, mode, nil)
		w.put("a", "0")
		w.take()
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			wg.Go(func() {
				th, err := w.eng.NewThread(fmt.Sprintf("Other %d", i))
				for n := 0; n < 4 && err == nil; n++ {
					err = os.WriteFile(filepath.Join(w.dir, fmt.Sprint(i)), []byte(fmt.Sprint(n)), 0o644)
					if err == nil {
						_, err = w.p.Take(t.Context(), th)
					}
					if err == nil && i%2 == 0 {
						_, err = w.p.Take(t.Context(), w.th)
					}
				}
				errs[i] = err
			})
		}
		wg.Wait()
		require.NoError(t, errors.Join(errs...))
		w.restore("s1")
		require.Equal(t, map[string]string{"a": "file 0"}, w.files())
	}
}

// The same run gives the same snapshots, trees and events.
func TestDeterministic(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		enginetest.CheckDeterminism(t, 4, func(enginetest.Shuffle) []string {
			var w *place
			w = newPlace(t, mode, with(&w, put("c1", "a", "1").And(put("c2", "b", "1")), put("c3", "a", "2")))
			require.NoError(t, w.run().Err)
			for _, s := range w.list() {
				w.rec.Observe(engine.Warning{Message: fmt.Sprint(s)})
			}
			return w.rec.Lines()
		})
	}
}

func TestFaultySettings(t *testing.T) {
	t.Parallel()
	w := newPlace(t, "git", nil)
	for _, s := range []string{`{"take": "never"}`, `{"kinds": [""]}`, `{"keep": 0}`, `{"keeps": 1}`} {
		w.section(s)
		require.ErrorIs(t, w.eng.Check(w.spec), engine.ErrSpec, s)
	}
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	for name, o := range map[string]snapshots.Options{
		"Exclude has": {Dir: dir, Exclude: []string{"["}},
		"negative":    {Dir: dir, Limits: snapshots.Limits{Files: -1}},
		"is in Dir":   {Dir: dir, Store: filepath.Join(link, "deep", "store")},
	} {
		config, _ := enginetest.Config(t, snapshots.New(o))
		_, err := engine.New(config)
		require.ErrorContains(t, err, name)
		_, err = snapshots.New(o).Take(t.Context(), w.th)
		require.ErrorContains(t, err, name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := w.p.Take(ctx, w.th)
	require.ErrorIs(t, err, context.Canceled)
}
