package recording_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/trace"
	"github.com/ddd26017/fixpoint/plugins/trace/recording"
)

// text is a view as JSON, which must be possible.
func text(t testing.TB, v recording.View) string {
	t.Helper()
	out, err := json.MarshalIndent(v, "", " ")
	require.NoError(t, err)
	return string(out)
}

// fold applies a patch as a page does.
func fold(v *recording.View, p recording.Patch) {
	if p.Live != nil {
		v.Live, v.Dropped, v.Notes = *p.Live, *p.Dropped, p.Notes
	}
	if p.Zero != nil {
		v.Version, v.Source, v.Zero = 1, p.Source, *p.Zero
	}
	v.Runs = replace(v.Runs, p.Runs, func(x recording.Run) string { return x.ID })
	v.Spans = replace(v.Spans, p.Spans, func(x recording.Span) string { return x.ID })
	v.Commits = replace(v.Commits, p.Commits, func(x recording.Commit) string { return x.ID })
	v.Calls = replace(v.Calls, p.Calls, func(x recording.Call) string { return x.ID })
	v.Effects = replace(v.Effects, p.Effects, func(x recording.Effect) string { return x.ID })
}

func replace[T any](have, more []T, id func(T) string) []T {
	for _, m := range more {
		if i := slices.IndexFunc(have, func(h T) bool { return id(h) == id(m) }); i >= 0 {
			have[i] = m
		} else {
			have = append(have, m)
		}
	}
	return have
}

// Capability B4. Patches that are asked for at random moments, by several readers, come
// to the view in the end.
func TestPatchesComeToTheView(t *testing.T) {
	for seed := range uint64(4) {
		w, _ := play(t, seed)
		rng := rand.New(rand.NewPCG(seed, 1))
		rec := recording.New("patched")
		pages := make([]recording.View, 3)
		cursors := make([]uint64, len(pages))
		look := func(i int) {
			p, next := rec.Since(cursors[i])
			if cursors[i] == 0 {
				pages[i] = recording.View{}
			}
			fold(&pages[i], p)
			cursors[i] = next
		}
		for n, e := range w.events.Events() {
			rec.Observe(e)
			if n == 0 {
				for i := range pages {
					look(i)
				}
			}
			if rng.IntN(6) == 0 {
				look(rng.IntN(len(pages)))
			}
			if rng.IntN(50) == 0 {
				rec.Note(fmt.Sprint("note ", n))
			}
		}
		rec.SetLive(true)
		want := text(t, rec.View())
		for i := range pages {
			look(i)
			require.JSONEq(t, want, text(t, pages[i]))
			p, again := rec.Since(cursors[i])
			require.Equal(t, recording.Patch{}, p, "nothing changed")
			require.Equal(t, cursors[i], again)
		}
	}
	p, _ := recording.New("x").Since(99)
	require.NotNil(t, p.Zero, "a cursor of another recording begins anew")
}

// Many may look while events come in.
func TestReadersAtTheSameTime(t *testing.T) {
	w, _ := play(t, 2)
	rec := recording.New("busy")
	var group sync.WaitGroup
	done := make(chan struct{})
	for range 3 {
		group.Go(func() {
			cursor := uint64(0)
			for {
				var p recording.Patch
				p, cursor = rec.Since(cursor)
				_, err := json.Marshal(p)
				require.NoError(t, err)
				_, _ = rec.Explain(recording.Query{Key: "board"})
				_, _ = rec.Why("c1")
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for _, e := range w.events.Events() {
		rec.Observe(e)
	}
	close(done)
	group.Wait()
	require.Equal(t, text(t, w.rec.View()), strings.Replace(text(t, rec.View()), `"source": "busy"`, `"source": "test"`, 1))
}

// The order in which the events of runs that go on at the same time come in makes no
// difference, but for ids and the moment that times count from.
func TestRunsAtTheSameTime(t *testing.T) {
	a, _ := play(t, 3)
	b := newWorld(t, func(c *engine.Config) {
		script(enginetest.Call("c1", "look", nil), enginetest.Say("done"))(c)
		c.NewID = enginetest.NewIDs("other")
	}, hook("a", phase.StepStart, func(_ *phase.Context, cmd *phase.Command) error {
		cmd.Update(board.With("x"), doors.Put("front", "y"))
		return nil
	}))
	b.run(engine.Prompt("look"))
	of := func(order []engine.Event) map[string][]string {
		rec := recording.New("x")
		for _, e := range order {
			rec.Observe(e)
		}
		v := rec.View()
		require.Empty(t, v.Notes)
		out := map[string][]string{}
		for _, c := range v.Commits {
			c.PhaseSpan, c.At = "", 0
			line, err := json.Marshal(c)
			require.NoError(t, err)
			out[c.Run] = append(out[c.Run], string(line))
		}
		for _, s := range v.Spans {
			out[s.Run] = append(out[s.Run], fmt.Sprint(s.Kind, s.Name, s.Status, s.Text, s.Try, s.RevBefore, s.RevAfter, s.Facts, v.Zero.UnixMicro()+int64(s.Start)))
		}
		for _, c := range v.Calls {
			c.Span = ""
			out[c.Run] = append(out[c.Run], fmt.Sprintf("%+v", c))
		}
		return out
	}
	first, second := a.events.Events(), b.events.Events()
	want := of(slices.Concat(first, second))
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var order []engine.Event
		i, j := 0, 0
		for i < len(first) || j < len(second) {
			if j == len(second) || i < len(first) && rng.IntN(len(first)+len(second)) < len(first) {
				order = append(order, first[i])
				i++
			} else {
				order = append(order, second[j])
				j++
			}
		}
		require.Equal(t, want, of(order))
	}
}

// A trace that was written and read gives the same recording as the events themselves,
// also when lines come twice.
func TestTracesAreReadAgain(t *testing.T) {
	var lines bytes.Buffer
	tr := trace.New(trace.Options{Lines: &lines})
	w := newWorld(t, func(c *engine.Config) {
		script(enginetest.Call("c1", "look", nil), enginetest.Say("done"))(c)
		c.Observers = append(c.Observers, tr)
	}, hook("a", phase.StepStart, func(_ *phase.Context, cmd *phase.Command) error {
		cmd.Update(board.With("x"), doors.Put("front", "y"), notes.Append("n"), total.With(1))
		return nil
	}))
	w.tools = []engine.Tool{enginetest.StubTool("look", engine.Text("seen"))}
	w.run(engine.Prompt("look"))
	require.NoError(t, tr.Close(t.Context()))
	read := recording.New("test")
	for range 2 {
		for l, err := range trace.Read(bytes.NewReader(lines.Bytes())) {
			require.NoError(t, err)
			read.Add(l)
		}
	}
	require.Equal(t, text(t, w.rec.View()), text(t, read.View()))
}

// What is hidden or was cut is shown as such.
func TestHiddenAndCutValues(t *testing.T) {
	w := newWorld(t, nil, hook("a", phase.StepStart, func(_ *phase.Context, cmd *phase.Command) error {
		cmd.Update(board.With(strings.Repeat("long ", 30)), doors.Put("front", strings.Repeat("wide ", 30)), doors.Put("back", "y"),
			notes.Append("n", strings.Repeat("tall ", 30)), tags.Add("secret"), rooms.Put(1, "mine"))
		return nil
	}))
	rec := recording.New("hidden")
	w.run(engine.Prompt("go"))
	rules := trace.Rules{Keys: []string{"tags", "rooms"}, MaxValue: 300, MaxElement: 60}
	for _, e := range w.events.Events() {
		rec.Observe(trace.Detailed(e, rules))
	}
	rec.Add(trace.Line{Dropped: 3})
	v := rec.View()
	i := slices.IndexFunc(v.Commits, func(c recording.Commit) bool { return c.Phase == "step_start" })
	changes := map[string]recording.Change{}
	for _, c := range v.Commits[i].Changes {
		changes[c.Key+"/"+c.Entry] = c
	}
	require.True(t, changes["rooms/"].Hidden)
	require.True(t, changes["tags/"].Hidden)
	require.Positive(t, changes["doors/front"].Cut)
	require.Contains(t, string(changes["doors/front"].Value), "wide wide")
	require.Equal(t, inference.JSON(`"y"`), changes["doors/back"].Value)
	require.Contains(t, string(changes["notes/"].Value), "bytes)")
	require.NotContains(t, text(t, v), "mine")
	require.Equal(t, 3, v.Dropped)
	require.Equal(t, []string{"the trace left out 3 events, and does not tell which"}, v.Notes)
	x, err := rec.Explain(recording.Query{Key: "doors", Entry: "front"})
	require.NoError(t, err)
	require.Contains(t, x.String(), "bytes)")
	x, err = rec.Explain(recording.Query{Key: "rooms"})
	require.NoError(t, err)
	require.Contains(t, x.String(), "(hidden)")
}

// With events missing, what is known is told, and what is not: which events, which
// revisions, which retries.
func TestEventsThatAreMissing(t *testing.T) {
	write := func(name string) engine.Plugin {
		return hook(name, phase.StepStart, func(pc *phase.Context, cmd *phase.Command) error {
			cmd.Update(board.With(board.Get(pc.Snapshot()) + name))
			return nil
		})
	}
	w := newWorld(t, nil, write("a"), write("b"), write("c"))
	w.run(engine.Prompt("go"))
	rec := recording.New("gaps")
	retries := 0
	for _, e := range w.events.Events() {
		switch e := e.(type) {
		case engine.Committed:
			if e.Retry {
				if retries++; retries == 1 {
					continue
				}
			}
		case engine.HookFinished, engine.StepFinished, engine.RunFinished:
			continue
		}
		rec.Observe(e)
	}
	rec.Add(trace.Line{Dropped: 9})
	v := rec.View()
	require.Equal(t, 9, v.Dropped)
	var texts []string
	texts = append(texts, strings.Join(v.Notes, "\n"))
	for _, rev := range []uint64{3, 4, 5, 9} {
		x, err := rec.Explain(recording.Query{Key: "board", Revision: rev})
		require.NoError(t, err)
		texts = append(texts, x.String())
	}
	s, err := rec.State(recording.Query{Revision: 9})
	require.NoError(t, err)
	require.Equal(t, []recording.Revisions{{From: 4, To: 4}}, s.Untold)
	for _, q := range []recording.Query{{Key: "bored"}, {Key: "zzz"}, {Key: "board", Entry: "x"}, {Key: "board", Revision: 99}, {Key: "board", Thread: "none"}, {Key: "board", Run: "none"}} {
		_, err := rec.Explain(q)
		require.ErrorIs(t, err, recording.ErrUnknown)
		texts = append(texts, err.Error())
	}
	_, err = recording.New("empty").Explain(recording.Query{Key: "board"})
	require.ErrorIs(t, err, recording.ErrUnknown)
	_, err = rec.Why("c1")
	require.ErrorIs(t, err, recording.ErrUnknown)
	golden(t, append(texts, err.Error())...)
	require.Equal(t, "running", v.Runs[0].Status, "its end was not told")
	// What comes late fills the gap.
	for _, e := range w.events.Events() {
		rec.Observe(e)
	}
	require.Equal(t, 9, rec.View().Dropped, "the line says so")
	x, err := rec.Explain(recording.Query{Key: "board", Revision: 4})
	require.NoError(t, err)
	require.Contains(t, x.String(), "Hook b/step_start/0 wrote it at revision 4, in step_start of step 1, in a serial retry after a conflict")
	require.Contains(t, x.String(), "Before that, hook a/step_start/0 wrote it at revision 3")
}

// A run that waits for people, is resumed and ends is one run, also over several files,
// and in the second file alone.
func TestRunsThatAreResumed(t *testing.T) {
	w := newWorld(t, script(enginetest.Call("c1", "pay", nil), enginetest.Say("done")),
		guardOf("guard", func(c inference.ToolCall) (gate.Decision, error) {
			return gate.Suspend(gate.Ticket{Message: "pay?"}), nil
		}),
		hook("a", phase.StepStart, func(_ *phase.Context, cmd *phase.Command) error {
			cmd.Update(board.With("x"), doors.Put("front", "y"), notes.Append("n"))
			return nil
		}))
	th, err := w.engine.NewThread("t")
	require.NoError(t, err)
	in := engine.Prompt("pay")
	tools := []engine.Tool{enginetest.StubTool("pay", engine.Text("paid"))}
	in.Tools = tools
	spec := engine.AgentSpec{ID: "agent"}
	_, err = th.Run(t.Context(), spec, in)
	require.NoError(t, err)
	v := w.rec.View()
	require.Equal(t, "waiting", v.Runs[0].Status)
	require.Nil(t, v.Runs[0].End)
	require.Equal(t, "waiting", v.Calls[0].Status)
	waiting := w.why("c1")
	first := len(w.events.Events())
	// Somebody else writes while it waits.
	_, err = th.Submit(t.Context(), "clerk", *(&phase.Command{}).Update(doors.Put("back", "shut"), notes.Append("m")))
	require.NoError(t, err)
	_, err = th.Resume(t.Context(), spec, engine.Input{Tools: tools}, engine.Decision{Answer: phase.Answer{Approved: true, Reason: "fine"}})
	require.NoError(t, err)
	checkState(t, w.rec, w.dumps)
	v = w.rec.View()
	require.Equal(t, "done", v.Runs[0].Status)
	require.Empty(t, v.Notes)
	require.Equal(t, "outside a run", v.Runs[1].Detail)
	require.Len(t, v.Calls, 1)

	rest := recording.New("second")
	for _, e := range w.events.Events()[first:] {
		rest.Observe(e)
	}
	rv := rest.View()
	require.Contains(t, rv.Notes[0], "before run")
	x, err := rest.Explain(recording.Query{Thread: "t", Key: "board"})
	require.NoError(t, err)
	ds, err := rest.Why("c1")
	require.NoError(t, err)
	golden(t, waiting, w.why("c1"), ds[0].String(), x.String(),
		w.explain(recording.Query{Key: "doors", Entry: "back"}), spans(w.rec, recording.KindWait, recording.KindStep, recording.KindRun, recording.KindMark))
	for _, rev := range []uint64{v.Runs[0].BaseRev + 8, rv.Commits[len(rv.Commits)-1].Rev} {
		want, err := w.rec.State(recording.Query{Thread: "t", Revision: rev})
		require.NoError(t, err)
		got, err := rest.State(recording.Query{Thread: "t", Revision: rev})
		require.NoError(t, err)
		for key, k := range got.Keys {
			require.Equal(t, plain(t, want.Keys[key]), plain(t, k), key)
		}
		require.Len(t, got.Keys, len(want.Keys))
	}

	// Without the clerk's events, the second part begins with what it found.
	gap := recording.New("gap")
	for i, e := range w.events.Events() {
		if i < first || i > first {
			gap.Observe(e)
		}
	}
	x, err = gap.Explain(recording.Query{Thread: "t", Key: "doors", Entry: "back"})
	require.NoError(t, err)
	require.Contains(t, x.String(), "the recording knows nothing of")
	require.Equal(t, inference.JSON(`"shut"`), x.Value.JSON)
}

// A process that ends leaves spans open, which a run that goes on does not end.
func TestProcessesThatEnd(t *testing.T) {
	rec := recording.New("crash")
	w := newWorld(t, script(enginetest.Call("c1", "look", nil), enginetest.Say("done")))
	w.tools = []engine.Tool{enginetest.StubTool("look", engine.Text("seen"))}
	w.run(engine.Prompt("go"))
	var last engine.Header
	for _, e := range w.events.Events() {
		rec.Observe(e)
		last = e.Head()
		if _, ok := e.(engine.ToolStarted); ok {
			break
		}
	}
	open := 0
	for _, s := range rec.View().Spans {
		if s.End == nil {
			open++
			require.Equal(t, "open", s.Status)
		}
	}
	require.Equal(t, 4, open, "run, step, call and body")
	h := last
	h.Seq = 1
	h.Time = h.Time.Add(1000)
	rec.Observe(engine.RunResumed{Header: h})
	for _, s := range rec.View().Spans {
		if s.Kind == recording.KindBody {
			require.Equal(t, "unknown", s.Status)
			require.Equal(t, "its end was not told", s.Text)
		}
	}
}

// Phases and commands outside runs are in the recording too.
func TestOutsideOfRuns(t *testing.T) {
	w := newWorld(t, nil, hook("a", phase.StepStart, func(_ *phase.Context, cmd *phase.Command) error {
		cmd.Update(doors.Put("front", "open"))
		return nil
	}))
	th, err := w.engine.NewThread("t")
	require.NoError(t, err)
	_, err = th.RunPhase(t.Context(), engine.AgentSpec{ID: "agent"}, phase.StepStart)
	require.NoError(t, err)
	_, err = th.Submit(t.Context(), "clerk", *(&phase.Command{}).Update(doors.Put("back", "shut")))
	require.NoError(t, err)
	v := w.rec.View()
	require.Len(t, v.Runs, 2)
	for _, r := range v.Runs {
		require.Equal(t, "done", r.Status)
		require.NotNil(t, r.End)
	}
	checkState(t, w.rec, w.dumps)
	golden(t, w.explain(recording.Query{Key: "doors", Entry: "front"}), w.explain(recording.Query{Key: "doors", Entry: "back"}))
}

// A run that fails, with everything that it has open, ends.
func TestRunsThatFail(t *testing.T) {
	w := newWorld(t, script(enginetest.Fail(errors.New("no model"))),
		hook("a", phase.StepStart, func(_ *phase.Context, cmd *phase.Command) error { cmd.Update(board.With("x")); return nil }),
		hook("b", phase.StepStart, func(*phase.Context, *phase.Command) error { panic("oh\x1b[2J") }))
	res := w.run(engine.Prompt("go"))
	require.Error(t, res.Err)
	v := w.rec.View()
	require.Equal(t, "error", v.Runs[0].Reason)
	require.Equal(t, 1, v.Runs[0].Failed)
	require.NotContains(t, text(t, v), "\x1b")
	for _, s := range v.Spans {
		require.NotNil(t, s.End, s)
	}
	require.Contains(t, spans(w.rec, recording.KindHook), "hook a/step_start/0 of a dropped")
	checkState(t, w.rec, w.dumps)
}

// What changes between two runs without an event is found by the second one.
func TestChangesBetweenRuns(t *testing.T) {
	w := newWorld(t, nil, hook("a", phase.StepStart, func(pc *phase.Context, cmd *phase.Command) error {
		if !doors.Has(pc.Snapshot(), "front") {
			cmd.Update(doors.Put("front", "open"), board.With("x"))
		}
		return nil
	}))
	th, err := w.engine.NewThread("t")
	require.NoError(t, err)
	run := func() {
		_, err := th.Run(t.Context(), engine.AgentSpec{ID: "agent"}, engine.Prompt("go"))
		require.NoError(t, err)
	}
	run()
	_, err = th.Submit(t.Context(), "clerk", *(&phase.Command{}).Update(doors.Put("front", "shut"), doors.Put("back", "shut")))
	require.NoError(t, err)
	run()
	rec := recording.New("between")
	for _, e := range w.events.Events() {
		if c, ok := e.(engine.Committed); !ok || c.Writes[0].Plugin != "clerk" {
			rec.Observe(e)
		}
	}
	var texts []string
	for _, q := range []recording.Query{{Key: "doors", Entry: "front"}, {Key: "doors", Entry: "back"}, {Key: "doors", Entry: "front", Revision: 3}, {Key: "board"}, {Key: "fixpoint.agent"}} {
		x, err := rec.Explain(q)
		require.NoError(t, err)
		texts = append(texts, x.String())
	}
	golden(t, texts...)
	checkState(t, w.rec, w.dumps)
	v := rec.View()
	require.Equal(t, v.Runs[1].ID, v.Commits[len(v.Commits)-1].Run)
	cleared := v.Commits[slices.IndexFunc(v.Commits, func(c recording.Commit) bool { return c.Run == v.Runs[1].ID })]
	require.Empty(t, cleared.Writes)
	require.Equal(t, v.Runs[1].BaseRev+1, cleared.Rev)
	require.Contains(t, fmt.Sprint(cleared.Changes), "The engine cleared it")
}
