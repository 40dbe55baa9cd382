package child_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/faults/child"
)

var (
	echo = child.Part{Name: "echo", Run: func(_ context.Context, args []string) error {
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			fmt.Println(args[0], lines.Text())
		}
		return lines.Err()
	}}
	failing  = child.Part{Name: "failing", Run: func(context.Context, []string) error { return errors.New("it broke") }}
	stranger = child.Part{Name: "stranger"}
)

func TestMain(m *testing.M) {
	child.Main(echo, failing)
	os.Exit(m.Run())
}

// A part runs in a process of its own and ends it as it ended.
func TestParts(t *testing.T) {
	t.Parallel()
	cmd, err := echo.Command(t.Context(), "heard:")
	require.NoError(t, err)
	cmd.Stdin = strings.NewReader("one\ntwo\n")
	out, err := cmd.Output()
	require.NoError(t, err)
	require.Equal(t, "heard: one\nheard: two\n", string(out))

	for says, want := range map[string]struct {
		part child.Part
		code int
	}{"it broke": {failing, 1}, `was not given the part "stranger"`: {stranger, 2}} {
		cmd, err := want.part.Command(t.Context())
		require.NoError(t, err)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		var exit *exec.ExitError
		require.ErrorAs(t, cmd.Run(), &exit)
		require.Equal(t, want.code, exit.ExitCode())
		require.Contains(t, stderr.String(), says)
	}
}

// A stopped child answers only after it goes on, and one that ended cannot be stopped.
func TestStop(t *testing.T) {
	t.Parallel()
	cmd, err := echo.Command(t.Context(), ">")
	require.NoError(t, err)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	answers := bufio.NewReader(out)
	ask := func() string {
		line, err := answers.ReadString('\n')
		require.NoError(t, err)
		return line
	}
	fmt.Fprintln(in, "1")
	require.Equal(t, "> 1\n", ask())
	err = child.Stop(cmd.Process)
	if runtime.GOOS == "windows" {
		require.ErrorIs(t, err, errors.ErrUnsupported)
	} else {
		require.NoError(t, err)
		require.NoError(t, child.Continue(cmd.Process))
	}
	fmt.Fprintln(in, "2")
	require.Equal(t, "> 2\n", ask())
	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait())
	require.Error(t, child.Stop(cmd.Process))
}
