package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/store/bolt"
	"github.com/ddd26017/fixpoint/store/storetest"
)

// childFile names the file that a child process of the tests is to write to.
const childFile = "FIXPOINT_BOLT_CHILD"

// childLimit is the size beyond which files of a child process cannot grow.
const childLimit = "FIXPOINT_BOLT_LIMIT"

func TestMain(m *testing.M) {
	if path := os.Getenv(childFile); path != "" {
		if err := child(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// child serves one job until it is done or, more likely, until it is killed.
func child(path string) error {
	if err := limitFiles(os.Getenv(childLimit)); err != nil {
		return err
	}
	j, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		return err
	}
	return errors.Join(storetest.Serve(context.Background(), j, os.Stdin, os.Stdout), j.Close())
}

// A process that writes is killed again and again. Each time the file is whole, and all
// that was acknowledged is in it.
//
// FIXPOINT_KILLS=1000 kills so often instead of five times.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Log("run without -short")
		return
	}
	t.Parallel()
	kills, err := strconv.Atoi(os.Getenv("FIXPOINT_KILLS"))
	if err != nil {
		kills = 5
	}
	path := filepath.Join(t.TempDir(), "threads.db")
	var acks []storetest.Ack
	for n := range kills {
		acks = append(acks, killOnce(t, path, uint64(n), 40+n*37%160)...)
		_, err := bolt.Verify(path, bolt.Options{})
		require.NoError(t, err, "kill %d", n)
		j, err := bolt.Open(path, bolt.Options{})
		require.NoError(t, err, "kill %d", n)
		require.NoError(t, storetest.Check(t.Context(), j, acks), "kill %d", n)
		require.NoError(t, j.Close())
	}
	require.GreaterOrEqual(t, len(acks), kills*40)
	t.Logf("%d kills, %d acknowledged commits, none lost", kills, len(acks))
}

// killOnce runs a child, kills it after so many acknowledgements, and returns all that
// it wrote.
func killOnce(t *testing.T, path string, seed uint64, after int) []storetest.Ack {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childFile+"="+path)
	work := storetest.Work{Threads: []string{"a", "b", "c", "d"}, Writers: 8, Seed: seed, MaxSize: 3000, Every: 10}
	cmd.Stdin = strings.NewReader(work.Job())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var seen bytes.Buffer
	_, err = io.Copy(&seen, &killer{out: out, left: after, kill: cmd.Process.Kill})
	require.NoError(t, err)
	require.Error(t, cmd.Wait(), "the child is killed: %s", &stderr)
	require.Empty(t, stderr.String())
	acks, err := storetest.ReadAcks(&seen)
	require.NoError(t, err)
	return acks
}

// killer passes on what a child writes and kills it after so many lines. What the child
// wrote until it died still comes.
type killer struct {
	out  io.Reader
	left int
	kill func() error
}

// Read implements io.Reader.
func (k *killer) Read(p []byte) (int, error) {
	n, err := k.out.Read(p)
	lines := bytes.Count(p[:n], []byte("\n"))
	if k.left > 0 && k.left <= lines {
		if killErr := k.kill(); killErr != nil {
			return n, killErr
		}
	}
	k.left -= lines
	return n, err
}
