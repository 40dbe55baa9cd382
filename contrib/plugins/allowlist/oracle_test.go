package allowlist_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"github.com/ddd26017/fixpoint/contrib/plugins/allowlist"
)

// permitted says by hand what the list of the tests is meant to allow: a command with all
// its expansions done.
func permitted(args []string) bool {
	has := func(bad func(string) bool) bool { return slices.ContainsFunc(args[1:], bad) }
	abbreviates := func(arg string, of ...string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return len(name) > 2 && slices.ContainsFunc(of, func(flag string) bool { return strings.HasPrefix(flag, name) })
	}
	switch rest := args[1:]; args[0] {
	case "ls", "wc", "echo", "time":
		return true
	case "true":
		return len(rest) == 0
	case "[", "test":
		return !has(func(a string) bool {
			return slices.Contains([]string{"-v", "-R", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"}, a)
		})
	case "git":
		switch {
		case slices.Equal(rest, []string{"status"}):
			return true
		case len(rest) > 0 && rest[0] == "log":
			return !has(func(a string) bool { return abbreviates(a, "--output", "--ext-diff", "--textconv") })
		case len(rest) > 0 && rest[0] == "diff":
			return !has(func(a string) bool { return len(a) > 1 && a[0] == '-' && a != "--stat" && a != "--output=/tmp/x" })
		}
		return false
	case "go":
		return slices.Equal(rest, []string{"test", "./..."})
	case "find":
		return !has(func(a string) bool {
			return slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"}, a)
		})
	case "sort":
		return !has(func(a string) bool {
			return abbreviates(a, "--output", "--compress-program") || len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.Contains(a, "o")
		})
	case "tar":
		return !has(func(a string) bool {
			return abbreviates(a, "--checkpoint-action", "--to-command", "--use-compress-program") || len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.ContainsAny(a, "IF")
		}) && (len(rest) == 0 || rest[0] != "" && (rest[0][0] == '-' || !strings.ContainsAny(rest[0], "IF")))
	case "cat":
		return len(rest) == 1 && strings.HasPrefix(rest[0], "docs/") && strings.Count(rest[0], "/") == 1 && rest[0] != "docs/.."
	case "./run.sh":
		return len(rest) == 0
	case "sed":
		return slices.Equal(rest, []string{"-n", "1,20p", "a.txt"})
	case "head":
		return !has(func(a string) bool { return a != "-q" && !strings.HasPrefix(a, "-n") })
	case "env":
		for len(rest) > 0 && strings.Contains(rest[0], "=") {
			rest = rest[1:]
		}
		return len(rest) > 0 && permitted(rest)
	case "nice":
		if len(rest) > 2 && rest[0] == "-n" {
			rest = rest[2:]
		}
		return len(rest) > 0 && permitted(rest)
	case "timeout":
		return len(rest) > 1 && permitted(rest[1:])
	case "xargs": // may add anything
		return len(rest) > 0 && permitted(append(slices.Clone(rest), "--output=x", "-exec", "-o", "-I", "-c"))
	case "sudo", "exec":
		return len(rest) > 0 && permitted(rest)
	}
	return false
}

var errEnough = errors.New("enough")

// executed runs a line in an interpreter in which no command does anything, among files
// and variables that look like flags. It returns the commands that it ran, and the files
// that it opened.
func executed(t *testing.T, line string) (ran [][]string, opened []string) {
	t.Helper()
	f, err := syntax.NewParser().Parse(strings.NewReader(line), "")
	require.NoError(t, err)
	var mu sync.Mutex
	files := fstest.MapFS{"--output=pwned": {}, "-exec": {}, "-o": {}, "-delete": {}, "IF": {}, "a.go": {}, "docs/a": {}, "docs/-n": {}}
	r, err := interp.New(
		interp.Env(expand.ListEnviron("x=--output=pwned -exec reboot", "y=-delete", "HOME=/home", "PATH=/bin", "f=-o", "file=--ext-diff")),
		interp.StdIO(strings.NewReader("--output=x\n"), io.Discard, io.Discard),
		interp.CallHandler(func(_ context.Context, args []string) ([]string, error) {
			mu.Lock()
			defer mu.Unlock()
			ran = append(ran, slices.Clone(args))
			if len(ran) > 50 {
				return nil, errEnough // a loop without an end
			}
			return []string{"true"}, nil
		}),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc {
			return func(context.Context, []string) error { return errors.New("nothing is to be run") }
		}),
		interp.OpenHandler(func(_ context.Context, path string, _ int, _ os.FileMode) (io.ReadWriteCloser, error) {
			mu.Lock()
			defer mu.Unlock()
			opened = append(opened, path)
			return nil, fs.ErrPermission
		}),
		interp.ReadDirHandler2(func(_ context.Context, path string) ([]fs.DirEntry, error) {
			if strings.HasSuffix(path, "docs") {
				return files.ReadDir("docs")
			}
			return files.ReadDir(".")
		}),
		interp.StatHandler(func(context.Context, string, bool) (fs.FileInfo, error) { return fs.Stat(files, "a.go") }),
	)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_ = r.Run(ctx, f) // how it ends does not matter
	return ran, opened
}

// harmless fails the test if a line that was approved does more than the list allows.
func harmless(t *testing.T, line string) {
	t.Helper()
	ran, opened := executed(t, line)
	for _, args := range ran {
		require.True(t, permitted(args), "%q runs %q", line, args)
	}
	for _, name := range opened {
		require.Equal(t, "/dev/null", name, "%q opens a file", line)
	}
}

// What is approved runs, when an interpreter runs it, only what the list allows; and the
// oracle can tell: the same commands fail its test where they should.
func TestApprovedLinesInAnInterpreter(t *testing.T) {
	for _, line := range approved {
		harmless(t, line)
	}
	for _, line := range []string{"reboot", "ls; reboot", "git log $x", "find *", "sort \"$f\"", "git log --outp=a", "xargs git log", "env reboot", "cat docs/../a", "tar xIf a b"} {
		ran, _ := executed(t, line)
		require.True(t, slices.ContainsFunc(ran, func(args []string) bool { return !permitted(args) }), line)
	}
	_, opened := executed(t, "ls > out")
	require.Len(t, opened, 1)
}

// Whatever the line: if it is approved, an interpreter runs nothing from it that the list
// does not allow, and opens no file.
func FuzzJudge(f *testing.F) {
	for _, line := range append(slices.Clone(approved), unsure...) {
		f.Add(line)
	}
	s := settings(f, list)
	f.Fuzz(func(t *testing.T, line string) {
		verdict, why := s.Judge(line)
		require.NotEmpty(t, why)
		if verdict == allowlist.Approved {
			harmless(t, line)
		}
	})
}

// Lines put together at random from pieces that tend to go wrong.
func FuzzPieces(f *testing.F) {
	pieces := []string{
		"ls", "git", "log", "status", "find", ".", "echo", "reboot", "sort", "docs/a", "cat", "env", "xargs", "sudo", "file=a", "PATH=b", "x", "-o", "-exec", "--output=z", "-c",
		" ", " ", " ", " ", "\n", ";", "&&", "||", "|", "&", "(", ")", "{", "}", "$", "$x", "${x}", "$(", "`", "'", "\"", "\\", "<", ">", "/dev/null", "2>&1", "<<E\n", "\nE\n",
		"if ", "; then ", "; fi", "for f in ", "; do ", "; done", "while ", "case ", " in ", ") ", ";;", " esac", "*", "?", "[", "]", "~", "!", "#", "=", "{a,b}", "..", "-", "$'", "time ", "exec ", "eval ",
	}
	f.Add([]byte{0, 22, 26, 22, 1, 22, 2})
	f.Add([]byte("some bytes to begin with"))
	s := settings(f, list)
	f.Fuzz(func(t *testing.T, picks []byte) {
		var line strings.Builder
		for _, p := range picks {
			fmt.Fprint(&line, pieces[int(p)%len(pieces)])
		}
		if verdict, _ := s.Judge(line.String()); verdict == allowlist.Approved {
			harmless(t, line.String())
		}
	})
}
