package engine_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/store/faultstore"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// Capability B6. A store that fails, panics or hangs at Acquire starts no run and leaves
// the thread usable; at Release it only leaves the lease to run out.
func TestLeaseOfABadJournal(t *testing.T) {
	for _, name := range []string{"error", "panic", "goexit", "hang"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stop := make(chan struct{})
				store, post := duNewStore(memstore.Options{}), &duPost{}
				th := duOwned(t, store, "ann", post, nil)
				store.set(&store.acquire, duFaults(stop)[name])
				_, err := th.Run(t.Context(), gaAgent, engine.Prompt("go"))
				require.Error(t, err)
				_, err = th.Submit(t.Context(), "x", duSends("never"))
				require.Error(t, err)
				require.Empty(t, post.mails())
				store.set(&store.acquire, nil)

				store.set(&store.release, duFaults(stop)[name])
				gaRun(t, th)
				gaRun(t, th)
				store.set(&store.release, nil)
				other := duOwned(t, store, "bob", post, nil)
				_, err = other.Run(t.Context(), gaAgent, engine.Prompt("go"))
				require.ErrorIs(t, err, engine.ErrLeaseHeld)
				time.Sleep(time.Minute)
				gaRun(t, other)
				close(stop)
				synctest.Wait()
			})
		})
	}
}

// Capability B6. An acquisition whose outcome is unknown is made again.
func TestLeaseWithAnUnknownOutcome(t *testing.T) {
	for seed := range uint64(40) {
		inner := memstore.New(memstore.Options{})
		store, err := faultstore.New(inner, faultstore.Config{Seed: seed, Rate: map[faultstore.Fault]float64{faultstore.FailAfter: 0.4}})
		require.NoError(t, err)
		post := &duPost{}
		eng := duEngine(t, engine.Config{Journal: store, Owner: "ann", Plugins: []engine.Plugin{
			post.plugin(), gaOn("mailer", phase.StepStart, duEmits(duMail.New("x"))),
		}})
		th, err := eng.NewThread("t")
		require.NoError(t, err)
		for range 3 {
			_, err := th.Run(t.Context(), gaAgent, engine.Prompt("go"))
			for err != nil && !errors.Is(err, engine.ErrJournalConflict) { // nothing ran, and the thread is as usable as before
				_, err = th.Run(t.Context(), gaAgent, engine.Prompt("go"))
			}
			require.NoError(t, err, "seed %d", seed)
		}
		again, err := duEngine(t, engine.Config{Journal: inner, Plugins: []engine.Plugin{post.plugin()}}).OpenThread(t.Context(), "t")
		require.NoError(t, err)
		require.EqualValues(t, 3, duSent.Get(again.Snapshot()), "seed %d", seed)
		require.Len(t, post.mails(), 3)
	}
}

// Capability B6. Only leases and settled effects between the opening of a thread and its
// run do no harm.
func TestLeaseAfterOtherLeases(t *testing.T) {
	store, post := memstore.New(memstore.Options{}), &duPost{}
	first := duOwned(t, store, "ann", post, nil)
	gaRun(t, first)
	th := duOwned(t, store, "bob", post, nil)
	for _, owner := range []string{"carl", "dora"} {
		lease, err := store.Acquire(t.Context(), "t", owner, time.Minute)
		require.NoError(t, err)
		_, err = store.Append(t.Context(), engine.JournalCommit{ID: [16]byte{byte(len(owner))}, Thread: "t", Base: lease.Epoch, Epoch: lease.Epoch})
		require.NoError(t, err)
		require.NoError(t, store.Release(t.Context(), lease))
	}
	gaRun(t, th)
	_, err := first.Submit(t.Context(), "x", duSends("late"))
	require.ErrorIs(t, err, engine.ErrJournalConflict)
	require.EqualValues(t, 2, duSent.Get(th.Snapshot()))
}

// Capability B6. A thread that was deleted and begun anew by somebody else is not the
// one that was opened.
func TestLeaseOfADeletedThread(t *testing.T) {
	store, post := memstore.New(memstore.Options{}), &duPost{}
	th := duOwned(t, store, "ann", post, nil)
	gaRun(t, th)
	require.NoError(t, store.Delete(t.Context(), "t"))
	_, err := th.Run(t.Context(), gaAgent, engine.Prompt("go"))
	require.ErrorIs(t, err, engine.ErrJournalConflict)
}

// onlyJournal hides everything optional of a store.
type onlyJournal struct{ engine.Journal }

// Config.Owner says nothing to a journal without leases, nor without a journal.
func TestLeaseWithoutALeaser(t *testing.T) {
	for _, journal := range []engine.Journal{nil, onlyJournal{memstore.New(memstore.Options{})}} {
		post := &duPost{}
		eng := duEngine(t, engine.Config{Journal: journal, Owner: "ann", Plugins: []engine.Plugin{post.plugin()}})
		th, err := eng.NewThread("t")
		require.NoError(t, err)
		gaRun(t, th)
		_, err = th.Submit(t.Context(), "x", duSends("x"))
		require.NoError(t, err)
	}
}

// Capability B6. A decision that is refused gives the lease up again.
func TestLeaseAfterARefusedDecision(t *testing.T) {
	store := memstore.New(memstore.Options{})
	owned := func(owner string) *engine.Thread {
		c := newPeShop().config(store)
		c.Owner = owner
		th, err := duEngine(t, c).OpenThread(t.Context(), "t")
		require.NoError(t, err)
		return th
	}
	th := owned("ann")
	_, err := th.Run(t.Context(), peSpec, engine.Prompt("sell two"))
	require.NoError(t, err)
	_, err = th.Resume(t.Context(), peSpec, engine.Input{}, engine.Decision{Answer: phase.Answer{Ticket: "nobody's"}})
	require.ErrorIs(t, err, engine.ErrUnknownTicket)
	_, err = th.Run(t.Context(), peSpec, engine.Prompt("sell two"))
	require.ErrorIs(t, err, engine.ErrWaiting)
	res, err := owned("bob").Resume(t.Context(), peSpec, engine.Input{}, feYes)
	require.NoError(t, err)
	require.NoError(t, errors.Join(res.Err))
	require.Equal(t, phase.ReasonNatural, res.Reason)
}
