//go:build linux

package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/cli"
)

// tty is a terminal of the test's own: what is typed goes into keys, and what it
// echoes can be read.
type tty struct {
	keys *os.File
	file *os.File // for the command

	mu     sync.Mutex
	echoed bytes.Buffer
}

// ioctl does without File.Fd, after which a read could not be interrupted.
func ioctl(f *os.File, request uintptr, arg unsafe.Pointer) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var errno syscall.Errno
	err = raw.Control(func(fd uintptr) { _, _, errno = syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(arg)) })
	if err == nil && errno != 0 {
		err = errno
	}
	return err
}

func openTTY(t *testing.T) *tty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	var unlock, number int32
	require.NoError(t, ioctl(master, syscall.TIOCSPTLCK, unsafe.Pointer(&unlock)))
	require.NoError(t, ioctl(master, syscall.TIOCGPTN, unsafe.Pointer(&number)))
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	c := &tty{keys: master, file: slave}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1024)
		for {
			n, err := master.Read(buf)
			c.mu.Lock()
			c.echoed.Write(buf[:n])
			c.mu.Unlock()
			if err != nil { // it was closed
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = master.Close() // ends reads of the command, too
		<-done
		_ = slave.Close()
	})
	return c
}

func (c *tty) echoes(t *testing.T) bool {
	var state syscall.Termios
	require.NoError(t, ioctl(c.file, syscall.TCGETS, unsafe.Pointer(&state)))
	return state.Lflag&syscall.ECHO != 0
}

func (c *tty) seen() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.echoed.String()
}

// typed runs a command at a terminal at which a line is typed when it is ready.
func typed(t *testing.T, line string, ready func(c *tty) bool, args ...string) (outcome, string) {
	t.Helper()
	c := openTTY(t)
	var out, errs bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- cli.Run(t.Context(), args, cli.IO{In: c.file, Out: &out, Err: &errs, Plugins: desk})
	}()
	require.Eventually(t, func() bool { return ready(c) }, time.Minute, time.Millisecond)
	_, err := c.keys.WriteString(line)
	require.NoError(t, err)
	got := <-code
	// What was echoed has been read when what comes behind it is.
	const end = "<end>"
	_, err = c.file.WriteString(end)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return strings.HasSuffix(c.seen(), end) }, time.Minute, time.Millisecond)
	return outcome{got, out.String(), errs.String()}, strings.TrimSuffix(c.seen(), end)
}

// A secret that is typed is not on the screen, and other answers are.
func TestAnswerAtATerminal(t *testing.T) {
	store := asking(t, `{"kind":"secret"}`)
	got, echo := typed(t, "hunter2-swordfish\n", func(c *tty) bool { return !c.echoes(t) }, "answer", "q", "--store", store, "-q")
	require.Equal(t, cli.ExitOK, got.code, got.out+got.err)
	require.Contains(t, got.err, "value, not shown")
	require.Contains(t, got.out, `I heard: the answer is "[secret]"`)
	require.NotContains(t, echo+got.out+got.err, "hunter2")

	store = asking(t, `{"kind":"choice","choices":["red","blue"]}`)
	always := func(*tty) bool { return true }
	got, echo = typed(t, "green\n2\n", always, "answer", "q", "--store", store, "-q")
	require.Equal(t, cli.ExitOK, got.code, got.out+got.err)
	require.Contains(t, got.err, "that is none of the choices")
	require.Contains(t, got.out, `I heard: the answer is "blue"`)
	require.Equal(t, "green\r\n2\r\n", echo)

	store = asking(t, `{"kind":"text","schema":{"minLength":3}}`)
	got, _ = typed(t, "x\n\n", always, "answer", "q", "--store", store, "-q")
	require.Equal(t, cli.ExitOK, got.code, got.out+got.err)
	require.Contains(t, got.err, "it is shorter than 3 characters")
	require.Contains(t, got.out, "I heard: denied: declined at the terminal")

	store = asking(t, `{"kind":"text"}`)
	got, _ = typed(t, "\x04", always, "answer", "q", "--store", store, "-q")
	require.Equal(t, cli.ExitUsage, got.code, "the end of the input is no answer")
	require.True(t, strings.Contains(got.err, "no answer was given") && stillOpen(t, store), got.err)
}
