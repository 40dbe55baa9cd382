//go:build unix

package crew_test

import (
	"bufio"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/faults/crew"
)

// The watch finds what must not happen, and nothing else.
func TestWatch(t *testing.T) {
	w := crew.NewWatch(2 * time.Second)
	w.See("submit", "", "", "", 0)
	w.See("goes", "a", "", "", time.Second)
	w.See("body", "a", "1", "", time.Second)
	w.See("killed", "a", "", "", 2*time.Second)
	w.See("goes", "b", "", "", 5*time.Second)
	w.See("body", "b", "1", "", 5*time.Second) // its result was not committed
	w.See("result", "b", "1", "", 6*time.Second)
	w.See("effect", "b", "1", "x", 6*time.Second)
	w.See("effect", "c", "1", "x", 7*time.Second)
	repeated, duplicates, takenUp, late, orphaned, err := w.Result()
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, 1, 1}, []int{repeated, duplicates, takenUp, late})
	require.Equal(t, 3*time.Second, orphaned)

	w.See("body", "b", "1", "", 8*time.Second)
	w.See("effect", "b", "1", "y", 8*time.Second)
	repeated, _, _, _, _, err = w.Result()
	require.Equal(t, 1, repeated)
	require.ErrorContains(t, err, "call 1 ran again on b although its result was committed")
	require.ErrorContains(t, err, "the effect of call 1 came as x and as y")
}

// What a worker that was cut off does when it is back is no fault.
func TestWatchLetsZombiesBe(t *testing.T) {
	w := crew.NewWatch(2 * time.Second)
	w.See("goes", "a", "", "", 0)
	w.See("cut", "a", "", "", 0)
	w.See("body", "b", "1", "", time.Second)
	w.See("result", "b", "1", "", time.Second)
	w.See("healed", "a", "", "", time.Second)
	w.See("body", "a", "1", "", 2*time.Second)
	repeated, _, takenUp, _, _, err := w.Result()
	require.NoError(t, err)
	require.Equal(t, []int{0, 1}, []int{repeated, takenUp})
}

// What is sent through a proxy that is cut comes when it is healed, and not before.
func TestProxy(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	p, err := crew.NewProxy(l.Addr().String())
	require.NoError(t, err)
	client, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	server, err := l.Accept()
	require.NoError(t, err)
	defer server.Close()
	lines := bufio.NewReader(server)
	say := func(text string) {
		_, err := client.Write([]byte(text))
		require.NoError(t, err)
	}
	say("one\n")
	got, err := lines.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "one\n", got)

	p.Cut()
	say("two\n")
	require.NoError(t, server.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err = lines.ReadString('\n')
	require.ErrorContains(t, err, "timeout")
	p.Heal()
	require.NoError(t, server.SetReadDeadline(time.Time{}))
	got, err = lines.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "two\n", got)
	require.NoError(t, client.Close())
	_, err = lines.ReadString('\n')
	require.Error(t, err)
	require.NoError(t, p.Close())
}
