//go:build linux

package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/cli"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/screentest"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/slash"
)

// talk is a chat at a terminal of the test's own.
type talk struct {
	*tty
	t     *testing.T
	width int
	errs  bytes.Buffer
	code  chan int
}

// chatAt starts a chat at a terminal that many columns wide.
func chatAt(t *testing.T, width int, plugins func() []engine.Plugin, args ...string) *talk {
	t.Helper()
	c := &talk{tty: openTTY(t), t: t, width: width, code: make(chan int, 1)}
	size := [4]uint16{24, uint16(width)}
	require.NoError(t, ioctl(c.file, syscall.TIOCSWINSZ, unsafe.Pointer(&size)))
	go func() {
		c.code <- cli.Run(t.Context(), append([]string{"chat"}, args...), cli.IO{In: c.file, Out: c.file, Err: &c.errs, Plugins: plugins})
	}()
	return c
}

// sees waits until a text is on the screen.
func (c *talk) sees(text string) {
	c.t.Helper()
	c.until(text, func(screen string) bool { return strings.Contains(screen, text) })
}

// at waits until the last line of the screen is that one.
func (c *talk) at(line string) {
	c.t.Helper()
	c.until(line, func(screen string) bool { return screen[strings.LastIndex(screen, "\n")+1:] == line })
}

func (c *talk) until(what string, done func(screen string) bool) {
	c.t.Helper()
	if !assertEventually(c.t, func() bool { return done(c.screen()) }) {
		c.t.Fatalf("the screen does not show %q:\n%s", what, c.screen())
	}
}

func assertEventually(t *testing.T, done func() bool) bool {
	deadline, tick := time.After(time.Minute), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline:
			return false
		case <-tick.C:
		}
	}
	return true
}

// screen is what a person sees.
func (c *talk) screen() string {
	s := screentest.New(c.width)
	_, err := s.Write([]byte(c.seen()))
	require.NoError(c.t, err)
	require.Empty(c.t, s.Unknown())
	return s.Text()
}

func (c *talk) types(keys string) {
	c.t.Helper()
	_, err := c.keys.WriteString(keys)
	require.NoError(c.t, err)
}

// ends waits for the end, with the terminal as it was before.
func (c *talk) ends(code int) {
	c.t.Helper()
	select {
	case got := <-c.code:
		require.Equal(c.t, code, got, c.screen()+c.errs.String())
	case <-time.After(time.Minute):
		c.t.Fatal("it does not end:\n" + c.screen())
	}
	require.True(c.t, c.echoes(c.t), "the terminal is as it was")
	c.until("the end of marked pastes", func(string) bool { return strings.Contains(c.seen(), "\x1b[?2004l") })
}

// thread opens a thread of a chat that has ended.
func thread(t *testing.T, dir, id string, look func(*engine.Thread)) {
	t.Helper()
	store, err := kept.Open(filepath.Join(dir, ".fixpoint", "chat"))
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	th, err := store.Open(t.Context(), id)
	require.NoError(t, err)
	look(th)
}

// Capability G5. Capability M6. A person talks with the steward at a terminal: a prompt, an approval
// with edited arguments, which are asked for again until they can be used, a slash
// command, and the end.
func TestChatAtATerminal(t *testing.T) {
	dir := garden(t)
	c := chatAt(t, 80, nil, agent, "--dir", dir)
	c.at("steward ›")
	require.Contains(t, c.screen(), "it plays its script")
	require.Contains(t, c.screen(), "   thread  thread-1, a new one\n")
	c.types("Survey: the garden\r")
	c.sees("Allow write_report?")
	c.at("›")
	c.types("perhaps\re\r") // what is no answer is asked again
	c.sees(`{"content":"# Survey of the garden\n\nFiles: 6, with 231 bytes.`)
	c.types("\x15" + `{"content":"# Mine`)
	c.at(`› {"content":"# Mine`)
	c.types("\r")
	c.sees("that is not JSON: unexpected end of JSON input, behind")
	c.sees("           “{\"content\":\"# Mine”\n")
	c.at(`› {"content":"# Mine`)
	c.types("\x15" + `{"text":1}` + "\r")
	c.sees("does not fit its schema: /content: is\n")
	c.at(`› {"text":1}`)
	c.types("\x15" + `{"content":"# Mine by hand"}` + "\r")
	c.sees("yes, at the terminal, with other arguments")
	c.sees("answer  The report is in .fixpoint/report.md.")
	c.at("steward ›")
	c.types("/tools\r")
	c.sees("write_report      write")
	c.at("steward ›")
	c.types("/quit\r")
	c.ends(cli.ExitOK)

	report, err := os.ReadFile(filepath.Join(dir, ".fixpoint", "report.md"))
	require.NoError(t, err)
	require.Equal(t, "# Mine by hand\n", string(report))
	thread(t, dir, "thread-1", func(th *engine.Thread) {
		l := phase.RunLifecycle.Get(th.Snapshot())
		require.Equal(t, []any{"thread-1.run-1", phase.Done, phase.ReasonNatural}, []any{l.Run, l.Status, l.Reason})
		messages := engine.Transcript.Get(th.Snapshot()).Slice()
		require.Equal(t, "Survey: the garden", messages[0].Text)
		require.Equal(t, "Survey: the garden", kept.Key.Get(th.Snapshot()).Prompt)
		at := slices.IndexFunc(messages, func(m inference.Message) bool { return m.Result.CallID == "report" })
		require.Equal(t, inference.OutcomeOK, messages[at].Result.Outcome)
	})
}

// What is typed is on the screen as it is, however narrow it is, a paste of several lines
// is one prompt, and Tab completes.
func TestChatKeys(t *testing.T) {
	dir := garden(t)
	spec := specFile(t, "id: echo\nmodel_id: script:script.json\n---\nid: other\nmodel_id: script:script.json\n", `{"answers": [{"text": "I heard {{ json .Input }}"}]}`)
	c := chatAt(t, 30, nil, spec, "--dir", dir, "-q")
	c.at("echo ›")
	c.types("\x1b[200~one\ntwo\x1b[201~ 日本語日本語日本語")
	c.sees("echo › one⏎two 日本語日本語日\n本語")
	c.types("\r")
	c.sees("answer  I heard \"one\\ntwo\n           日本語日本語日本語\"\n")
	c.at("echo ›")
	c.types("look at R\t")
	c.at("echo › look at README.md")
	c.types("beds/no\t")
	c.sees("echo › look at README.md beds\n/north/")
	c.types("\x15/he\t\r")
	c.sees("/agent id=...")
	c.at("echo ›")
	c.types("/agent o\t\r")
	c.at("other ›")
	c.types("/switch th\t")
	c.at("other › /switch thread-1")
	c.types("\x03")
	c.sees("Ctrl-C again within")
	c.at("other ›")
	c.types("//x\r")
	c.sees(`I heard "/x"`)
	c.at("other ›")
	c.types("\x04")
	c.ends(cli.ExitOK)
}

// The lines of one session are in the next one, but for answers and what begins with a
// space.
func TestChatHistory(t *testing.T) {
	dir := garden(t)
	spec := specFile(t, "id: clerk\nmodel_id: script:script.json\nsections:\n  permission: {allow: ['kind:read']}\n",
		`{"answers": [{"tool_calls": [{"id": "q", "tool": "ask", "args": {"kind": "text"}}, {"id": "s", "tool": "ask", "args": {"kind": "secret"}}]}, {"text": "I heard {{ (.Result \"q\").Content }}"}]}`)
	c := chatAt(t, 80, desk, spec, "--dir", dir)
	c.at("clerk ›")
	c.types("first\r")
	c.at("your turn      text; an empty line declines ›")
	c.types("my answer\r")
	c.sees("value, not shown")
	c.at("›")
	c.types("hunter2\r")
	c.sees(`I heard the answer is "my answer"`)
	c.at("clerk ›")
	c.types(" /tools\r")
	c.sees("ask_user")
	c.at("clerk ›")
	c.types("/threads\r")
	c.sees("thread-1  done")
	c.at("clerk ›")
	c.types("\x04")
	c.ends(cli.ExitOK)
	require.NotContains(t, c.seen(), "hunter2")
	lines, err := os.ReadFile(filepath.Join(dir, ".fixpoint", "chat", "lines"))
	require.NoError(t, err)
	require.Equal(t, "\"first\"\n\"/threads\"\n", string(lines))

	c = chatAt(t, 80, desk, spec, "--dir", dir)
	c.at("clerk ›")
	c.types("\x10")
	c.at("clerk › /threads")
	c.types("\x1b[A")
	c.at("clerk › first")
	c.types("\x03\x04")
	c.ends(cli.ExitOK)
}

// hanging is a plugin with a tool that does not return before it is cancelled, and a
// command that counts messages meanwhile.
func hanging() (func() []engine.Plugin, *atomic.Int32) {
	var cancelled atomic.Int32
	return func() []engine.Plugin {
		return []engine.Plugin{engine.NewPlugin("hanging", func(r *engine.Registrar) error {
			r.Tool(engine.NewTool(inference.ToolSpec{Name: "hang", Kind: "read"}, func(ctx context.Context, _ *phase.Context, _ struct{}) (engine.Output, error) {
				<-ctx.Done()
				cancelled.Add(1)
				return engine.Output{}, context.Cause(ctx)
			}))
			r.Extra(slash.New("count", "tells how many messages there are", "", func(_ context.Context, pc *phase.Context, _ struct{}) (slash.Reply, error) {
				return slash.Reply{Text: strings.Repeat("#", pc.Messages().Len())}, nil
			}))
			return nil
		})}
	}, &cancelled
}

// Ctrl-C cancels the run and not the session; during a run narrow commands work, those
// that steer do not, and a prompt is kept. Twice, it leaves.
func TestChatInterrupt(t *testing.T) {
	dir := garden(t)
	spec := specFile(t, "id: clerk\nmodel_id: script:script.json\nsections:\n  permission: {allow: ['kind:read']}\n",
		`{"answers": [{"tool_calls": [{"id": "h", "tool": "hang"}]}]}`)
	plugins, cancelled := hanging()
	c := chatAt(t, 80, plugins, spec, "--dir", dir, "-v")
	c.at("clerk ›")
	c.types("go\r")
	c.sees("tool      starts")
	c.types("/count\r")
	c.sees("           ##")
	c.types("/new\r")
	c.sees("/new works between runs; Ctrl-C cancels this one")
	c.types("/cuont\r")
	c.sees("unknown command /cuont; there is /count")
	c.types("next one\r")
	c.sees("a run is under way; the line is kept")
	c.at("· next one")
	c.types("\x03")
	c.sees("ended  cancelled: before its end")
	c.at("clerk ›")
	require.Equal(t, int32(1), cancelled.Load())
	c.types("go again\r")
	c.sees("run  thread-1.run-2")
	c.until("the tool runs", func(screen string) bool { return strings.Count(screen, "tool      starts") == 2 })
	c.types("\x03\x03")
	c.ends(cli.ExitOK)
	require.Equal(t, int32(2), cancelled.Load())
	thread(t, dir, "thread-1", func(th *engine.Thread) {
		require.Equal(t, phase.ReasonCancelled, phase.RunLifecycle.Get(th.Snapshot()).Reason)
	})
}

// Who leaves at a question leaves it open. The next session on the thread asks it again,
// and goes on with the run.
func TestChatLeavesAQuestionOpen(t *testing.T) {
	dir := garden(t)
	c := chatAt(t, 80, nil, "--dir", dir)
	c.at("steward ›")
	c.types("Survey: one\r")
	c.sees("Allow write_report?")
	c.at("›")
	c.types("\x04")
	c.ends(cli.ExitWaiting)
	c.sees("ticket  thread-1.run-1/5/report/1")
	require.NoFileExists(t, filepath.Join(dir, ".fixpoint", "report.md"))

	c = chatAt(t, 80, nil, "--dir", dir)
	c.sees("waiting  thread-1; /switch goes on with a thread\n")
	c.at("steward ›")
	c.types("/switch thread-1\r")
	c.sees("thread-1, whose run thread-1.run-1 waits for an answer")
	c.at("›")
	c.types("\x03")
	c.sees("the question is left open; /resume asks again")
	c.at("steward ›")
	c.types("/resume\r")
	c.sees("› /resume\n question  Allow write_report?\n")
	c.at("›")
	c.types("\x04")
	c.ends(cli.ExitWaiting)

	c = chatAt(t, 80, nil, "--dir", dir, "--thread", "thread-1")
	c.sees("thread-1, whose run thread-1.run-1 waits for an answer")
	c.at("›")
	c.types("e\r")
	c.sees(`{"content":"# Survey of one`)
	c.types("\x15" + `{"content":"later"}` + "\r")
	c.sees("The report is in .fixpoint/report.md.")
	c.at("steward ›")
	c.types("/quit\r")
	c.ends(cli.ExitOK)
	report, err := os.ReadFile(filepath.Join(dir, ".fixpoint", "report.md"))
	require.NoError(t, err)
	require.Equal(t, "later\n", string(report))
	thread(t, dir, "thread-1", func(th *engine.Thread) {
		require.Equal(t, phase.Done, phase.RunLifecycle.Get(th.Snapshot()).Status)
	})
}
