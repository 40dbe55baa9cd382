package worker_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/engine/worker"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/store"
)

// empty fails the test unless all wake-ups are settled.
func empty(t testing.TB, client *worker.Client) {
	t.Helper()
	lanes, err := client.Lanes(t.Context())
	require.NoError(t, err)
	require.Empty(t, lanes)
}

// Inputs of a thread are applied in the order in which they were submitted, and nothing is
// left of them but their outcomes.
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
		empty(t, client)
		status, err := client.Status(t.Context(), "t")
		require.NoError(t, err)
		require.Empty(t, status.Pending)
		require.Len(t, status.Done, 2)
		require.Error(t, w.Run(t.Context()), "a second time")
	})
}

// A run that waits for people takes up no worker. Their decision goes on with it on
// another one, and inputs wait until then.
func TestDecisionsGoOnWithARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal, s := newStore(), newShop()
		client := newClient(t, journal)
		c := config(journal, s.model(), s.plugin())
		c.Concurrency = 1
		first, stop := work(t, c)
		o := await(t, client, submit(t, client, say("t", "ask")))
		require.Equal(t, phase.Waiting, o.Status)
		later := submit(t, client, say("t", "sell"))
		await(t, client, submit(t, client, say("u", "sell")))
		status, err := client.Status(t.Context(), "t")
		require.NoError(t, err)
		require.Len(t, status.Tickets, 1)
		require.Len(t, status.Pending, 1)
		require.Zero(t, first.Stats().Running)
		require.NoError(t, stop())

		_, stop = work(t, c)
		decided := await(t, client, submit(t, client, on("t", yes("d"))))
		require.Equal(t, phase.Done, decided.Status)
		require.Equal(t, o.Run, decided.Run)
		require.Equal(t, phase.Done, await(t, client, later).Status)
		require.EqualValues(t, 2, sold.Get(open(t, journal, "t").Snapshot()))

		repeated := await(t, client, submit(t, client, on("t", yes("d"))))
		require.Equal(t, worker.Applied, repeated.Fate, "it changes nothing: %s", repeated.Error)
		late := await(t, client, submit(t, client, on("t", yes("late"))))
		require.Equal(t, worker.Refused, late.Fate)
		require.Contains(t, late.Error, "waits for an answer")
		require.NoError(t, stop())
		empty(t, client)
	})
}

// Tickets that run out are answered by their default, without anybody submitting anything.
func TestTicketsRunOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal, s := newStore(), newShop()
		client := newClient(t, journal)
		_, stop := work(t, config(journal, s.model(), s.plugin()))
		require.Equal(t, phase.Waiting, await(t, client, submit(t, client, say("t", "hurry hurry"))).Status)
		next := submit(t, client, say("t", "sell"))
		begin := time.Now()
		require.Equal(t, phase.Done, await(t, client, next).Status)
		require.InDelta(t, 2*time.Minute, time.Since(begin), float64(10*time.Second))
		require.EqualValues(t, 1, sold.Get(open(t, journal, "t").Snapshot()))
		require.NoError(t, stop())
		empty(t, client)
	})
}

// A timer holds up nothing, and goes off on a worker that was not there when it was set.
func TestTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal := newStore()
		client := newClient(t, journal)
		a := say("t", "soon")
		begin := time.Now()
		a.NotBefore = begin.Add(2 * time.Hour)
		r := submit(t, client, a)
		_, stop := work(t, config(journal, echo))
		await(t, client, submit(t, client, say("t", "now")))
		require.Less(t, time.Since(begin), time.Minute)
		require.NoError(t, stop())
		_, stop = work(t, config(journal, echo))
		await(t, client, r)
		require.InDelta(t, 2*time.Hour, time.Since(begin), float64(10*time.Second))
		require.Equal(t, []string{"now", "you said now", "soon", "you said soon"}, texts(t, journal, "t"))
		require.NoError(t, stop())
		empty(t, client)
	})
}

// A cancel ends the run under way, on whatever worker, and drops what was submitted before
// it, timers excepted.
func TestCancelEndsARun(t *testing.T) {
	for _, notices := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var journal store.Journal = newStore()
			if !notices {
				journal = mute{journal.(whole)}
			}
			s := newShop()
			under := make(chan struct{}, 8)
			s.body = func(ctx context.Context, _ string) { under <- struct{}{}; <-ctx.Done() }
			client := newClient(t, journal)
			_, stop := work(t, config(journal, s.model(), s.plugin()))
			_, stop2 := work(t, config(journal, s.model(), s.plugin()))
			first := submit(t, client, say("t", "sell"))
			dropped := submit(t, client, say("t", "two"))
			timer := say("t", "three")
			timer.NotBefore = time.Now().Add(time.Hour)
			kept := submit(t, client, timer)
			<-under // a cancel that comes before would only drop it
			begin := time.Now()
			o := await(t, client, submitted(client.Cancel(t.Context(), "t", "enough")))
			require.Equal(t, first.Run, o.Run)
			require.Equal(t, phase.ReasonCancelled, o.Reason)
			require.Equal(t, "enough", o.Detail)
			require.Less(t, time.Since(begin), 3*time.Second)
			require.Equal(t, phase.ReasonCancelled, await(t, client, first).Reason)
			require.Equal(t, worker.Dropped, await(t, client, dropped).Fate)
			require.Equal(t, worker.Applied, await(t, client, kept).Fate)
			o = await(t, client, submitted(client.Cancel(t.Context(), "t", "")))
			require.Equal(t, worker.Applied, o.Fate, "there is nothing to cancel, which is fine")
			require.NoError(t, errors.Join(stop(), stop2()))
			empty(t, client)
			require.Equal(t, ended.Get(open(t, journal, "t").Snapshot()).Slice()[0], first.Run)
		})
	}
}

func submitted(r worker.Receipt, err error) worker.Receipt {
	if err != nil {
		panic(err)
	}
	return r
}

// whole is all that a store can do.
type whole interface {
	store.Journal
	store.Leaser
	store.Queue
	store.Notifier
}

// mute is a store without notices.
type mute struct{ whole }

func (mute) Notify() {}

// A cancel calls a waiting run off.
func TestCancelEndsAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal, s := newStore(), newShop()
		client := newClient(t, journal)
		_, stop := work(t, config(journal, s.model(), s.plugin()))
		first := submit(t, client, say("t", "ask"))
		require.Equal(t, phase.Waiting, await(t, client, first).Status)
		dropped := submit(t, client, say("t", "sell"))
		o := await(t, client, submitted(client.Cancel(t.Context(), "t", "")))
		require.Equal(t, phase.Done, o.Status)
		require.Equal(t, phase.ReasonCancelled, o.Reason)
		require.Equal(t, worker.Dropped, await(t, client, dropped).Fate)
		require.Equal(t, phase.Done, await(t, client, submit(t, client, say("t", "sell"))).Status)
		snap := open(t, journal, "t").Snapshot()
		require.EqualValues(t, 1, sold.Get(snap))
		require.Contains(t, ended.Get(snap).Slice(), first.Run)
		require.NoError(t, stop())
		empty(t, client)
	})
}

// An activation that fails again and again is given up. Those behind it wait for that, and
// then go on. It can be submitted anew when the fault is mended.
func TestPoisonIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal := newStore()
		client := newClient(t, journal)
		var attempts atomic.Int64
		var mended atomic.Bool
		c := config(journal, echo)
		c.MaxAttempts = 4
		specs := c.Specs
		c.Specs = func(ctx context.Context, agent string) (engine.AgentSpec, error) {
			if agent == "poison" {
				if mended.Load() {
					return engine.AgentSpec{ID: "poison"}, nil
				}
				if attempts.Add(1)%2 == 0 {
					panic("no")
				}
			}
			return specs(ctx, agent)
		}
		w, stop := work(t, c)
		a := say("t", "bad")
		a.Agent, a.Key = "poison", "k"
		bad := submit(t, client, a)
		good := submit(t, client, say("t", "good"))
		begin := time.Now()
		o := await(t, client, bad)
		require.Equal(t, worker.Dead, o.Fate)
		require.Contains(t, o.Error, "panicked: no")
		require.EqualValues(t, 4, attempts.Load())
		require.Greater(t, time.Since(begin), 5*time.Second, "1, 2 and 4 s")
		require.Equal(t, worker.Applied, await(t, client, good).Fate)
		status, err := client.Status(t.Context(), "t")
		require.NoError(t, err)
		require.Len(t, status.Dead, 1)
		require.Equal(t, 4, status.Dead[0].Attempts)
		time.Sleep(time.Second)
		dead, err := journal.Dead(t.Context(), worker.Lane{}.String(), 10)
		require.NoError(t, err)
		require.Len(t, dead, 1)
		require.Equal(t, bad.Seq, dead[0].Ref.Revision)
		require.Contains(t, dead[0].Error, "panicked: no")
		require.EqualValues(t, 3, w.Stats().Retries)
		require.EqualValues(t, 1, w.Stats().Dead)

		mended.Store(true)
		_, err = client.Requeue(t.Context(), "t", good.Seq)
		require.ErrorIs(t, err, worker.ErrNotDead)
		again := submitted(client.Requeue(t.Context(), "t", bad.Seq))
		require.Equal(t, worker.Applied, await(t, client, again).Fate)
		_, err = client.Requeue(t.Context(), "t", bad.Seq)
		require.ErrorIs(t, err, worker.ErrNotDead)
		dead, err = journal.Dead(t.Context(), worker.Lane{}.String(), 10)
		require.NoError(t, err)
		require.Empty(t, dead)
		require.Equal(t, []string{"good", "you said good", "bad", "you said bad"}, texts(t, journal, "t"))
		require.NoError(t, stop())
		empty(t, client)
	})
}

// What a run can never be made of is refused at once.
func TestBadInputIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal := newStore()
		client := newClient(t, journal)
		_, stop := work(t, config(journal, echo))
		a := say("t", "x")
		a.Messages[0].Role = "odd"
		o := await(t, client, submit(t, client, a))
		require.Equal(t, worker.Refused, o.Fate)
		require.Contains(t, o.Error, "role")
		require.NoError(t, stop())
		empty(t, client)
	})
}

// A run that brings its worker down each time is ended for good after so many times, and
// the thread is free for others.
func TestRunThatKillsWorkersIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal, s := newStore(), newShop()
		client := newClient(t, journal)
		poison := []worker.Receipt{submit(t, client, say("t", "sell")), submit(t, client, say("t", "next"))}
		deaths := 0
		for deaths < 20 {
			brittle := &mortal{whole: journal}
			killed := make(chan struct{})
			s.step = func(ctx context.Context, _ string) {
				if brittle.kill() {
					close(killed)
				}
				<-ctx.Done()
			}
			c := config(brittle, s.model(), s.plugin())
			c.MaxAttempts = 3
			c.Owner = fmt.Sprint("worker ", deaths)
			_, stop := work(t, c)
			select {
			case <-killed:
				deaths++
				_ = stop()
				continue
			case <-time.After(10 * time.Minute):
			}
			require.NoError(t, stop())
			break
		}
		require.Equal(t, 8, deaths, "the first try and three more, of each")
		s.step = nil
		_, stop := work(t, config(journal, s.model(), s.plugin()))
		require.Equal(t, phase.ReasonNatural, await(t, client, submit(t, client, say("t", "sell"))).Reason)
		require.NoError(t, stop())
		runs := ended.Get(open(t, journal, "t").Snapshot()).Slice()
		for i, r := range poison {
			o := await(t, client, r)
			require.Equal(t, worker.Dead, o.Fate)
			require.Contains(t, o.Error, "given up")
			require.Equal(t, r.Run, runs[i])
		}
		dead, err := journal.Dead(t.Context(), worker.Lane{}.String(), 10)
		require.NoError(t, err)
		require.Len(t, dead, 2)
	})
}
