package worker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine/worker"
	"github.com/ddd26017/fixpoint/phase"
)

func TestInputsAreAppliedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal := newStore()
		client := newClient(t, journal)
		first := submit(t, client, say("t", "one"))
		w, stop := work(t, config(journal, echo))
		second := submit(t, client, say("t", "two"))
		o := await(t, client, first)
		require.Equal(t, worker.Applied, o.Fate)
		require.Equal(t, phase.Done, o.Status)
		require.Equal(t, phase.ReasonNatural, o.Reason)
		require.Equal(t, first.Run, o.Run)
		require.Equal(t, worker.Applied, await(t, client, second).Fate)
		require.Equal(t, []string{"one", "you said one", "two", "you said two"}, texts(t, journal, "t"))
		require.NoError(t, stop())
		require.EqualValues(t, 2, w.Stats().Applied)
		d, err := journal.Depth(t.Context(), worker.Lane{}.String())
		require.NoError(t, err)
		require.Zero(t, d, "nothing is left")
		status, err := client.Status(t.Context(), "t")
		require.NoError(t, err)
		require.Empty(t, status.Pending)
		require.Len(t, status.Done, 2)
		time.Sleep(time.Minute)
	})
}
