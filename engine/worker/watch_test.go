package worker_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/engine/worker"
	"github.com/ddd26017/fixpoint/inference"
)

// Whoever watches a thread sees what its runs do on any worker, in order, and how much of
// it was lost.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal := newStore()
		client := newClient(t, journal)
		model := inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
			text := r.Messages[len(r.Messages)-1].Text
			if text == "long" {
				text = strings.Repeat("<", 100_000)
			}
			return inference.Response{Message: inference.Assistant(text)}, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		type seen struct {
			types  []string
			missed uint64
			stream string
		}
		runs := make(chan seen)
		go func() {
			defer close(runs)
			var s seen
			for e, err := range client.Watch(ctx, "t") {
				if err != nil {
					t.Error(err)
					return
				}
				s.types, s.missed, s.stream = append(s.types, e.Type()), s.missed+e.Missed, e.Stream
				if _, over := e.Event.(engine.RunFinished); over {
					runs <- s
					s = seen{}
				}
			}
		}()
		synctest.Wait()
		_, stop := work(t, config(journal, model))
		submit(t, client, say("u", "not watched"))
		submit(t, client, say("t", "short <&>"))
		first := <-runs
		require.Equal(t, "run_started", first.types[0])
		require.Contains(t, first.types, "inference_finished")
		require.Zero(t, first.missed)
		submit(t, client, say("t", "long"))
		second := <-runs
		require.NotEqual(t, first.stream, second.stream)
		require.NotContains(t, second.types, "inference_finished")
		require.NotZero(t, second.missed)
		require.Equal(t, len(first.types), len(second.types)+int(second.missed))
		cancel()
		for range runs {
		}
		require.NoError(t, stop())
	})
}

// A watcher that stops early, a quiet worker, and a store without notices.
func TestWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal := newStore()
		client := newClient(t, journal)
		c := config(journal, echo)
		_, stop := work(t, c)
		c.Quiet = true
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			for range client.Watch(t.Context(), "t") {
				return
			}
		}()
		synctest.Wait()
		await(t, client, submit(t, client, say("t", "x")))
		<-watched
		require.NoError(t, stop())

		_, stop = work(t, c)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		submit(t, client, say("t", "x"))
		for e := range client.Watch(ctx, "t") {
			require.Fail(t, "it is quiet", "%v", e)
		}
		require.NoError(t, stop())

		for _, err := range newClient(t, mute{journal}).Watch(t.Context(), "t") {
			require.ErrorIs(t, err, worker.ErrNoNotices)
		}
	})
}
