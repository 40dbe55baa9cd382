//go:build servers

package natstest_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/store"
	"github.com/ddd26017/fixpoint/store/nats"
	"github.com/ddd26017/fixpoint/store/nats/natstest"
)

// What means nothing any more goes away: settled effects with their parts, former states of
// effects and leases. What a process left over that ended, the next one cleans up.
func TestCleanUp(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	o := nats.Options{Replicas: 1, AssumeSynced: true}
	gone := open(t, servers, o)
	put(t, gone, commit(1, "left", 0, "mail"))
	claims, err := gone.Claim(t.Context(), "mail", "w", 1, time.Hour)
	require.NoError(t, err)
	require.NoError(t, gone.Settle(t.Context(), claims[0], store.Settlement{}))
	require.NoError(t, gone.Close())

	j := open(t, servers, o)
	c := commit(1, "t", 0, "mail", "mail", "mail", "fax")
	c.Effects[0].Body = make([]byte, 3<<20)
	put(t, j, c)
	claims, err = j.Claim(t.Context(), "mail", "w", 3, time.Hour)
	require.NoError(t, err)
	require.NoError(t, j.Settle(t.Context(), claims[0], store.Settlement{}))
	c = commit(2, "t", 1)
	c.Settles = []store.EffectRef{claims[1].Ref}
	put(t, j, c)
	require.NoError(t, j.Settle(t.Context(), claims[2], store.Settlement{RetryAt: time.Now().Add(time.Hour)}))
	lease, err := j.Acquire(t.Context(), "t", "ann", time.Hour)
	require.NoError(t, err)
	for range 5 {
		lease, err = j.Renew(t.Context(), lease, time.Hour)
		require.NoError(t, err)
	}
	require.EqualValues(t, 6, subjects(t, servers, j, "l.t")["fixpoint.l.t"])
	require.Eventually(t, func() bool {
		effects := subjects(t, servers, j, "e.>")
		return len(effects) == 2 && effects["fixpoint.e.t.1.2.s"] == 2 && effects["fixpoint.e.t.1.3.s"] == 1 &&
			subjects(t, servers, j, "l.t")["fixpoint.l.t"] == 1
	}, 2*time.Minute, time.Second)
	require.NoError(t, j.Release(t.Context(), lease))
}

// An effect that lost its body was settled by a process that did not live to clean up. It
// is not delivered, and goes away, also when others claim it more often than it is looked at.
func TestBury(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	o := nats.Options{Replicas: 1, AssumeSynced: true}
	j, others := open(t, servers, o), []*nats.Journal{open(t, servers, o), open(t, servers, o), open(t, servers, o)}
	put(t, j, commit(1, "t", 0, "mail", "fax"))
	claims, err := j.Claim(t.Context(), "fax", "w", 10, 0)
	require.NoError(t, err)
	require.Len(t, claims, 1)
	js, err := jetstream.New(connect(t, servers.URL()))
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), j.Stream())
	require.NoError(t, err)
	body, err := stream.GetMsg(t.Context(), 1, jetstream.WithGetMsgSubject("fixpoint.e.t.1.1.s"))
	require.NoError(t, err)
	require.NoError(t, stream.DeleteMsg(t.Context(), body.Sequence))

	claims, err = j.Claim(t.Context(), "fax", "w", 10, time.Second)
	require.NoError(t, err)
	require.Empty(t, claims)
	depth(t, j, "fax", 0, 0, 0)
	states := int64(0)
	require.Eventually(t, func() bool {
		for _, other := range others {
			claims, err := other.Claim(t.Context(), "fax", "w", 10, time.Second)
			require.NoError(t, err)
			require.Empty(t, claims)
		}
		effects := subjects(t, servers, j, "e.>")
		states = max(states, int64(effects["fixpoint.e.t.1.1.s"]))
		return len(effects) == 1 && effects["fixpoint.e.t.1.0.s"] > 0
	}, 2*time.Minute, 200*time.Millisecond)
	require.Greater(t, states, int64(5), "it was claimed again and again")
}

// A process that settles an effect with a commit may not know yet that another one has
// claimed it. Nothing is left of the claim.
func TestCleanUpAfterOthers(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	o := nats.Options{Replicas: 1, AssumeSynced: true}
	a, b := open(t, servers, o), open(t, servers, o)
	const n = 40
	lanes := make([]string, n)
	for i := range lanes {
		lanes[i] = "mail"
	}
	put(t, a, commit(1, "t", 0, lanes...))
	depth(t, b, "mail", n, 0, 0)
	depth(t, a, "mail", n, 0, 0)
	for base := range uint64(n) {
		claims, err := b.Claim(t.Context(), "mail", "b", 1, time.Second)
		require.NoError(t, err)
		require.Len(t, claims, 1)
		c := commit(2, "u", base)
		c.Settles = []store.EffectRef{claims[0].Ref}
		put(t, a, c)
	}
	require.Eventually(t, func() bool { return len(subjects(t, servers, a, "e.>")) == 0 }, 2*time.Minute, time.Second)
}
