//go:build unix

package exechook_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/plugins/exechook"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/phase"
)

// A program that hangs is killed with all its children, also those that hold its
// output open, and what it had still meant to do does not happen.
//
// Capability M9. Report 8. Report 10.
func TestTimeoutKillsTheTree(t *testing.T) {
	s := newStage(t)
	gone := s.watch("alive")
	s.fifo("never")
	s.on(exechook.PreToolUse, "", `exec 9>alive; echo up > started; (read x < never; echo late > late) & sh -c 'read x < never' & wait; echo later > later`,
		timeout(3*time.Second))
	s.play(bash("c", "ls"))
	gone()
	require.Empty(t, s.ran)
	require.Equal(t, "up\n", s.file("started"))
	require.Equal(t, gate.GateFailed, s.resolved("c").Cause)
	require.NoFileExists(t, s.dir+"/late")
	require.NoFileExists(t, s.dir+"/later")
}

// Cancelling the run does not wait for a program that hangs.
//
// Report 8.
func TestCancelKillsTheTree(t *testing.T) {
	s := newStage(t)
	gone := s.watch("alive")
	started := s.signal("started")
	s.fifo("never")
	s.on(exechook.PreToolUse, "", `exec 9>alive; echo up > started; sh -c 'read x < never' & wait`, timeout(time.Hour))
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	go func() {
		cancel(cmp.Or(started(), enough))
	}()
	res := s.run(ctx, enginetest.NewScript(bash("c", "ls"), enginetest.Say("done")))
	gone()
	require.Equal(t, phase.ReasonCancelled, res.Reason)
	require.ErrorIs(t, res.Err, enough)
	require.Empty(t, s.ran)
	require.Len(t, enginetest.Select[engine.ToolFinished](s.rec.Events()), 1)
}

// What a program leaves running ends with it, and does not keep the run waiting.
func TestWhatIsLeftIsKilled(t *testing.T) {
	s := newStage(t)
	gone := s.watch("alive")
	s.fifo("never")
	s.on(exechook.PreToolUse, "", `exec 9>alive; (read x < never) & echo '{"systemMessage": "there"}'`, timeout(time.Hour))
	s.play(bash("c", "ls"))
	gone()
	require.Len(t, s.ran, 1)
	require.Len(t, s.notices, 1)
	require.Equal(t, "there", s.notices[0].Text)
}

// A program need not read its input, and may write more than counts.
func TestPipes(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	for name, command := range map[string]string{
		"reads nothing":      `true`,
		"closes its input":   `exec <&-`,
		"reads a little":     `head -c 1 > /dev/null`,
		"writes much":        `head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2`,
		"writes before":      `head -c 300000 /dev/zero; cat > /dev/null`,
		"echoes its input":   `cat`, // JSON, but none of the members that decide
		"closes its outputs": `exec >&- 2>&-; cat > seen`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.options.MaxOutput = 4 << 20
			s.on(exechook.PreToolUse, "", command)
			s.play(bash("c", large))
			require.Len(t, s.ran, 1)
			require.Empty(t, s.notices)
		})
	}
}

// What counts of an output is bounded, and the cut is stated.
func TestOutputIsCut(t *testing.T) {
	s := newStage(t)
	s.options.MaxOutput = 64
	s.on(exechook.PreToolUse, "", `i=0; while [ $i -lt 50 ]; do printf 'é%s' $i >&2; i=$((i+1)); done; exit 2`)
	s.play(bash("c", "ls"))
	content := s.result("c").Content
	require.Contains(t, content, "[cut: 64 of 190 bytes]")
	require.Less(t, len(content), 120)
	require.NotContains(t, content, "\uFFFD")
}

// No more programs run at a time than allowed.
func TestParallel(t *testing.T) {
	s := newStage(t)
	s.options.Parallel = 1
	for i := range 8 {
		s.on(exechook.PreToolUse, "", fmt.Sprintf(`mkdir lock || exit 2; echo %d >> order; rmdir lock`, i))
	}
	s.play(bash("c", "ls"))
	require.Len(t, s.ran, 1)
	require.Len(t, strings.Fields(s.file("order")), 8)
}

func TestNoSuchDirectory(t *testing.T) {
	s := newStage(t)
	s.options.Dir = s.dir + "/gone"
	s.on(exechook.PreToolUse, "", `true`)
	s.play(bash("c", "ls"))
	require.Empty(t, s.ran)
	require.Equal(t, exechook.StartFailed, s.notices[0].Cause)
	require.Contains(t, s.notices[0].Text, "there is no working directory")
}

// A shell named by the rule runs the command, and with args there is none.
func TestShellAndArgs(t *testing.T) {
	s := newStage(t)
	s.options.Shell = []string{"false"}
	s.on(exechook.PreToolUse, "", `echo "$0" >> seen`, func(r *exechook.Rule) { r.Shell = "sh" })
	s.on(exechook.PreToolUse, "", `touch`, func(r *exechook.Rule) { r.Args = []string{"a b", "$HOME"} })
	s.play(bash("c", "ls"))
	require.Len(t, s.ran, 1)
	require.Equal(t, "sh\n", s.file("seen"))
	require.FileExists(t, s.dir+"/a b")
	require.FileExists(t, s.dir+"/$HOME")
}
