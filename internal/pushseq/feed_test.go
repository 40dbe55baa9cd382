package pushseq_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/pushseq"
)

func ExampleNewFeed() {
	feed := pushseq.NewFeed(func(s string) { fmt.Println(s) }, 64, time.Second)
	feed.Push("a")
	feed.Rouse()
	feed.Push("b")
	feed.Rouse()
	feed.Shut()
	feed.Join(time.Now())
	// Output:
	// a
	// b
}

func TestFeedOutlivesPanics(t *testing.T) {
	var got []int
	feed := pushseq.NewFeed(func(i int) {
		if i == 1 {
			panic(i)
		}
		got = append(got, i)
	}, 1, 0)
	for i := range 3 {
		feed.Push(i)
		feed.Rouse()
	}
	feed.Shut()
	feed.Join(time.Now())
	require.Equal(t, []int{0, 2}, got)
}

// A function that hangs has one grace in all, and then gets no more.
func TestFeedGivesUpAfterItsGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var got []int
		feed := pushseq.NewFeed(func(i int) {
			got = append(got, i)
			<-release
		}, 1, time.Minute)
		feed.Push(0)
		feed.Rouse()
		synctest.Wait()
		for i := range 2 {
			_, full := feed.Full()
			require.False(t, full)
			feed.Push(i + 1)
			feed.Rouse()
		}
		room, full := feed.Full()
		require.True(t, full)

		start := time.Now()
		feed.Await(room, start)
		require.Equal(t, time.Minute, time.Since(start))
		_, full = feed.Full()
		require.False(t, full, "nobody waits for it any more")

		feed.Shut()
		start = time.Now()
		feed.Join(start)
		require.Zero(t, time.Since(start), "the grace is used up")
		close(release)
		synctest.Wait()
		require.Equal(t, []int{0}, got)
	})
}

// Room is told as soon as the function took what there was.
func TestFeedTellsOfRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		feed := pushseq.NewFeed(func(int) { time.Sleep(time.Second) }, 0, 0)
		feed.Push(0)
		feed.Rouse()
		synctest.Wait()
		feed.Push(1)
		feed.Rouse()
		room, full := feed.Full()
		require.True(t, full)
		start := time.Now()
		feed.Await(room, start)
		require.Equal(t, time.Second, time.Since(start))
		feed.Shut()
		feed.Join(start)
		require.Equal(t, 2*time.Second, time.Since(start))
	})
}

func TestFeedIsOverWhenItsGoroutineEnds(t *testing.T) {
	feed := pushseq.NewFeed(func(int) { runtime.Goexit() }, 0, 0)
	feed.Push(0)
	feed.Rouse()
	feed.Push(1)
	feed.Rouse()
	feed.Shut()
	feed.Join(time.Now())
	_, full := feed.Full()
	require.False(t, full)
}

// The memory of queues is used again; no value is lost, doubled or changed by that,
// whatever comes between rousing and pushing.
func TestFeedPassesEveryValueOnce(t *testing.T) {
	for _, every := range []int{1, 2, 7} {
		var got []int
		feed := pushseq.NewFeed(func(i int) { got = append(got, i) }, 3, 0)
		for i := range 1000 {
			feed.Push(i)
			if i%every == 0 {
				feed.Rouse()
				feed.Rouse()
				runtime.Gosched()
			}
		}
		feed.Shut()
		feed.Join(time.Now())
		require.Len(t, got, 1000)
		for i, v := range got {
			require.Equal(t, i, v)
		}
	}
}
