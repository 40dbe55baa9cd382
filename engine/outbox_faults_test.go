package engine_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// duFaults are what a journal may do instead of its work.
func duFaults(stop <-chan struct{}) map[string]func() error {
	return map[string]func() error{
		"error":  func() error { return errors.New("no") },
		"panic":  func() error { panic("no") },
		"goexit": func() error { runtime.Goexit(); return nil },
		"hang":   func() error { <-stop; return errors.New("late") },
	}
}

// Capability B7. A journal that fails, panics or hangs at Claim or Settle gives an
// error, and the effect is delivered the next time; a context that has ended delivers
// nothing.
func TestOutboxOfABadJournal(t *testing.T) {
	for _, op := range []string{"claim", "settle"} {
		for _, name := range []string{"error", "panic", "goexit", "hang"} {
			t.Run(op+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					stop := make(chan struct{})
					store, post := duNewStore(memstore.Options{}), &duPost{fail: func(context.Context, string) error { return errors.New("no") }}
					eng, th := duThread(t, store, post)
					_, err := th.Submit(t.Context(), "x", duSends("a"))
					require.NoError(t, err)
					post.fails(nil)
					store.set(map[string]*func() error{"claim": &store.claim, "settle": &store.settle}[op], duFaults(stop)[name])
					rep, err := eng.DeliverOutbox(t.Context())
					require.Error(t, err)
					require.Equal(t, op == "settle", rep.Delivered == 1)
					close(stop)
					synctest.Wait()
					store.set(&store.claim, nil)
					store.set(&store.settle, nil)
					time.Sleep(2 * time.Minute) // the claim runs out
					require.Equal(t, engine.OutboxReport{Delivered: 1}, duDeliver(t, eng))

					ended, cancel := context.WithCancel(t.Context())
					cancel()
					_, err = eng.DeliverOutbox(ended)
					require.ErrorIs(t, err, context.Canceled)
					require.NoError(t, eng.Close(t.Context()))
					_, err = eng.DeliverOutbox(t.Context())
					require.ErrorIs(t, err, engine.ErrClosed)
				})
			})
		}
	}
}

// Capability B7. A context that ends while an effect is being delivered still lets it be
// settled.
func TestOutboxCancelled(t *testing.T) {
	store := duNewStore(memstore.Options{})
	post := &duPost{fail: func(context.Context, string) error { return errors.New("no") }}
	eng, th := duThread(t, store, post)
	_, err := th.Submit(t.Context(), "x", duSends("a", "b"))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	post.fails(func(context.Context, string) error { cancel(); return nil })
	rep, err := eng.DeliverOutbox(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, engine.OutboxReport{Delivered: 1}, rep)
	post.fails(nil)
	require.Equal(t, engine.OutboxReport{Delivered: 1}, duDeliver(t, eng), "the other one was not even claimed")
	require.Empty(t, store.ids())
}

// noOutbox hides the outbox of a store.
type noOutbox struct{ engine.Journal }

// Without an outbox durable effects are delivered as others are.
func TestOutboxThatIsNotThere(t *testing.T) {
	for _, journal := range []engine.Journal{nil, noOutbox{memstore.New(memstore.Options{})}} {
		post := &duPost{}
		eng := duEngine(t, engine.Config{Journal: journal, Plugins: []engine.Plugin{post.plugin()}})
		th, err := eng.NewThread("t")
		require.NoError(t, err)
		_, err = th.Submit(t.Context(), "x", duSends("a"))
		require.NoError(t, err)
		require.Len(t, post.mails(), 1)
		require.Zero(t, duDeliver(t, eng))
	}
}
