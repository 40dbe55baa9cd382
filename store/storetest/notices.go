package storetest

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

// patience is how long the kit waits for what has to come.
const patience = 5 * time.Second

func listen(ctx context.Context, t testing.TB, j store.Journal, topic string) <-chan []byte {
	t.Helper()
	heard, err := j.(store.Notifier).Listen(ctx, topic)
	noError(t, err, "listen to %q", topic)
	return heard
}

func notify(t testing.TB, j store.Journal, topic string, data []byte) {
	t.Helper()
	noError(t, j.(store.Notifier).Notify(ctxOf(t), topic, data), "notify %q", topic)
}

// hear waits for the next notice.
func hear(t testing.TB, heard <-chan []byte, what string) []byte {
	t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case data, open := <-heard:
		if !open {
			t.Fatalf("%s: the channel was closed", what)
		}
		return data
	case <-late.C:
		t.Fatalf("%s: nothing came", what)
	}
	return nil
}

// ends reports whether a channel is closed in time; what is in it before is passed over.
func ends(heard <-chan []byte) bool {
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		select {
		case _, open := <-heard:
			if !open {
				return true
			}
		case <-late.C:
			return false
		}
	}
}

// together runs n calls at the same time.
func together(n int, call func(n int) error) []error {
	start := make(chan struct{})
	failures := make([]error, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			<-start
			failures[i] = call(i)
		})
	}
	close(start)
	group.Wait()
	return failures
}

var noticeTests = []test{
	{"all who listen hear it", func(t *testing.T, f Fixture) {
		notify(t, f.Journal, "wake", []byte("nobody listens"))
		first, second, other := listen(t.Context(), t, f.Journal, "wake"), listen(t.Context(), t, f.Journal, "wake"), listen(t.Context(), t, f.Journal, "sleep")
		for _, text := range []string{"one", "", "two"} {
			data := []byte(text)
			notify(t, f.Journal, "wake", data)
			spoil(data)
			mine := hear(t, first, "the first listener")
			equal(t, text, string(mine), "what the first listener heard")
			spoil(mine)
			equal(t, text, string(hear(t, second, "the second listener")), "what the second listener heard")
		}
		notify(t, f.Journal, "sleep", []byte("last"))
		equal(t, "last", string(hear(t, other, "the listener of another topic")), "what the listener of another topic heard first")
		for n, heard := range []<-chan []byte{first, second} {
			select {
			case data := <-heard:
				t.Fatalf("listener %d heard %q a second time, or of another topic", n+1, data)
			default:
			}
		}
	}},
	{"each once, in the order they were sent", func(t *testing.T, f Fixture) {
		const notices = 500
		heard := listen(t.Context(), t, f.Journal, "count")
		failures := make(chan error, 1)
		ctx := ctxOf(t)
		go func() {
			var err error
			for n := 0; n < notices && err == nil; n++ {
				err = f.Journal.(store.Notifier).Notify(ctx, "count", strconv.AppendInt(nil, int64(n), 10))
			}
			failures <- err
		}()
		// Some may be missed, even the end, which therefore is repeated.
		const end = "end"
		last := -1
		repeat := time.NewTicker(10 * time.Millisecond)
		defer repeat.Stop()
		late := time.After(4 * patience) // for all of them
		for {
			select {
			case err := <-failures:
				noError(t, err, "notify")
				failures = nil
			case <-repeat.C:
				if failures == nil {
					notify(t, f.Journal, "count", []byte(end))
				}
			case data := <-heard:
				if string(data) == end {
					equal(t, true, last >= 0, "something was heard")
					return
				}
				n, err := strconv.Atoi(string(data))
				noError(t, err, "notice %q", data)
				if n <= last {
					t.Fatalf("notice %d was heard after %d", n, last)
				}
				last = n
			case <-late:
				t.Fatalf("nothing came after notice %d", last)
			}
		}
	}},
	{"up to the largest", func(t *testing.T, f Fixture) {
		heard := listen(t.Context(), t, f.Journal, "large")
		large := make([]byte, store.MaxNotice+1)
		for i := range large {
			large[i] = byte(i * 7)
		}
		err := f.Journal.(store.Notifier).Notify(t.Context(), "large", large)
		isError(t, err, "notice that is too large", store.ErrTooLarge)
		for _, size := range []int{store.MaxNotice, 1, 7999, 8000, 8001, store.MaxNotice - 1, 0} {
			notify(t, f.Journal, "large", large[:size])
			if data := hear(t, heard, fmt.Sprintf("a notice of %d bytes", size)); !bytes.Equal(data, large[:size]) {
				t.Fatalf("a notice of %d bytes came as %d others", size, len(data))
			}
		}
	}},
	{"topics with odd names", func(t *testing.T, f Fixture) {
		var all []<-chan []byte
		for _, topic := range oddNames {
			all = append(all, listen(t.Context(), t, f.Journal, topic))
		}
		for n := range oddNames {
			topic := oddNames[len(oddNames)-1-n]
			notify(t, f.Journal, topic, []byte("to "+topic))
		}
		for n, topic := range oddNames {
			equal(t, fmt.Sprintf("to %q", topic), fmt.Sprintf("to %q", hear(t, all[n], fmt.Sprintf("topic %q", topic))[3:]), "what topic %q heard", topic)
		}
		for n, topic := range oddNames {
			select {
			case data := <-all[n]:
				t.Fatalf("topic %q heard %q too", topic, data)
			default:
			}
		}
	}},
	{"a listener that is slow holds up nobody", func(t *testing.T, f Fixture) {
		slow, quick := listen(t.Context(), t, f.Journal, "many"), listen(t.Context(), t, f.Journal, "many")
		const notices = 1500
		data := make([]byte, 100)
		for n := range notices {
			notify(t, f.Journal, "many", data)
			if n%50 == 0 {
				hear(t, quick, "a quick listener")
				for len(quick) > 0 {
					<-quick
				}
			}
		}
		if len(slow) >= notices {
			t.Fatalf("all %d notices are kept for a listener that does not listen", notices)
		}
		hear(t, slow, "a slow listener") // it goes on when it listens
	}},
	{"the end of a listener", func(t *testing.T, f Fixture) {
		ctx, cancel := context.WithCancel(t.Context())
		first, second := listen(ctx, t, f.Journal, "wake"), listen(t.Context(), t, f.Journal, "wake")
		notify(t, f.Journal, "wake", []byte("one"))
		hear(t, first, "the first listener")
		cancel()
		equal(t, true, ends(first), "the channel is closed when its context has ended")
		hear(t, second, "the second listener")
		notify(t, f.Journal, "wake", []byte("two"))
		equal(t, "two", string(hear(t, second, "the second listener")), "what the second listener heard")
		notifier := f.Journal.(store.Notifier)
		if _, err := notifier.Listen(ctx, "wake"); err != nil {
			isError(t, err, "listen with a context that has ended", context.Canceled)
		}
		isError(t, notifier.Notify(ctx, "wake", nil), "notify with a context that has ended", context.Canceled)
		select {
		case data := <-second:
			t.Fatalf("%q was heard, and nobody sent it", data)
		default:
		}

		noError(t, f.Journal.Close(), "close")
		equal(t, true, ends(second), "the channel is closed when the store is")
		_, err := notifier.Listen(t.Context(), "wake")
		isError(t, err, "listen after close", store.ErrClosed)
		isError(t, notifier.Notify(t.Context(), "wake", nil), "notify after close", store.ErrClosed)
	}},
	{"listeners leave nothing behind", func(t *testing.T, f Fixture) {
		const listeners = 500
		before := runtime.NumGoroutine()
		ctx, cancel := context.WithCancel(t.Context())
		var all []<-chan []byte
		for n := range listeners {
			all = append(all, listen(ctx, t, f.Journal, fmt.Sprint("topic ", n%40)))
		}
		cancel()
		for n, heard := range all {
			equal(t, true, ends(heard), "channel %d is closed", n)
		}
		// Other tests may run beside this one, so it does not count exactly.
		deadline := time.Now().Add(patience)
		for runtime.NumGoroutine() > before+listeners/2 {
			if time.Now().After(deadline) {
				t.Fatalf("%d goroutines, before %d listeners came and went %d", runtime.NumGoroutine(), listeners, before)
			}
			runtime.Gosched()
		}
	}},
	{"many listen and notify", func(t *testing.T, f Fixture) {
		const each = 40
		ctx, cancel := context.WithCancel(ctxOf(t))
		defer cancel()
		topics := []string{"a", "b", "c"}
		counts := make([]map[string]int, 12)
		var listeners sync.WaitGroup
		for n := range counts {
			heard := listen(ctx, t, f.Journal, topics[n%len(topics)])
			counts[n] = map[string]int{}
			listeners.Go(func() {
				for data := range heard {
					counts[n][string(data)]++
				}
			})
		}
		failures := together(9, func(n int) (err error) {
			for i := 0; i < each && err == nil; i++ {
				topic := topics[n%len(topics)]
				err = f.Journal.(store.Notifier).Notify(ctx, topic, fmt.Appendf(nil, "%s %d %d", topic, n, i))
				if i%10 == 0 { // some come and go meanwhile
					passing, stop := context.WithCancel(ctx)
					_, listenErr := f.Journal.(store.Notifier).Listen(passing, topic)
					stop()
					if err == nil {
						err = listenErr
					}
				}
			}
			return err
		})
		for n, err := range failures {
			noError(t, err, "notifier %d", n)
		}
		final := listen(ctx, t, f.Journal, "a")
		notify(t, f.Journal, "a", []byte("a end"))
		hear(t, final, "a listener that came late")
		cancel()
		ended := make(chan struct{})
		go func() {
			listeners.Wait()
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(patience):
			t.Fatal("channels are open though their context has ended")
		}
		for n, count := range counts {
			if len(count) == 0 {
				t.Fatalf("listener %d heard nothing", n)
			}
			for data, times := range count {
				equal(t, topics[n%len(topics)], data[:1], "topic of notice %q", data)
				equal(t, 1, times, "times that listener %d heard %q", n, data)
			}
		}
	}},
}
