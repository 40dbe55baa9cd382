package notices_test

import (
	"context"
	"encoding/binary"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/store/internal/notices"
)

func TestTopicsKeepApart(t *testing.T) {
	t.Parallel()
	var board notices.Board
	a, again, b := board.Listen(t.Context(), "a"), board.Listen(t.Context(), "a"), board.Listen(t.Context(), "b")
	require.ElementsMatch(t, []string{"a", "b"}, board.Topics())
	data := []byte("one")
	board.Send("a", data)
	board.Send("c", data)
	data[0] = 'x'
	first := <-a
	require.Equal(t, "one", string(first))
	first[0] = 'y'
	require.Equal(t, "one", string(<-again))
	require.Empty(t, b)
}

// A listener that does not listen misses notices, and holds up nobody.
func TestSlowListener(t *testing.T) {
	t.Parallel()
	var board notices.Board
	slow, quick := board.Listen(t.Context(), "a"), board.Listen(t.Context(), "a")
	for n := range 3 * notices.Buffered {
		board.Send("a", binary.BigEndian.AppendUint32(nil, uint32(n)))
		require.EqualValues(t, n, binary.BigEndian.Uint32(<-quick))
	}
	require.Len(t, slow, notices.Buffered)
	for n := range notices.Buffered {
		require.EqualValues(t, n, binary.BigEndian.Uint32(<-slow), "the oldest are kept")
	}
	board.Send("a", []byte("again"))
	require.Equal(t, "again", string(<-slow))
}

func TestEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var board notices.Board
		ctx, cancel := context.WithCancel(t.Context())
		ended, other := board.Listen(ctx, "a"), board.Listen(t.Context(), "a")
		board.Send("a", []byte("kept"))
		cancel()
		synctest.Wait()
		board.Send("a", []byte("late"))
		require.Equal(t, "kept", string(<-ended))
		_, open := <-ended
		require.False(t, open)
		require.Len(t, other, 2)
		already := board.Listen(ctx, "b")
		_, open = <-already
		require.False(t, open, "a context that had ended")
		synctest.Wait()
		require.Equal(t, []string{"a"}, board.Topics())

		board.Close()
		board.Close()
		<-other
		<-other
		_, open = <-other
		require.False(t, open)
		require.Empty(t, board.Topics())
		later := board.Listen(t.Context(), "a")
		board.Send("a", nil)
		require.NotNil(t, <-later)
		board.Close()
	})
}

// All that can happen at once, for the race detector.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	var board notices.Board
	var group sync.WaitGroup
	for n := range 16 {
		group.Go(func() {
			for range 50 {
				ctx, cancel := context.WithCancel(t.Context())
				heard := board.Listen(ctx, "a")
				board.Send("a", []byte{byte(n)})
				if n == 0 {
					board.Close()
				}
				runtime.Gosched()
				cancel()
				for range heard {
				}
			}
		})
	}
	group.Wait()
	require.Empty(t, board.Topics())
}
