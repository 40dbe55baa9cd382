package bolt_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/store/bolt"
	"github.com/ddd26017/fixpoint/store/storetest"
)

// limitFiles makes writes beyond a size fail, as they do on a full disk.
func limitFiles(limit string) error {
	if limit == "" {
		return nil
	}
	size, err := strconv.ParseUint(limit, 10, 64)
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGXFSZ)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: size})
}

// A file that cannot grow stops the writer with a clear error. What was acknowledged is
// there, the store opens while there is no room, and goes on when there is.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	var acks []storetest.Ack
	for n, limit := range []int{200_000, 200_000, 400_000, 3_000_000} {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), childFile+"="+path, fmt.Sprintf("%s=%d", childLimit, limit))
		work := storetest.Work{Threads: []string{"a", "b"}, Writers: 4, Seed: uint64(n), MaxSize: 20_000}
		cmd.Stdin = strings.NewReader(work.Job())
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		require.Error(t, cmd.Run(), "the child runs out of room")
		require.Contains(t, stderr.String(), "file too large", "the cause")
		require.Contains(t, stderr.String(), "open it again", "what to do")
		fresh, err := storetest.ReadAcks(&stdout)
		require.NoError(t, err)
		acks = append(acks, fresh...)

		_, err = bolt.Verify(path, bolt.Options{})
		require.NoError(t, err)
		j := open(t, path, bolt.Options{})
		require.NoError(t, storetest.Check(t.Context(), j, acks))
		require.NoError(t, j.Close())
	}
	require.NotEmpty(t, acks)
}
