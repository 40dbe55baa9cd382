//go:build unix

package shell_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/cwd"
	"github.com/ddd26017/fixpoint/plugins/shell"
)

func sh(t testing.TB, dir string, o shell.Options) engine.Plugin {
	t.Helper()
	p, err := shell.New(dir, o)
	require.NoError(t, err)
	return p
}

// do has the model call the tool once for each of the arguments, texts being command
// lines, and returns the results and the thread.
func do(t testing.TB, spec engine.AgentSpec, plugins []engine.Plugin, calls ...any) ([]inference.ToolResult, *engine.Thread) {
	t.Helper()
	config, rec := enginetest.Config(t, plugins...)
	var answers []enginetest.Answer
	for i, c := range calls {
		if text, ok := c.(string); ok {
			c = map[string]any{"command": text}
		}
		answers = append(answers, enginetest.Call(fmt.Sprint("c", i), shell.Tool, c))
	}
	if spec.ToolExecution == engine.ToolsParallel {
		answers = []enginetest.Answer{answers[0].And(answers[1:]...)}
	}
	config.Model = enginetest.NewScript(append(answers, enginetest.Say("done"))...)
	eng, err := engine.New(config)
	require.NoError(t, err)
	th, err := eng.NewThread("")
	require.NoError(t, err)
	spec.ID = "a"
	res, err := th.Run(t.Context(), spec, engine.Prompt("go"))
	require.NoError(t, err)
	require.NoError(t, res.Err)
	var out []inference.ToolResult
	for _, e := range enginetest.Select[engine.ToolFinished](rec.Events()) {
		out = append(out, e.Result)
	}
	return out, th
}

// one runs a single line.
func one(t testing.TB, o shell.Options, call any) (inference.ToolResult, shell.Done) {
	t.Helper()
	out, _ := do(t, engine.AgentSpec{}, []engine.Plugin{sh(t, t.TempDir(), o)}, call)
	return out[0], details(t, out[0])
}

func details(t testing.TB, r inference.ToolResult) (d shell.Done) {
	t.Helper()
	require.NoError(t, r.Details.Decode(&d), r.Content)
	return d
}

func TestRun(t *testing.T) {
	for line, want := range map[string]struct {
		content string
		done    shell.Done
	}{
		"echo one; echo two >&2; echo three": {"one\ntwo\nthree\n", shell.Done{Dir: ".", Bytes: 14}},
		"true":                               {"[no output]", shell.Done{Dir: "."}},
		"printf half; exit 7":                {"half\n[exit code 7]", shell.Done{Dir: ".", ExitCode: 7, Bytes: 4}},
		"exit 1":                             {"[exit code 1]", shell.Done{Dir: ".", ExitCode: 1}},
		"kill -9 $$":                         {"[ended by signal: killed]", shell.Done{Dir: ".", ExitCode: -1}},
		"cat; echo $?":                       {"0\n", shell.Done{Dir: ".", Bytes: 2}},
		"printf 'a\\377b\\000c'":             {"a\uFFFDb\x00c", shell.Done{Dir: ".", Bytes: 5}},
		"# nothing\necho $#":                 {"0\n", shell.Done{Dir: ".", Bytes: 2}},
	} {
		r, done := one(t, shell.Options{}, line)
		require.Equal(t, want.done, done, line)
		require.Equal(t, want.content, r.Content, line)
		require.Equal(t, want.done.ExitCode != 0, r.IsError, line)
	}
}

func TestBadArguments(t *testing.T) {
	for args, want := range map[string]string{
		`{"command":" \n"}`:                                "must be a command line",
		`{"command":"a\u0000b"}`:                           "must be a command line",
		`{"command":"true","timeout_seconds":-1}`:          "want 1 to 3",
		`{"command":"true","timeout_seconds":4}`:           "want 1 to 3",
		`{"command":"true","cwd":"/"}`:                     "cwd",
		`{"command":["true"]}`:                             "command",
		`{"command":"` + strings.Repeat("x", 1<<21) + `"}`: "cannot start sh",
	} {
		out, _ := do(t, engine.AgentSpec{}, []engine.Plugin{sh(t, t.TempDir(), shell.Options{MaxTimeout: 3 * time.Second})}, inference.JSON(args))
		require.True(t, out[0].IsError)
		require.Contains(t, out[0].Content, want)
	}
}

// Nothing of the program's environment reaches a line but what is named.
func TestEnvironment(t *testing.T) {
	t.Setenv("FIXPOINT_TEST_TOKEN", "hidden")
	t.Setenv("FIXPOINT_TEST_MODE", "from outside")
	t.Setenv("HOME", "/home")
	r, _ := one(t, shell.Options{}, "env; cat /proc/$$/environ 2>/dev/null || true")
	require.NotContains(t, r.Content, "hidden")
	require.NotContains(t, r.Content, "FIXPOINT")
	require.Contains(t, r.Content, "HOME=/home\n")
	require.Contains(t, r.Content, "PATH="+os.Getenv("PATH"))
	r, _ = one(t, shell.Options{Env: []string{"PATH", "FIXPOINT_TEST_MODE", "FIXPOINT_TEST_UNSET"}, Set: []string{"A=b=c", "FIXPOINT_TEST_MODE=set"}},
		`echo "$A|$FIXPOINT_TEST_MODE|${FIXPOINT_TEST_UNSET-unset}|${HOME-unset}"`)
	require.Equal(t, "b=c|set|unset|unset\n", r.Content)
}

// Of a long output the beginning and the end are kept, and the cut is stated.
func TestCut(t *testing.T) {
	r, done := one(t, shell.Options{OutputBytes: 20}, "printf 'beginning '; i=0; while [ $i -lt 9999 ]; do printf ääääääääää; i=$((i+1)); done; printf ' the end'")
	require.Equal(t, int64(10+9999*20+8), done.Bytes)
	require.Equal(t, fmt.Sprintf("beginning \n[... %d bytes left out ...]\nä the end", done.Cut), r.Content)
	require.Equal(t, done.Bytes-20, done.Cut)
	r, done = one(t, shell.Options{OutputBytes: 5}, "printf äöüßä")
	require.Equal(t, "ä\n[... 6 bytes left out ...]\nä", r.Content, "no character is cut in two")
	require.Equal(t, int64(6), done.Cut)
}

// fifo makes a named pipe and returns it open for reading. Once written to, it ends when
// the last process that can write to it is gone.
func fifo(t *testing.T) (string, *os.File) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(name, 0o600))
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return name, f
}

// At its limit a line is killed with everything it started, and what it printed is told.
func TestTimeLimit(t *testing.T) {
	name, alive := fifo(t)
	r, done := one(t, shell.Options{Timeout: time.Second},
		fmt.Sprintf("trap '' TERM; (echo up; : > flag; exec sleep 1000) > '%s' & until [ -e flag ]; do :; done; echo waiting; wait", name))
	require.Equal(t, "waiting\n[stopped after 1s]", r.Content)
	require.Equal(t, shell.Done{Dir: ".", ExitCode: -1, TimedOut: true, Bytes: 8}, done)
	require.Equal(t, inference.OutcomeError, r.Outcome)
	text, err := io.ReadAll(alive)
	require.NoError(t, err)
	require.Equal(t, "up\n", string(text))

	r, _ = one(t, shell.Options{MaxTimeout: time.Minute}, map[string]any{"command": "sleep 1000", "timeout_seconds": 1})
	require.Equal(t, "[stopped after 1s]", r.Content)
	r, _ = one(t, shell.Options{MaxTimeout: 100 * time.Millisecond}, map[string]any{"command": "sleep 1000", "timeout_seconds": 1})
	require.Equal(t, "[stopped after 100ms]", r.Content)
}

// A line that ends does not wait for what it left in the background, which is killed.
func TestBackground(t *testing.T) {
	name, alive := fifo(t)
	r, done := one(t, shell.Options{}, fmt.Sprintf("(echo up; : > flag; exec sleep 1000) > '%s' & sleep 1000 & until [ -e flag ]; do :; done; echo started", name))
	require.Equal(t, "started\n", r.Content)
	require.Zero(t, done.ExitCode)
	text, err := io.ReadAll(alive)
	require.NoError(t, err)
	require.Equal(t, "up\n", string(text))
}

// When the run is cancelled the line is killed at once, with everything it started.
func TestCancel(t *testing.T) {
	name := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(name, 0o600))
	config, rec := enginetest.Config(t, sh(t, t.TempDir(), shell.Options{}))
	config.Model = enginetest.NewScript(enginetest.Call("c", shell.Tool, map[string]any{
		"command": fmt.Sprintf("(echo up; exec sleep 1000) > '%s'; echo never", name)}))
	eng, err := engine.New(config)
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("the user had enough")
	ended := make(chan error, 1)
	go func() {
		alive, err := os.Open(name) // waits for the line
		if err == nil {
			_, err = io.ReadFull(alive, make([]byte, 3))
			cancel(enough)
			_, rest := io.ReadAll(alive)
			err = errors.Join(err, rest, alive.Close())
		}
		ended <- err
	}()
	res, err := eng.Run(ctx, engine.AgentSpec{ID: "a"}, engine.Prompt("go"))
	require.NoError(t, err)
	require.Equal(t, phase.ReasonCancelled, res.Reason)
	require.NoError(t, <-ended)
	r := enginetest.Select[engine.ToolFinished](rec.Events())[0].Result
	require.Equal(t, inference.OutcomeCancelled, r.Outcome)
	require.Contains(t, r.Content, "the user had enough")
}

// Capability G1. A line that changes the directory moves the thread, from which the
// event derives and the model is told; nothing that it prints does.
func TestMoves(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"in/a/b", "in/c d\ne", "out"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
	}
	require.NoError(t, os.Symlink("a/b", filepath.Join(dir, "in", "link")))
	root, err := filepath.EvalSymlinks(filepath.Join(dir, "in"))
	require.NoError(t, err)
	place, err := cwd.New(root, cwd.Options{})
	require.NoError(t, err)
	plugins := []engine.Plugin{place, sh(t, root, shell.Options{Cwd: cwd.Dir, OutputBytes: 1000})}
	type step struct{ line, content, dir string }
	steps := []step{
		{"cd a && pwd", root + "/a\n", "a"},
		{"pwd; cd b; exit 3", root + "/a\n[exit code 3]", "a/b"},
		{"(cd ..); cd . ", "[no output]", "a/b"},
		{"cd ../..; kill -9 $$", "[ended by signal: killed]", "a/b"},
		{"cd ..; exec true", "[no output]", "a/b"},
		{"printf '\\0" + root + "\\0'", "\x00" + root + "\x00", "a/b"},
		{"echo '" + root + "/a' >&3; sh -c 'printf \"\\0" + root + "\\0\" >&3'", "[no output]", "a/b"},
		{"set -x; cd ..", "+ cd ..\n", "a"},
		{"cd ../../out; ls", "[it ended outside of the root; the working directory is still a]", "a"},
		{"cd ../link", "[no output]", "a/b"},
		{"cd '" + root + "/c d\ne'", "[no output]", "c d\ne"},
		{"mkdir x; cd x; rmdir ../x", "[no output]", "c d\ne"},
		{"exec 3>&-; cd ..; echo still here", "still here\n", "c d\ne"},
		{"cd ..; echo 'unclosed", "", "c d\ne"},
		{"cd ..", "[no output]", "."},
	}
	var lines []any
	for _, s := range steps {
		lines = append(lines, s.line)
	}
	out, th := do(t, engine.AgentSpec{}, plugins, lines...)
	at, told := ".", 0
	for i, s := range steps {
		if s.content != "" {
			require.Equal(t, s.content, out[i].Content, s.line)
		}
		want := shell.Done{Dir: at}
		if s.dir != at {
			want.Moved = s.dir
			told++
		}
		d := details(t, out[i])
		d.Bytes, d.ExitCode = 0, 0
		require.Equal(t, want, d, s.line)
		at = s.dir
	}
	require.Equal(t, at, cwd.Dir.Get(th.Snapshot()))
	for _, m := range engine.Transcript.Get(th.Snapshot()).All() {
		if m.Role == inference.RoleSystem {
			told--
		}
	}
	require.Zero(t, told, "the model is told of each change")
}

// The directory may be gone, or not be what it was, by the time a line begins.
func TestGone(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "a"), 0o755))
	place, err := cwd.New(root, cwd.Options{})
	require.NoError(t, err)
	plugins := []engine.Plugin{place, sh(t, root, shell.Options{Cwd: cwd.Dir})}
	out, _ := do(t, engine.AgentSpec{}, plugins, "cd a", "rmdir ../a", "true")
	require.Equal(t, "error: shell: the working directory a is gone; change it", out[2].Content)
	require.NoError(t, os.Mkdir(filepath.Join(root, "a"), 0o755))
	out, _ = do(t, engine.AgentSpec{}, plugins, "cd a", "rmdir ../a; ln -s '"+outside+"' ../a", "touch x")
	require.Equal(t, "error: shell: the working directory a leads outside of the root; change it", out[2].Content)
}

// Without the key, or in an engine that does not have it, lines begin in the root.
func TestWithoutKey(t *testing.T) {
	for _, o := range []shell.Options{{}, {Cwd: cwd.Dir}} {
		root, err := filepath.EvalSymlinks(t.TempDir())
		require.NoError(t, err)
		out, _ := do(t, engine.AgentSpec{}, []engine.Plugin{sh(t, root, o)}, "mkdir a; cd a", "pwd")
		require.Equal(t, root+"\n", out[1].Content)
		require.Empty(t, details(t, out[0]).Moved)
	}
}

// Lines at the same time begin in one place; of two that move, one counts.
func TestParallel(t *testing.T) {
	root := t.TempDir()
	place, err := cwd.New(root, cwd.Options{})
	require.NoError(t, err)
	out, th := do(t, engine.AgentSpec{ToolExecution: engine.ToolsParallel}, []engine.Plugin{place, sh(t, root, shell.Options{Cwd: cwd.Dir})},
		"mkdir -p a; cd a", "mkdir -p b; cd b", "echo here")
	require.Equal(t, "a", cwd.Dir.Get(th.Snapshot()))
	require.False(t, out[0].IsError)
	require.Contains(t, out[1].Content, "state changes were refused")
	require.Equal(t, "here\n", out[2].Content)
}

func TestNewRefuses(t *testing.T) {
	for _, o := range []shell.Options{
		{Timeout: -1}, {MaxTimeout: -1}, {OutputBytes: -1}, {Timeout: 2, MaxTimeout: 1}, {Set: []string{"x"}}, {Set: []string{"=x"}},
	} {
		_, err := shell.New(t.TempDir(), o)
		require.ErrorIs(t, err, shell.ErrOptions)
		require.ErrorContains(t, err, "shell: ")
	}
	_, err := shell.New(filepath.Join(t.TempDir(), "nowhere"), shell.Options{})
	require.ErrorContains(t, err, "shell: cannot use the directory")
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = shell.New(file, shell.Options{})
	require.ErrorContains(t, err, "no directory")
	t.Setenv("PATH", "")
	_, err = shell.New(t.TempDir(), shell.Options{})
	require.ErrorContains(t, err, "cannot find the shell")
}

// FuzzOutput prints any bytes: what is told of them is as a plain model says, and no
// bytes move the thread.
func FuzzOutput(f *testing.F) {
	for _, seed := range []string{"", "short", "exactly sixteen.", "a little more than that", "ääääääääääää", "\xff\xfe", "\x00/tmp\x00", strings.Repeat("\xe2\x82", 20)} {
		f.Add([]byte(seed))
	}
	root := f.TempDir()
	require.NoError(f, os.Mkdir(filepath.Join(root, "a"), 0o755))
	place, err := cwd.New(root, cwd.Options{})
	require.NoError(f, err)
	plugins := []engine.Plugin{place, sh(f, root, shell.Options{Cwd: cwd.Dir, OutputBytes: 16})}
	f.Fuzz(func(t *testing.T, text []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(root, "text"), text, 0o600))
		out, th := do(t, engine.AgentSpec{}, plugins, "cat text")
		done := details(t, out[0])
		require.Equal(t, int64(len(text)), done.Bytes)
		require.True(t, utf8.ValidString(out[0].Content))
		switch {
		case len(text) == 0:
			require.Equal(t, "[no output]", out[0].Content)
		case len(text) <= 16:
			require.Equal(t, string(bytes.ToValidUTF8(text, []byte("\uFFFD"))), out[0].Content)
		default:
			require.GreaterOrEqual(t, done.Cut, int64(len(text)-16))
			require.LessOrEqual(t, done.Cut, int64(len(text)-16+2*utf8.UTFMax))
			require.Contains(t, out[0].Content, fmt.Sprintf("\n[... %d bytes left out ...]\n", done.Cut))
		}
		require.Equal(t, ".", cwd.Dir.Get(th.Snapshot()))
	})
}
