package worker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine/worker"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// running waits until so many calls of the tool began.
func running(t testing.TB, s *shop, calls int) {
	t.Helper()
	for range 1000 {
		s.mu.Lock()
		n := len(s.bodies)
		s.mu.Unlock()
		if n == calls {
			time.Sleep(10 * time.Millisecond)
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	require.Fail(t, "the tool does not run")
}

// A worker that dies leaves its run to another one, which goes on with it when the lease
// has run out. The tool that was under way does not run again.
func TestAnotherWorkerGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal, s := newStore(), newShop()
		s.body = func(ctx context.Context, _ string) { nap(ctx, 10*time.Minute) }
		client := newClient(t, journal)
		first := &mortal{whole: journal}
		_, stop := work(t, config(first, s.model(), s.plugin()))
		r := submit(t, client, say("t", "sell"))
		running(t, s, 1)
		first.kill()
		begin := time.Now()
		second, stop2 := work(t, config(journal, s.model(), s.plugin()))
		o := await(t, client, r)
		require.Equal(t, phase.ReasonNatural, o.Reason)
		require.Less(t, time.Since(begin), 2*time.Minute)
		require.EqualValues(t, 1, second.Stats().TakenUp)
		require.EqualValues(t, 0, sold.Get(open(t, journal, "t").Snapshot()), "the model was told that it was interrupted")
		require.Len(t, s.bodies, 1)
		require.NoError(t, errors.Join(stop(), stop2()))
		empty(t, client)
	})
}

// A worker that comes back after another one took its run over can commit nothing of it,
// and goes on with other things.
func TestZombie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal, s := newStore(), newShop()
		s.body = func(_ context.Context, _ string) { time.Sleep(5 * time.Minute) } // notices nothing
		client := newClient(t, journal)
		zombie := &mortal{whole: journal}
		first, stop := work(t, config(zombie, s.model(), s.plugin()))
		r := submit(t, client, say("t", "sell"))
		running(t, s, 1)
		zombie.kill()
		second, stop2 := work(t, config(journal, s.model(), s.plugin()))
		require.Equal(t, phase.ReasonNatural, await(t, client, r).Reason)
		require.NoError(t, stop2())
		require.EqualValues(t, 1, second.Stats().TakenUp)
		before := texts(t, journal, "t")
		zombie.dead.Store(false)
		time.Sleep(10 * time.Minute)
		require.Equal(t, before, texts(t, journal, "t"))
		require.Zero(t, sold.Get(open(t, journal, "t").Snapshot()))
		require.Empty(t, s.sales)
		require.EqualValues(t, 1, first.Stats().LeaseLost)
		s.body = nil
		require.Equal(t, worker.Applied, await(t, client, submit(t, client, say("t", "sell"))).Fate)
		require.EqualValues(t, 1, sold.Get(open(t, journal, "t").Snapshot()))
		require.NoError(t, stop())
		empty(t, client)
	})
}

// A worker that is told to stop lets its runs end, and begins no more.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal, s := newStore(), newShop()
		s.body = func(ctx context.Context, _ string) { nap(ctx, 20*time.Second) }
		client := newClient(t, journal)
		_, stop := work(t, config(journal, s.model(), s.plugin()))
		r, next := submit(t, client, say("t", "sell")), submit(t, client, say("t", "sell"))
		running(t, s, 1)
		other := submit(t, client, say("u", "sell"))
		begin := time.Now()
		require.NoError(t, stop())
		require.Less(t, time.Since(begin), 21*time.Second)
		require.Equal(t, phase.ReasonNatural, await(t, client, r).Reason)
		require.Equal(t, []string{"sell", "", "sold", "done: sell"}, texts(t, journal, "t"))
		_, stop = work(t, config(journal, s.model(), s.plugin()))
		begin = time.Now()
		require.Equal(t, worker.Applied, await(t, client, next).Fate)
		require.Less(t, time.Since(begin), 25*time.Second, "at once, not when a claim has run out")
		require.Equal(t, worker.Applied, await(t, client, other).Fate)
		require.NoError(t, stop())
		empty(t, client)
	})
}

// A run that does not end in time is not ended: another worker goes on with it at once,
// and that is no failure of its activation.
func TestDrainMovesRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal, s := newStore(), newShop()
		s.body = func(ctx context.Context, _ string) { nap(ctx, time.Hour) }
		client := newClient(t, journal)
		c := config(journal, s.model(), s.plugin())
		r := submit(t, client, say("t", "sell sell"))
		for n := range 2 {
			_, stop := work(t, c)
			running(t, s, n+1)
			begin := time.Now()
			require.NoError(t, stop())
			require.InDelta(t, 30*time.Second, time.Since(begin), float64(time.Second))
			snap := open(t, journal, "t").Snapshot()
			require.Equal(t, phase.Running, phase.RunLifecycle.Get(snap).Status)
			require.True(t, worker.Place.Get(snap).Moved)
			require.Empty(t, ended.Get(snap).Slice())
		}
		_, stop := work(t, c)
		begin := time.Now()
		o := await(t, client, r)
		require.Equal(t, phase.ReasonNatural, o.Reason)
		require.Less(t, time.Since(begin), 10*time.Second)
		require.NoError(t, stop())
		snap := open(t, journal, "t").Snapshot()
		require.Zero(t, worker.Place.Get(snap).Tries)
		require.Equal(t, []string{r.Run}, ended.Get(snap).Slice())
		require.Len(t, s.bodies, 2)
		empty(t, client)
	})
}

// A tool that does not even hear that its context ended keeps nobody waiting for ever, and
// changes nothing any more.
func TestDrainGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal, s := newStore(), newShop()
		s.body = func(_ context.Context, _ string) { time.Sleep(time.Hour) }
		client := newClient(t, journal)
		_, stop := work(t, config(journal, s.model(), s.plugin()))
		r := submit(t, client, say("t", "sell"))
		running(t, s, 1)
		require.NoError(t, stop(), "the engine does not wait for it either")
		_, stop = work(t, config(journal, s.model(), s.plugin()))
		require.Equal(t, phase.ReasonNatural, await(t, client, r).Reason)
		before := texts(t, journal, "t")
		time.Sleep(2 * time.Hour)
		require.Equal(t, before, texts(t, journal, "t"))
		require.Zero(t, sold.Get(open(t, journal, "t").Snapshot()))
		require.NoError(t, stop())
	})
}

// Effects that a process left behind, or whose handler failed, are delivered by whatever
// worker there is.
func TestEffectsAreDeliveredByAnyWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal, s := newStore(), newShop()
		client := newClient(t, journal)
		n := 0
		s.fail = func() error {
			if n++; n < 3 {
				return errors.New("not now")
			}
			return nil
		}
		first, stop := work(t, config(journal, s.model(), s.plugin()))
		await(t, client, submit(t, client, say("t", "sell")))
		require.NoError(t, stop())
		second, stop := work(t, config(journal, s.model(), s.plugin()))
		time.Sleep(time.Minute)
		require.NoError(t, stop())
		require.Len(t, s.sales, 1)
		require.Equal(t, 3, n)
		require.EqualValues(t, 1, first.Stats().EffectsDelivered+second.Stats().EffectsDelivered)
	})
}

// Priorities have turns by their weights, tenants of one alike, and the threads of one
// tenant as they come.
func TestFairness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal, s := newStore(), newShop()
		client := newClient(t, journal)
		var order []string
		s.step = func(_ context.Context, text string) { order = append(order, text) }
		put := func(p worker.Priority, tenant string, n int) {
			for i := range n {
				a := say(fmt.Sprint(tenant, p, i), fmt.Sprint(p, tenant))
				a.Priority, a.Tenant = p, tenant
				submit(t, client, a)
			}
		}
		put(worker.Normal, "b", 5)
		put(worker.Normal, "a", 60)
		put(worker.High, "", 40)
		put(worker.Low, "", 40)
		c := config(journal, inference.ModelFunc(func(ctx context.Context, r inference.Request) (inference.Response, error) {
			s.step(ctx, r.Messages[0].Text)
			return inference.Response{Message: inference.Assistant("ok")}, nil
		}))
		c.Concurrency = 1
		_, stop := work(t, c)
		time.Sleep(time.Minute)
		require.NoError(t, stop())
		require.Len(t, order, 145)
		count := func(of []string) map[string]int {
			m := map[string]int{}
			for _, o := range of {
				m[o]++
			}
			return m
		}
		first := count(order[:39])
		require.InDelta(t, 27, first["high"], 1)
		require.InDelta(t, 3, first["low"], 1)
		require.InDelta(t, 9, first["normala"]+first["normalb"], 1)
		require.InDelta(t, first["normala"], first["normalb"], 1)
		empty(t, client)
	})
}

// One thread with much to do does not keep others of its lane waiting.
func TestThreadsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal := newStore()
		client := newClient(t, journal)
		for n := range 20 {
			submit(t, client, say("busy", fmt.Sprint(n)))
		}
		late := submit(t, client, say("other", "x"))
		c := config(journal, inference.ModelFunc(func(ctx context.Context, _ inference.Request) (inference.Response, error) {
			nap(ctx, time.Minute)
			return inference.Response{Message: inference.Assistant("ok")}, nil
		}))
		c.Concurrency = 1
		_, stop := work(t, c)
		begin := time.Now()
		await(t, client, late)
		require.Less(t, time.Since(begin), 5*time.Minute)
		require.NoError(t, stop())
	})
}
