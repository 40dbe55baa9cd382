package chat_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/chat"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/lineedit"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/terminal"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/permission"
	"github.com/ddd26017/fixpoint/plugins/slash"
)

// act is what a person does when a line is asked for.
type act func(*table, lineedit.Query) (string, error)

// table is where a test sits as the person.
type table struct {
	mu      sync.Mutex
	asked   []lineedit.Query
	acts    []act
	session *chat.Session
	out     bytes.Buffer
	now     time.Time
	open    int // questions in the end
}

// ReadLine does what comes next, and leaves when there is nothing more to do.
func (b *table) ReadLine(_ context.Context, q lineedit.Query) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, q)
	if len(b.acts) == 0 {
		return "", io.EOF
	}
	next := b.acts[0]
	b.acts = b.acts[1:]
	return next(b, q)
}

func types(text string) act {
	return func(*table, lineedit.Query) (string, error) { return text, nil }
}

func interrupts(*table, lineedit.Query) (string, error) { return "", lineedit.ErrInterrupt }

// waits types an empty line after that time.
func waits(d time.Duration) act {
	return func(b *table, _ lineedit.Query) (string, error) {
		b.now = b.now.Add(d)
		return "", nil
	}
}

// talk holds a session with an agent whose tool save is asked about.
func talk(t *testing.T, acts ...act) *table {
	t.Helper()
	return talkIn(t, t.TempDir(), acts...)
}

func talkIn(t *testing.T, folder string, acts ...act) *table {
	t.Helper()
	store, err := kept.Create(folder)
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	b := &table{acts: acts, now: time.Unix(1000, 0)}
	spec := engine.AgentSpec{ID: "a", Sections: map[string]inference.JSON{permission.Name: `{"ask":["save"]}`}}
	screen := terminal.Screen{Out: &b.out}
	printer := terminal.NewPrinter(screen)
	view := terminal.NewView(printer, terminal.Normal)
	b.session = chat.New(chat.Options{
		Console: b, Screen: screen, Printer: printer, View: view, Store: store, Agents: chat.With([]engine.AgentSpec{spec, {ID: "b"}}),
		Dir: fstest.MapFS{"docs/one.md": {}, "docs/only.md": {}, "dune": {}, ".hidden": {}}, Now: func() time.Time { return b.now },
	})
	config, _ := enginetest.Config(t, permission.New(), kept.Plugin(), b.session.Plugin(), engine.NewPlugin("desk", func(r *engine.Registrar) error {
		r.Tool(enginetest.StubTool("save", engine.Text("saved")))
		r.Extra(slash.New("note", "", `{"properties":{"path":{"type":"string"},"times":{"type":"integer"}}}`,
			func(context.Context, *phase.Context, map[string]any) (slash.Reply, error) { return slash.Reply{}, nil }))
		return nil
	}))
	config.Model = b.session.Watch(enginetest.NewScript(enginetest.Call("c", "save", map[string]int{"n": 1}), enginetest.Say("done"), enginetest.Say("and done")))
	config.Journal, config.NewID, config.Resolver = store.Journal, b.session.NewID, b.session.Resolver(false)
	config.Observers = append(config.Observers, view)
	eng, err := engine.New(config)
	require.NoError(t, err)
	defer func() { require.NoError(t, eng.Close(t.Context())) }()
	require.NoError(t, b.session.Run(t.Context(), eng, "thread-1", ""))
	b.open = len(b.session.Thread().Tickets())
	return b
}

// Two interrupts leave when they come within two seconds, and not otherwise.
func TestInterruptTwice(t *testing.T) {
	got := talk(t, interrupts, waits(2*time.Second), interrupts, waits(2*time.Second-1), interrupts, types("never"))
	require.Len(t, got.asked, 5)
	require.Equal(t, 2, strings.Count(got.out.String(), "Ctrl-C again within 2 seconds leaves"))
	require.Zero(t, got.open)
}

// A question that is interrupted cancels the run, and the session goes on.
func TestInterruptedQuestion(t *testing.T) {
	got := talk(t, types("save it"), interrupts, types("again"))
	require.Contains(t, got.out.String(), "the run is being cancelled")
	require.Contains(t, got.out.String(), "cancelled: before its end")
	require.Contains(t, got.out.String(), "answer  done")
}

// The end of the input at a question leaves it open, and is all.
func TestLeftOpen(t *testing.T) {
	got := talk(t, types("save it"))
	require.Len(t, got.asked, 2)
	require.Equal(t, 1, got.open)
	require.NotContains(t, got.out.String(), "warning")
}

// What waits goes before a prompt, which is not lost.
func TestQuestionGoesFirst(t *testing.T) {
	folder := t.TempDir()
	talkIn(t, folder, types("save it"))
	again := func(b *table, q lineedit.Query) (string, error) {
		b.now = b.now.Add(time.Hour)
		return "", lineedit.ErrInterrupt
	}
	got := talkIn(t, folder, again, types("something else"), again)
	require.Equal(t, 1, got.open)
	require.Equal(t, "something else", got.asked[3].Text)
	require.Contains(t, got.out.String(), "the run of this thread waits; /resume goes on with it")
	got = talkIn(t, folder, again, types("something else"), types("y"))
	require.Zero(t, got.open)
	require.Contains(t, got.out.String(), "answer  done")
	require.Contains(t, got.out.String(), "answer  and done", "and then comes the prompt")
}

// An edit begins with the arguments of the call, and with what was typed where that is
// not good enough.
func TestEdit(t *testing.T) {
	var begin []string
	edit := func(text string) act {
		return func(_ *table, q lineedit.Query) (string, error) { begin = append(begin, q.Text); return text, nil }
	}
	got := talk(t, types("save it"), types("e"), edit(""), types("edit"), edit("[1]"), edit(`{"n":2`), edit(`{"n":2}`))
	require.Equal(t, []string{`{"n":1}`, `{"n":1}`, "[1]", `{"n":2`}, begin)
	require.Contains(t, got.out.String(), "arguments are a JSON object")
	require.Contains(t, got.out.String(), `edited      {"n":2} by answer to`)
	require.Contains(t, got.out.String(), "answer  done")
}

func TestComplete(t *testing.T) {
	for line, want := range map[string][]string{
		"/hi": {"/history"}, "/no": {"/note"}, "/": nil, "/switch t": {"thread-1"}, "/agent ": {"a", "b"}, "/agent b": {"b"}, "/fork ": nil,
		"/note ": {"path=", "times="}, "/note p": {"path="}, "/note path=do": {"docs/"}, "/note path=x d": {"docs/", "dune"}, "/nope x": nil,
		"see d": {"docs/", "dune"}, "see docs/on": {"docs/one.md", "docs/only.md"}, "see ": nil, "": nil, "see .": {".hidden"},
		"see ../": nil, "see /etc/": nil, "see nope/": nil,
	} {
		var from int
		var got []string
		talk(t, types("save it"), types("y"), func(_ *table, q lineedit.Query) (string, error) {
			from, got = q.Complete(line)
			return "", nil
		})
		if line == "/" {
			require.Greater(t, len(got), 10)
			continue
		}
		require.Equal(t, want, got, line)
		require.Equal(t, strings.LastIndexAny(line, " =")+1, from, line)
	}
}
