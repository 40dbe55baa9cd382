package activecontext_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/activecontext"
	"github.com/ddd26017/fixpoint/store/memstore"
)

func file(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

func spec(section string) engine.AgentSpec {
	s := engine.AgentSpec{ID: "a", MaxRounds: 200}
	if section != "" {
		s.Sections = map[string]inference.JSON{activecontext.Name: inference.JSON(section)}
	}
	return s
}

// edit is a tool that returns what its file holds, or changes it.
func edit(fsys fstest.MapFS) engine.Tool {
	type args struct {
		Path  string   `json:"path"`
		Paths []string `json:"paths"`
		Text  string   `json:"text"`
		Fail  bool     `json:"fail"`
	}
	return engine.NewTool(inference.ToolSpec{Name: "edit"}, func(_ context.Context, _ *phase.Context, in args) (engine.Output, error) {
		if in.Fail {
			return engine.Output{}, errors.New("no")
		}
		if in.Text != "" {
			fsys[in.Path] = file(in.Text)
			return engine.Text("written"), nil
		}
		if f, ok := fsys[in.Path]; ok {
			return engine.Text(in.Path + ":\n" + string(f.Data)), nil
		}
		return engine.Text("nothing there"), nil
	})
}

// edits is a model that makes a call in each step and then says done.
func edits(args ...string) *enginetest.Script {
	var answers []enginetest.Answer
	for i, a := range args {
		answers = append(answers, enginetest.Call(fmt.Sprint("c", i), "edit", inference.JSON(a)))
	}
	return enginetest.NewScript(append(answers, enginetest.Say("done"))...)
}

const preface = "What follows is context, not a request. It is as of now and replaces what earlier messages show of it."

// shown returns what a request shows behind all other messages, "" when it does not.
func shown(r inference.Request) string {
	last := r.Messages[len(r.Messages)-1]
	text, ok := strings.CutPrefix(last.Text, preface)
	if !ok {
		return ""
	}
	return strings.TrimPrefix(text, "\n\n")
}

// run returns what each request of a run shows, and the thread.
func run(t *testing.T, fsys fstest.MapFS, section string, model *enginetest.Script) ([]string, *engine.Thread) {
	t.Helper()
	config, _ := enginetest.Config(t, activecontext.New(fsys))
	config.Model = model
	th, err := enginetest.Engine(t, config).NewThread("")
	require.NoError(t, err)
	in := engine.Prompt("go")
	in.Tools = []engine.Tool{edit(fsys)}
	res, err := th.Run(t.Context(), spec(section), in)
	require.NoError(t, err)
	require.NoError(t, res.Err)
	require.Zero(t, res.Stats.DeadLetters)
	var out []string
	for _, r := range model.Requests() {
		out = append(out, shown(r))
	}
	return out, th
}

// Capability G7. Capability H3. Capability M3. Each call sees the pinned and the touched as
// they are just then, in a fixed order, and the history has none of it.
func TestShown(t *testing.T) {
	fsys := fstest.MapFS{"plan.md": file("plan"), "a.go": file("A"), "b.go": file("B"), "d/x": file("x")}
	model := edits(`{"path": "a.go"}`, `{"path": "./b.go"}`, `{"path": "a.go", "text": "AA"}`, `{"path": "d"}`, `{"path": "plan.md", "text": "new plan"}`)
	got, th := run(t, fsys, `{"texts": [" be kind\n"], "files": ["plan.md", "plan.md"]}`, model)
	pins := "=== pinned text ===\nbe kind\n\n=== plan.md ===\nplan"
	require.Equal(t, []string{
		pins,
		pins + "\n\n=== a.go ===\nA",
		pins + "\n\n=== b.go ===\nB\n\n=== a.go ===\nA",
		pins + "\n\n=== a.go ===\nAA\n\n=== b.go ===\nB",
		pins + "\n\n=== a.go ===\nAA\n\n=== b.go ===\nB",
		"=== pinned text ===\nbe kind\n\n=== plan.md ===\nnew plan\n\n=== a.go ===\nAA\n\n=== b.go ===\nB",
	}, got)
	for _, m := range engine.Transcript.Get(th.Snapshot()).All() {
		require.NotContains(t, m.Text, preface)
	}
	for i, r := range model.Requests() {
		require.Len(t, r.Messages, 2+2*i, "one message besides the history")
		require.Equal(t, inference.RoleUser, r.Messages[len(r.Messages)-1].Role)
	}
}

// What is gone, no text or no file is not shown; pinned files say why.
func TestNotShown(t *testing.T) {
	fsys := fstest.MapFS{"bin": file("a\x00b"), "latin": file("\xe4"), "d/x": file("x"), "empty": file(""), "was": file("here")}
	model := edits(`{"path": "bin"}`, `{"path": "latin"}`, `{"path": "../etc"}`, `{"path": "/etc"}`, `{"path": "was", "fail": true}`,
		`{"path": ""}`, `{"path": "."}`, `{"path": "gone"}`, `{"path": "empty"}`)
	got, _ := run(t, fsys, "", model)
	require.Equal(t, []string{"", "", "", "", "", "", "", "", "", "=== empty ===\n"}, got)

	got, _ = run(t, fsys, `{"files": ["d", "bin", "none", "a\nb", "empty"]}`, edits())
	require.Equal(t, []string{"=== d is not a text file ===\n\n\n=== bin is not a text file ===\n\n\n=== none does not exist ===\n\n\n" +
		`=== "a\nb" does not exist ===` + "\n\n\n=== empty ===\n"}, got)
}

// Only as many as asked for are shown, the last ones, and by the arguments asked for.
func TestRecent(t *testing.T) {
	fsys := fstest.MapFS{"a": file("A"), "b": file("B"), "c": file("C")}
	calls := []string{`{"paths": ["c", "a", "c"]}`, `{"path": "b"}`}
	got, _ := run(t, fsys, `{"recent": 2, "args": ["path", "paths"]}`, edits(calls...))
	require.Equal(t, []string{"", "=== a ===\nA\n\n=== c ===\nC", "=== b ===\nB\n\n=== a ===\nA"}, got)
	got, _ = run(t, fsys, "", edits(calls...))
	require.Equal(t, []string{"", "", "=== b ===\nB"}, got)
	got, _ = run(t, fsys, `{"recent": 0}`, edits(calls...))
	require.Equal(t, []string{"", "", ""}, got)
}

// A file whose content the history has is only named, until it changes.
func TestUnchanged(t *testing.T) {
	fsys := fstest.MapFS{"a": file("some text"), "b": file("ab")}
	model := edits(`{"path": "a"}`, `{"path": "b"}`, `{"path": "a", "text": "other text"}`)
	got, _ := run(t, fsys, `{"unchanged": "note"}`, model)
	same := func(name string) string { return "=== " + name + " is unchanged since the last call about it ===\n" }
	require.Equal(t, []string{"", same("a"), same("b") + "\n\n" + same("a"), "=== a ===\nother text\n\n" + same("b")}, got)
}

// Files are cut to their beginning, between two characters, and what has no room is named.
func TestBounds(t *testing.T) {
	fsys := fstest.MapFS{"big": file(strings.Repeat("ä", 3000)), "exact": file("0123456789"), "last": file("0123456789x"), "wide": file("012345678😀")}
	got, _ := run(t, fsys, `{"files": ["big", "exact", "last", "wide"], "max_file_bytes": 10}`, edits())
	require.Equal(t, "=== big, cut to its beginning ===\näääää\n\n=== exact ===\n0123456789\n\n"+
		"=== last, cut to its beginning ===\n0123456789\n\n=== wide, cut to its beginning ===\n012345678", got[0])

	got, _ = run(t, fsys, `{"files": ["big", "exact", "last", "wide"], "max_bytes": 1024}`, edits())
	require.Regexp(t, `(?s)^=== big, cut to its beginning ===\nä+\n\n=== left out for want of room: exact, last, wide ===$`, got[0])
}

// Whatever there is and is asked for, the message is as long as it may be at most.
func TestMessageIsBounded(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 150 {
		fsys := fstest.MapFS{}
		var texts, files []string
		for i := range rnd.IntN(40) {
			name := strings.Repeat(string(rune('a'+rnd.IntN(26))), 1+rnd.IntN(200)) + fmt.Sprint(i)
			if rnd.IntN(5) > 0 {
				fsys[name] = file(strings.Repeat([]string{"x", "ä", "€", "😀", "\xff"}[rnd.IntN(5)], rnd.IntN(3000)))
			}
			files = append(files, fmt.Sprintf("%q", name))
		}
		for range rnd.IntN(3) {
			texts = append(texts, fmt.Sprintf("%q", strings.Repeat("text ", 1+rnd.IntN(500))))
		}
		limit := activecontext.MinBytes + rnd.IntN(5000)
		model := edits()
		got, _ := run(t, fsys, fmt.Sprintf(`{"texts": [%s], "files": [%s], "max_bytes": %d, "max_file_bytes": %d}`,
			strings.Join(texts, ","), strings.Join(files, ","), limit, 1+rnd.IntN(4000)), model)
		last := model.Requests()[0].Messages
		text := last[len(last)-1].Text
		require.True(t, utf8.ValidString(text))
		if got[0] == "" {
			require.Empty(t, texts)
			require.Empty(t, files)
			continue
		}
		require.LessOrEqual(t, len(text), limit)
		whole := strings.Count(text, "\n=== ")
		require.True(t, strings.Contains(text, "left out") || whole == len(texts)+len(files), "nothing is missing in silence")
	}
}

// A program pins files while an agent is at work; a thread forgets what was touched long
// ago.
func TestPinnedAndForgotten(t *testing.T) {
	fsys := fstest.MapFS{"pin": file("P"), "s": file("S")}
	var calls []string
	for i := range activecontext.MaxTouched + 5 {
		fsys[fmt.Sprintf("f%02d", i)] = file("x")
		calls = append(calls, fmt.Sprintf(`{"path": "f%02d"}`, i))
	}
	model := edits(calls...)
	_, th := run(t, fsys, "", model)
	require.Equal(t, activecontext.MaxTouched, activecontext.Touched.Len(th.Snapshot()))
	require.False(t, activecontext.Touched.Has(th.Snapshot(), "f04"))
	require.True(t, activecontext.Touched.Has(th.Snapshot(), "f05"))

	var cmd phase.Command
	cmd.Update(activecontext.Pinned.Add("pin", "s", "../out"))
	_, err := th.Submit(t.Context(), "program", cmd)
	require.NoError(t, err)
	_, err = th.Run(t.Context(), spec(`{"files": ["s"], "recent": 1}`), engine.Prompt("more"))
	require.NoError(t, err)
	requests := model.Requests()
	require.Equal(t, "=== s ===\nS\n\n=== ../out does not exist ===\n\n\n=== pin ===\nP\n\n=== f68 ===\nx", shown(requests[len(requests)-1]))
}

// Calls that run in parallel touch in call order, whoever is first.
func TestParallelCalls(t *testing.T) {
	fsys := fstest.MapFS{"a": file("A"), "b": file("B"), "c": file("C")}
	enginetest.CheckDeterminism(t, 9, func(shuffle enginetest.Shuffle) []string {
		model := enginetest.NewScript(
			enginetest.Call("1", "edit", map[string]any{"path": "a"}).And(enginetest.Call("2", "edit", map[string]any{"path": "b"}),
				enginetest.Call("3", "edit", map[string]any{"path": "c"}), enginetest.Call("4", "edit", map[string]any{"path": "a"})),
			enginetest.Say("done"))
		config, rec := enginetest.Config(t, activecontext.New(fsys))
		config.Model = model
		s := spec("")
		s.ToolExecution = engine.ToolsParallel
		in := engine.Prompt("go")
		in.Tools = []engine.Tool{engine.NewTool(inference.ToolSpec{Name: "edit"}, func(context.Context, *phase.Context, map[string]any) (engine.Output, error) {
			shuffle()
			return engine.Text("ok"), nil
		})}
		_, err := enginetest.Engine(t, config).Run(t.Context(), s, in)
		require.NoError(t, err)
		require.Equal(t, "=== a ===\nA\n\n=== c ===\nC\n\n=== b ===\nB", shown(model.Requests()[1]))
		return rec.Lines()
	})
}

// A run that waits goes on in another process and knows what was touched, as it is by then.
func TestResume(t *testing.T) {
	journal, fsys := memstore.New(memstore.Options{}), fstest.MapFS{"a": file("A"), "b": file("B")}
	model := edits(`{"path": "a"}`, `{"path": "b"}`)
	build := func() *engine.Engine {
		asking := engine.NewPlugin("asking", func(r *engine.Registrar) error {
			r.Tool(edit(fsys))
			r.Gate(gate.Func(func(context.Context, *phase.Context) (gate.Decision, error) {
				return gate.Ask(gate.Ticket{Kind: gate.Confirm, Message: "may it?"}), nil
			}))
			return nil
		})
		config, _ := enginetest.Config(t, activecontext.New(fsys), asking)
		config.Journal, config.Model = journal, model
		return enginetest.Engine(t, config)
	}
	th, err := build().NewThread("t")
	require.NoError(t, err)
	res, err := th.Run(t.Context(), spec(""), engine.Prompt("go"))
	require.NoError(t, err)
	for i := 0; res.Status == phase.Waiting; i++ {
		fsys["a"] = file(fmt.Sprint("A", i)) // while nobody looked
		th, err = build().OpenThread(t.Context(), "t")
		require.NoError(t, err)
		res, err = th.Resume(t.Context(), spec(""), engine.Input{}, engine.Decision{Answer: phase.Answer{Ticket: res.Tickets[0].ID, Approved: true}})
		require.NoError(t, err)
		require.NoError(t, res.Err)
	}
	var got []string
	for _, r := range model.Requests() {
		got = append(got, shown(r))
	}
	require.Equal(t, []string{"", "=== a ===\nA0", "=== b ===\nB\n\n=== a ===\nA1"}, got)
}

// Capability G9. Runs side by side on one engine see what they touched themselves.
func TestConcurrentRuns(t *testing.T) {
	fsys := fstest.MapFS{}
	scripts := map[string]*enginetest.Script{}
	for i := range 16 {
		id := fmt.Sprint("f", i)
		fsys[id] = file("content of " + id)
		args := fmt.Sprintf(`{"path": %q}`, id)
		scripts[id] = edits(args, args, args)
	}
	config, _ := enginetest.Config(t, activecontext.New(fsys))
	config.Model = inference.ModelFunc(func(ctx context.Context, r inference.Request) (inference.Response, error) {
		return scripts[r.Messages[0].Text].Generate(ctx, r)
	})
	eng := enginetest.Engine(t, config)
	var wg sync.WaitGroup
	for id := range scripts {
		wg.Go(func() {
			in := engine.Prompt(id)
			in.Tools = []engine.Tool{edit(fsys)}
			if _, err := eng.Run(t.Context(), spec(""), in); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for id, script := range scripts {
		for i, r := range script.Requests() {
			want := ""
			if i > 0 {
				want = fmt.Sprintf("=== %s ===\ncontent of %s", id, id)
			}
			require.Equal(t, want, shown(r))
		}
	}
}

// broken is a file system with a file that cannot be read.
type broken struct{ fs.FS }

func (b broken) Open(name string) (fs.File, error) {
	if name == "broken" {
		return nil, errors.New("the disk is gone")
	}
	return b.FS.Open(name)
}

// A file that cannot be read is told, and does not keep the others from being shown.
func TestUnreadableFile(t *testing.T) {
	model := edits()
	config, _ := enginetest.Config(t, activecontext.New(broken{fstest.MapFS{"a": file("A")}}))
	config.Model = model
	res, err := enginetest.Engine(t, config).Run(t.Context(), spec(`{"files": ["broken", "a"]}`), engine.Prompt("go"))
	require.NoError(t, err)
	require.NoError(t, res.Err)
	require.Equal(t, "=== broken cannot be read ===\n\n\n=== a ===\nA", shown(model.Requests()[0]))
}

// A file system that hangs is given up on after ten seconds, and the run goes on.
func TestHangingDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		fsys := waiting{fstest.MapFS{"a": file("A")}, hold}
		rec, model := &enginetest.Recorder{}, edits()
		eng, err := engine.New(engine.Config{Plugins: []engine.Plugin{activecontext.New(fsys)}, Model: model, Observers: []engine.Observer{rec}})
		require.NoError(t, err)
		res, err := eng.Run(t.Context(), spec(`{"files": ["a"]}`), engine.Prompt("go"))
		require.NoError(t, err)
		require.Equal(t, phase.ReasonNatural, res.Reason)
		require.Empty(t, shown(model.Requests()[0]))
		require.NotEmpty(t, enginetest.Select[engine.Warning](rec.Events()))
		close(hold)
	})
}

// waiting is a file system that answers only once it is let go.
type waiting struct {
	fs.FS
	hold chan struct{}
}

func (w waiting) Open(name string) (fs.File, error) {
	<-w.hold
	return w.FS.Open(name)
}

func TestNoFileSystem(t *testing.T) {
	_, err := engine.New(engine.Config{Plugins: []engine.Plugin{activecontext.New(nil)}, Model: edits()})
	require.ErrorIs(t, err, engine.ErrRegistration)
	require.ErrorContains(t, err, "activecontext: New was given no file system")
}

func TestFaultySettings(t *testing.T) {
	config, _ := enginetest.Config(t, activecontext.New(fstest.MapFS{}))
	config.Model = edits()
	eng := enginetest.Engine(t, config)
	for section, want := range map[string]string{
		`{"texts": ["ok", " "]}`:     `activecontext: texts[1] is empty`,
		`{"files": ["ok", "../up"]}`: `activecontext: files[1] is "../up"`,
		`{"files": ["/abs"]}`:        `files[0]`,
		`{"files": ["."]}`:           `files[0]`,
		`{"files": [7]}`:             `sections.activecontext.files[0]`,
		`{"recent": -1}`:             `activecontext: recent is -1`,
		`{"recent": 65}`:             `activecontext: recent is 65`,
		`{"args": [""]}`:             `activecontext: args has an empty name`,
		`{"max_bytes": 100}`:         `activecontext: max_bytes is 100`,
		`{"max_file_bytes": 0}`:      `activecontext: max_file_bytes is 0`,
		`{"unchanged": "hide"}`:      `activecontext: unchanged is "hide"`,
		`{"file": ["a"]}`:            `file`,
	} {
		s, err := engine.ParseSpec("a.json", []byte(`{"id": "a", "sections": {"activecontext": `+section+`}}`))
		require.NoError(t, err)
		err = eng.Check(s)
		require.ErrorIs(t, err, engine.ErrSpec, section)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "a.json:1:")
	}
}

// Whatever a model writes as arguments, what is found in it are clean paths.
func FuzzPaths(f *testing.F) {
	for _, s := range []string{`{"path": "a/b"}`, `{"path": ["a", "./a", "b"]}`, `{"path": {"path": "a"}}`, `{"path": null}`, `[]`, `{`, `{"path": "../a"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := activecontext.Paths(inference.JSON(text), []string{"path", "paths"})
		require.LessOrEqual(t, len(got), 32)
		seen := map[string]bool{}
		for _, p := range got {
			require.True(t, fs.ValidPath(p) && p != "." && len(p) <= 1024 && !seen[p], "%q", p)
			seen[p] = true
		}
	})
}

func TestManifest(t *testing.T) {
	config, _ := enginetest.Config(t, activecontext.New(fstest.MapFS{}))
	m := enginetest.Engine(t, config).Describe()
	require.Empty(t, m.Undeclared)
	require.Empty(t, m.Conflicts)
}
