package worker_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/engine/worker"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/store"
	"github.com/ddd26017/fixpoint/store/faultstore"
)

// An activation with a key that was there is the one that was there, for a window; one
// without is always new.
func TestRepeatedSubmissions(t *testing.T) {
	journal := newStore()
	client := newClient(t, journal)
	a := say("t", "sell")
	a.Key = "order 1"
	first := submit(t, client, a)
	require.False(t, first.Repeated)
	again := submit(t, newClient(t, journal), a)
	require.True(t, again.Repeated)
	require.Equal(t, first.Run, again.Run)
	require.Equal(t, first.Seq, again.Seq)
	require.NotEqual(t, submit(t, client, say("t", "x")).Seq, submit(t, client, say("t", "x")).Seq)
	other := a
	other.Thread = "u"
	require.False(t, submit(t, client, other).Repeated, "keys are of one thread")
}

// A key is forgotten after so many other activations.
func TestKeysAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal := newStore()
		client := newClient(t, journal)
		_, stop := work(t, config(journal, echo))
		a := worker.Activation{Thread: "t", Kind: worker.KindWake, Key: "k"}
		first := submit(t, client, a)
		for range worker.Window - 1 {
			submit(t, client, worker.Activation{Thread: "t", Kind: worker.KindWake})
			time.Sleep(time.Second)
		}
		require.Equal(t, first.Seq, submit(t, client, a).Seq)
		submit(t, client, worker.Activation{Thread: "t", Kind: worker.KindWake})
		require.False(t, submit(t, client, a).Repeated)
		require.NoError(t, stop())
	})
}

func TestInboxesAreBounded(t *testing.T) {
	client := newClient(t, newStore())
	for range worker.MaxPending {
		submit(t, client, say("t", "x"))
	}
	_, err := client.Submit(t.Context(), say("t", "x"))
	require.ErrorIs(t, err, worker.ErrFull)
	_, err = client.Cancel(t.Context(), "t", "")
	require.NoError(t, err, "it makes room")
}

func TestActivationsAreChecked(t *testing.T) {
	client := newClient(t, newStore())
	ask := []engine.Decision{{}}
	for _, a := range []worker.Activation{
		{},
		{Agent: "helper"},
		{Thread: "t"},
		{Thread: worker.InboxPrefix + "t", Agent: "helper"},
		{Thread: "t", Agent: "helper", Kind: "odd"},
		{Thread: "t", Agent: "helper", Priority: "odd"},
		{Thread: "t", Agent: "helper", Decisions: ask},
		{Thread: "t", Agent: "helper", Reason: "odd"},
		{Thread: "t", Kind: worker.KindDecide},
		{Thread: "t", Kind: worker.KindDecide, Decisions: ask, Reason: "odd"},
		{Thread: "t", Kind: worker.KindDecide, Decisions: ask, Agent: "helper"},
		{Thread: "t", Kind: worker.KindCancel, Agent: "helper"},
		{Thread: "t", Kind: worker.KindWake, Reason: "odd"},
		{Thread: "t", Kind: worker.KindWake, Decisions: ask},
	} {
		_, err := client.Submit(t.Context(), a)
		require.ErrorIs(t, err, worker.ErrActivation, "%+v", a)
	}
}

// Whatever the store answers, what was submitted is there once.
func TestSubmitResolvesUnknownOutcomes(t *testing.T) {
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			inner := newStore()
			faulty, err := faultstore.New(inner, faultstore.Config{Seed: seed, Rate: map[faultstore.Fault]float64{
				faultstore.FailBefore: 0.05, faultstore.FailAfter: 0.2, faultstore.NeverAnswer: 0.05, faultstore.Delay: 0.15, faultstore.Repeat: 0.1, faultstore.Stale: 0.1,
			}})
			require.NoError(t, err)
			client := newClient(t, faulty)
			for n := range 30 {
				a := say("t", fmt.Sprint(n))
				a.Key = fmt.Sprint(n)
				for {
					if _, err := client.Submit(t.Context(), a); err == nil {
						break
					}
				}
			}
			faulty.Flush(t.Context())
			status, err := newClient(t, inner).Status(t.Context(), "t")
			require.NoError(t, err)
			require.Len(t, status.Pending, 30)
			for n, item := range status.Pending {
				require.Equal(t, fmt.Sprint(n), item.Activation.Messages[0].Text)
			}
		})
	}
}

// Many clients at once lose nothing and do nothing twice.
func TestConcurrentSubmissions(t *testing.T) {
	journal := newStore()
	errs := make(chan error)
	const clients, each = 8, 30
	for c := range clients {
		client := newClient(t, journal)
		go func() {
			var err error
			for n := range each {
				a := say("t", fmt.Sprint(c, " ", n))
				a.Key = fmt.Sprint(c%4, " ", n)
				_, e := client.Submit(context.Background(), a)
				err = errors.Join(err, e)
			}
			errs <- err
		}()
	}
	for range clients {
		require.NoError(t, <-errs)
	}
	status, err := newClient(t, journal).Status(t.Context(), "t")
	require.NoError(t, err)
	require.Len(t, status.Pending, clients*each/2)
}

// A long-lived inbox does not grow, and neither does its load.
func TestInboxStaysSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal := newStore()
		client := newClient(t, journal)
		_, stop := work(t, config(journal, echo))
		for n := range 100 {
			await(t, client, submit(t, client, say("t", fmt.Sprint(n))))
		}
		require.NoError(t, stop())
		image, err := journal.Load(t.Context(), worker.InboxPrefix+"t", 0)
		require.NoError(t, err)
		require.EqualValues(t, 200, image.Revision)
		require.NotNil(t, image.Snapshot)
		require.Less(t, len(image.Tail), 100)
		_, err = journal.LoadAt(t.Context(), worker.InboxPrefix+"t", 1)
		require.ErrorIs(t, err, store.ErrNoRevision)
		require.Len(t, texts(t, journal, "t"), 200)
		_, err = client.Await(t.Context(), worker.Receipt{Thread: "t", Seq: 1})
		require.ErrorIs(t, err, worker.ErrForgotten)
	})
}

// A fork of a thread, or a thread that is made anew, has an inbox of its own, and the
// position that its state came with is not about that one.
func TestPositionsBelongToTheirInbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal := newStore()
		client := newClient(t, journal)
		c := config(journal, echo)
		w, stop := work(t, c)
		for range 5 {
			await(t, client, submit(t, client, say("t", "x")))
		}
		th, err := w.Engine().OpenThread(t.Context(), "t")
		require.NoError(t, err)
		_, err = th.Fork(t.Context(), th.Snapshot().Revision(), "fork")
		require.NoError(t, err)
		require.Equal(t, worker.Applied, await(t, client, submit(t, client, say("fork", "forked"))).Fate)
		require.Contains(t, texts(t, journal, "fork"), "you said forked")

		require.NoError(t, journal.Delete(t.Context(), worker.InboxPrefix+"t"))
		require.Equal(t, worker.Applied, await(t, client, submit(t, client, say("t", "anew"))).Fate)
		require.Contains(t, texts(t, journal, "t"), "you said anew")
		require.NoError(t, client.Delete(t.Context(), "t"))
		await(t, client, submit(t, client, say("t", "empty")))
		require.Equal(t, []string{"empty", "you said empty"}, texts(t, journal, "t"))
		require.NoError(t, stop())
	})
}

// box is a vault.
type box struct {
	mu      sync.Mutex
	secrets []string
}

func (b *box) Keep(_ context.Context, _, secret string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.secrets = append(b.secrets, secret)
	return fmt.Sprint("handle ", len(b.secrets)-1), nil
}

func (b *box) Reveal(_ context.Context, handle string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var n int
	if _, err := fmt.Sscanf(handle, "handle %d", &n); err != nil {
		return "", err
	}
	return b.secrets[n], nil
}

// A secret does not stand in the inbox: it goes to the vault, or is refused.
func TestSecretsAreKeptOutOfInboxes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal, vault := newStore(), &box{}
		told := make(chan inference.JSON, 1)
		c := config(journal, callsOnce("login"), engine.NewPlugin("safe", func(r *engine.Registrar) error {
			r.Tool(engine.NewTool(inference.ToolSpec{Name: "login"}, func(_ context.Context, pc *phase.Context, _ struct{}) (engine.Output, error) {
				answer, ok := pc.Answer()
				if !ok {
					return engine.Output{Ask: &gate.Ticket{Kind: gate.Secret, Message: "Password?"}}, nil
				}
				told <- answer.Value
				return engine.Text("in"), nil
			}))
			return nil
		}))
		c.Vault = vault
		_, stop := work(t, c)
		client := newClient(t, journal)
		require.Equal(t, phase.Waiting, await(t, client, submit(t, client, say("t", "go"))).Status)
		a := on("t", yes("d"))
		a.Decisions[0].Answer.Value = `"hunter2"`
		_, err := client.Submit(t.Context(), a)
		require.ErrorIs(t, err, worker.ErrSecret)

		client, err = worker.NewClient(worker.ClientConfig{Journal: journal, Vault: vault})
		require.NoError(t, err)
		o := await(t, client, submit(t, client, a))
		require.Equal(t, worker.Applied, o.Fate, o.Error)
		require.Equal(t, phase.Done, o.Status)
		require.Equal(t, inference.JSON(`"hunter2"`), <-told)
		require.NoError(t, stop())
		for _, id := range []string{"t", worker.InboxPrefix + "t"} {
			image, err := journal.Load(t.Context(), id, 0)
			require.NoError(t, err)
			text := image.Snapshot
			for _, r := range image.Tail {
				text = append(text, r.Record...)
			}
			require.NotContains(t, string(text), "hunter2")
		}
	})
}

// Await ends with its context.
func TestAwaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t, newStore())
		r := submit(t, client, say("t", "x"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := client.Await(ctx, r)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = client.Await(ctx, worker.Receipt{Thread: "t", Seq: r.Seq})
		require.Error(t, err)
	})
}
