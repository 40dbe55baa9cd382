package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
	"github.com/ddd26017/fixpoint/store/memstore"
)

var feYes = engine.Decision{Answer: phase.Answer{Approved: true}}

// Capability B3. Fault B31. A fork from before an answer asks again, under a run and
// tickets of its own; the original stays as it is, and what had a result keeps it.
func TestForkAsksAgain(t *testing.T) {
	for name, kept := range map[string]bool{"memory": false, "journal": true} {
		t.Run(name, func(t *testing.T) {
			shop := newPeShop()
			store := memstore.New(memstore.Options{})
			var eng *engine.Engine
			if kept {
				eng = shop.engine(t, store)
			} else {
				eng = shop.engine(t, nil)
			}
			th, err := eng.NewThread("original")
			require.NoError(t, err)
			first, err := th.Run(t.Context(), peSpec, engine.Prompt("sell two"))
			require.NoError(t, err)
			require.Equal(t, phase.Waiting, first.Status)
			paused := th.Snapshot().Revision()
			_, forked := th.Origin()
			require.False(t, forked)

			early, err := th.Fork(t.Context(), paused, "early")
			require.NoError(t, err)
			done, err := th.Resume(t.Context(), peSpec, engine.Input{}, feYes)
			require.NoError(t, err)
			require.Equal(t, phase.ReasonNatural, done.Reason)
			require.EqualValues(t, 2, shop.bodies.Load())
			before, err := th.Export()
			require.NoError(t, err)

			from, forked := early.Origin()
			require.True(t, forked)
			require.Equal(t, engine.Lineage{Thread: "original", Run: first.Run, Revision: paused}, from)
			if kept { // as another process finds it
				early, err = shop.engine(t, store).OpenThread(t.Context(), "early")
				require.NoError(t, err)
			}
			again, err := early.Resume(t.Context(), peSpec, engine.Input{})
			require.NoError(t, err)
			require.Equal(t, phase.Waiting, again.Status, "the answer given to the original is not used")
			require.NotEqual(t, first.Run, again.Run)
			require.Len(t, again.Tickets, 1)
			require.NotEqual(t, first.Tickets[0].ID, again.Tickets[0].ID)
			_, err = early.Resume(t.Context(), peSpec, engine.Input{}, engine.Decision{Answer: phase.Answer{Ticket: first.Tickets[0].ID, Approved: true}})
			require.ErrorIs(t, err, engine.ErrUnknownTicket)
			no, err := early.Resume(t.Context(), peSpec, engine.Input{}, engine.Decision{Answer: phase.Answer{Reason: "not here"}})
			require.NoError(t, err)
			require.Equal(t, phase.ReasonNatural, no.Reason)
			require.Equal(t, again.Run, no.Run, "resuming the fork continues the fork")
			require.EqualValues(t, 1, shop.sold.Get(early.Snapshot()))
			require.EqualValues(t, 2, shop.sold.Get(th.Snapshot()))
			require.EqualValues(t, 2, shop.bodies.Load(), "the call that had its result did not run again")

			after, err := th.Export()
			require.NoError(t, err)
			require.Equal(t, before, after, "the original is as it was, to the letter")
		})
	}
}

// Capability B3. A fork may begin with edits, and goes on like any thread; a
// revision that is not held is an error, and so is a cancelled context.
func TestForkWithEdits(t *testing.T) {
	shop := newPeShop()
	th, err := shop.engine(t, nil).NewThread("original")
	require.NoError(t, err)
	res, err := th.Run(t.Context(), peSpec, engine.Prompt("sell two"))
	require.NoError(t, err)
	_, err = th.Resume(t.Context(), peSpec, engine.Input{}, feYes)
	require.NoError(t, err)
	now := th.Snapshot().Revision()

	fork, err := th.Fork(t.Context(), now, "", shop.sold.With(40), engine.Transcript.Append(inference.System("It is another year.")))
	require.NoError(t, err)
	require.NotEmpty(t, fork.ID())
	require.EqualValues(t, 42, shop.sold.Get(fork.Snapshot()))
	require.EqualValues(t, 2, shop.sold.Get(th.Snapshot()))
	more, err := fork.Run(t.Context(), peSpec, engine.Prompt("sell more"))
	require.NoError(t, err)
	require.NoError(t, more.Err)
	require.NotEqual(t, res.Run, more.Run)

	_, err = th.Fork(t.Context(), now+1, "")
	require.ErrorIs(t, err, engine.ErrNoRevision)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = th.Fork(ended, now, "")
	require.ErrorIs(t, err, context.Canceled)
	unknown := state.NewCounter("nobody.registered", state.Options[int64]{})
	_, err = th.Fork(t.Context(), now, "", unknown.With(1))
	require.ErrorIs(t, err, state.ErrUnknownKey)
}
