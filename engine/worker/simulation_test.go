package worker_test

import (
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/engine/worker"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/store/faultstore"
	"github.com/ddd26017/fixpoint/store/memstore"
)

var (
	simSeeds = flag.Uint64("sim.seeds", standardSeeds, "seeds of the simulation")
	simFirst = flag.Uint64("sim.first", 0, "first seed of the simulation")
)

// world is one simulated cluster: a store, workers that die, clients whose calls fail, and
// somebody who answers questions.
type world struct {
	t       *testing.T
	seed    uint64
	rand    *rand.Rand // of the goroutine that runs the test
	journal *memstore.Store
	shop    *shop
	workers []*simWorker
	made    int
	total   worker.Stats // of workers that ended

	mu   sync.Mutex
	sent []sent
}

// sent is an activation that was submitted, and all receipts for it.
type sent struct {
	worker.Activation
	receipts []worker.Receipt
}

type simWorker struct {
	*worker.Worker
	view *mortal
	stop func() error
}

// faulty is a view of the store whose calls go wrong now and then.
func (w *world) faulty(hangs float64) *faultstore.Store {
	w.made++
	s, err := faultstore.New(w.journal, faultstore.Config{Seed: w.seed<<16 + uint64(w.made), Rate: map[faultstore.Fault]float64{
		faultstore.FailBefore: 0.02, faultstore.FailAfter: 0.02, faultstore.NeverAnswer: hangs, faultstore.Repeat: 0.03,
		faultstore.Delay: 0.02, faultstore.Stale: 0.03, faultstore.Lose: 0.3,
	}})
	require.NoError(w.t, err)
	return s
}

// takes is how long something takes; it depends on the seed and the name only.
func (w *world) takes(what string, most time.Duration) time.Duration {
	h := fnv.New64a()
	fmt.Fprint(h, w.seed, what)
	return time.Duration(h.Sum64() % uint64(most))
}

func nap(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// start starts a worker. What it writes to threads does not hang: others would wait for
// the same mutex, and time stands still in a bubble while somebody does.
func (w *world) start(faults bool) {
	m := &mortal{whole: w.journal}
	if faults {
		m.whole, m.threads = w.faulty(0.005), w.faulty(0)
	}
	c := config(m, w.shop.model(), w.shop.plugin())
	inner := c.Engine
	c.Engine = func(e engine.Config) (*engine.Engine, error) {
		e.Limits.Lease, e.Limits.JournalTimeout, e.Limits.Grace = 5*time.Second, 10*time.Second, 2*time.Second
		return inner(e)
	}
	c.Owner = fmt.Sprint("worker ", w.made)
	c.Concurrency, c.Claim, c.Grace, c.MaxAttempts, c.Timeout = 2, 8*time.Second, 3*time.Second, 1000, 3*time.Second
	c.MaxBackoff = 4 * time.Second
	worker, stop := work(w.t, c)
	w.workers = append(w.workers, &simWorker{worker, m, stop})
}

// end kills a worker, or lets it shut down.
func (w *world) end(n int, kill bool) {
	v := w.workers[n]
	w.workers = slices.Delete(w.workers, n, n+1)
	if kill {
		v.view.kill()
	}
	if err := v.stop(); err != nil {
		require.ErrorIs(w.t, err, worker.ErrGrace, "only calls of the store that hang take that long")
	}
	st := v.Stats()
	w.total.TakenUp += st.TakenUp
	w.total.LeaseHeld += st.LeaseHeld
	w.total.Faults += st.Faults
	w.total.Dropped += st.Dropped
}

// send submits an activation until that has worked, and now and then once more.
func (w *world) send(client *worker.Client, a worker.Activation, twice bool) {
	s := sent{Activation: a}
	for n := 0; n < 1 || twice && n < 2; {
		if r, err := client.Submit(context.Background(), a); err == nil {
			s.receipts = append(s.receipts, r)
			n++
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, s)
}

// client submits activations of all kinds.
func (w *world) client(n int, view *faultstore.Store) {
	rnd := rand.New(rand.NewPCG(w.seed, uint64(n)))
	client, err := worker.NewClient(worker.ClientConfig{Journal: view, Timeout: 3 * time.Second})
	require.NoError(w.t, err)
	orders := []string{"talk", "sell", "sell sell", "ask", "sell ask", "hurry sell"}
	for i := range 6 {
		time.Sleep(time.Duration(rnd.Int64N(int64(8 * time.Second))))
		thread := fmt.Sprint("thread ", rnd.IntN(3))
		key := fmt.Sprintf("c%d-%d", n, i)
		a := say(thread, orders[rnd.IntN(len(orders))]+" "+key)
		switch p := rnd.IntN(20); {
		case p == 0:
			a = worker.Activation{Thread: thread, Kind: worker.KindCancel, Reason: key, Priority: worker.High}
		case p == 1:
			a = worker.Activation{Thread: thread, Kind: worker.KindWake}
		case p < 5:
			a.NotBefore = time.Now().Add(time.Duration(rnd.Int64N(int64(time.Minute))))
		case p < 8:
			a.Priority, a.Tenant = worker.Low, "other"
		}
		a.Key = key
		w.send(client, a, rnd.IntN(3) == 0)
	}
}

// answer decides whatever is open, sometimes twice, until ctx ends.
func (w *world) answer(ctx context.Context) {
	client := newClient(w.t, w.journal)
	for n := 0; ctx.Err() == nil; nap(ctx, 7*time.Second) {
		for thread := range 3 {
			status, err := client.Status(context.Background(), fmt.Sprint("thread ", thread))
			require.NoError(w.t, err)
			for _, q := range status.Tickets {
				if !strings.Contains(q.Call, "ask") {
					continue // it runs out
				}
				n++
				a := on(status.Thread, yes(q.ID))
				a.Decisions[0].Answer.Ticket = q.ID
				_, err := client.Submit(context.Background(), a)
				require.NoError(w.t, err)
			}
		}
	}
}

func (w *world) run() {
	w.shop.body = func(ctx context.Context, thread string) { nap(ctx, w.takes("body", 6*time.Second)) }
	w.shop.step = func(ctx context.Context, thread string) { nap(ctx, w.takes("step", 3*time.Second)) }
	for range 2 + w.rand.IntN(2) {
		w.start(true)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var clients, answers sync.WaitGroup
	answers.Go(func() { w.answer(ctx) })
	for n := range 3 {
		view := w.faulty(0.005)
		clients.Go(func() { w.client(n, view) })
	}
	for range 4 + w.rand.IntN(4) {
		time.Sleep(time.Duration(w.rand.Int64N(int64(12 * time.Second))))
		w.end(w.rand.IntN(len(w.workers)), w.rand.IntN(3) > 0)
		w.start(true)
	}
	clients.Wait()
	time.Sleep(20 * time.Second)
	for len(w.workers) > 1 {
		w.end(0, w.rand.IntN(2) == 0)
	}
	w.start(false)
	for n := 0; w.busy(); n++ {
		require.Less(w.t, n, 60, "what is left does not end")
		time.Sleep(10 * time.Second)
	}
	cancel()
	answers.Wait()
	for len(w.workers) > 0 {
		w.end(0, false)
	}
	w.check()
}

// busy reports whether there is still something to do.
func (w *world) busy() bool {
	client := newClient(w.t, w.journal)
	lanes, err := client.Lanes(context.Background())
	require.NoError(w.t, err)
	busy := len(lanes) > 0
	for n := range 3 {
		status, err := client.Status(context.Background(), fmt.Sprint("thread ", n))
		require.NoError(w.t, err)
		busy = busy || status.Lifecycle.Status == phase.Waiting
	}
	return busy
}

func (w *world) check() {
	t := w.t
	client := newClient(t, w.journal)
	lanes, err := client.Lanes(t.Context())
	require.NoError(t, err)
	require.Empty(t, lanes)
	for n := range 3 {
		thread := fmt.Sprint("thread ", n)
		status, err := client.Status(t.Context(), thread)
		require.NoError(t, err)
		require.Empty(t, status.Pending, "%s", thread)
		require.Empty(t, status.Dead)
		require.Contains(t, []phase.RunStatus{phase.Done, phase.Created}, status.Lifecycle.Status)
		w.checkThread(thread, status)
	}
}

func (w *world) checkThread(thread string, status worker.Status) {
	t := w.t
	outcomes := map[uint64]worker.Outcome{}
	for _, o := range status.Done {
		outcomes[o.Seq] = o
	}
	snap := open(t, w.journal, thread).Snapshot()
	said := map[string]int{} // user texts, and where
	count := map[string]int{}
	sales, results, asked := 0, map[string]int{}, 0
	for i, m := range engine.Transcript.Get(snap).Slice() {
		switch m.Role {
		case inference.RoleUser:
			said[m.Text] = i
			count[m.Text]++
		case inference.RoleAssistant:
			asked += len(m.ToolCalls)
		case inference.RoleTool:
			results[fmt.Sprint(i)]++
			if m.Result.Content == "sold" && !m.Result.IsError {
				sales++
			}
		}
	}
	require.Len(t, results, asked, "every call has one result")
	require.EqualValues(t, sales, sold.Get(snap), "what a tool does is committed with its result")

	var cancels []uint64
	for _, s := range w.sent {
		if s.Thread == thread && s.Kind == worker.KindCancel {
			cancels = append(cancels, s.receipts[0].Seq)
		}
	}
	type applied struct {
		seq uint64
		at  int
	}
	var order []applied
	var over []string // runs that reached their end
	for r, err := range open(t, w.journal, thread).History(t.Context()) {
		require.NoError(t, err)
		if r.Status == phase.Done {
			over = append(over, r.Run)
		}
	}
	for _, s := range w.sent {
		if s.Thread != thread {
			continue
		}
		r := s.receipts[0]
		for _, again := range s.receipts[1:] {
			require.Equal(t, r.Seq, again.Seq)
			require.Equal(t, r.Run, again.Run)
		}
		o, known := outcomes[r.Seq]
		require.True(t, known, "%v has no outcome", r)
		cancelled := slices.ContainsFunc(cancels, func(c uint64) bool { return c > r.Seq })
		if s.Kind != "" {
			require.True(t, o.Fate == worker.Applied || o.Fate == worker.Dropped && cancelled && s.Kind == worker.KindWake, "%+v", o)
			continue
		}
		text := s.Messages[0].Text
		switch o.Fate {
		case worker.Applied:
			require.Equal(t, 1, count[text], "%q is applied once", text)
			require.Contains(t, over, r.Run, "its run ended")
			if s.NotBefore.IsZero() {
				order = append(order, applied{r.Seq, said[text]})
			}
		case worker.Dropped:
			require.Zero(t, count[text])
			require.True(t, cancelled, "only a cancel drops")
		default:
			require.Fail(t, "a fate that nothing here leads to", "%+v", o)
		}
		delete(count, text)
	}
	require.Empty(t, count, "nothing was said that nobody submitted")
	slices.SortFunc(order, func(a, b applied) int { return int(a.seq) - int(b.seq) })
	require.True(t, slices.IsSortedFunc(order, func(a, b applied) int { return a.at - b.at }), "inputs are in order")
	w.shop.mu.Lock()
	defer w.shop.mu.Unlock()
	for call, n := range w.shop.bodies {
		require.Equal(t, 1, n, "the tool of %s ran again", call)
	}
	for id, n := range w.shop.sales {
		require.Positive(t, n, id)
	}
}

// Whatever crashes, every activation is applied once, every run ends, and no tool call
// that was committed runs again.
func TestSimulation(t *testing.T) {
	var total worker.Stats
	for seed := *simFirst; seed < *simFirst+*simSeeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 99)), journal: newStore(), shop: newShop()}
				w.run()
				total.TakenUp += w.total.TakenUp
				total.LeaseHeld += w.total.LeaseHeld
				total.Faults += w.total.Faults
				total.Dropped += w.total.Dropped
			})
		})
	}
	t.Logf("%+v", total)
	if *simSeeds >= 50 {
		require.Greater(t, total.TakenUp, int64(*simSeeds), "workers die while they have runs")
		require.Positive(t, total.LeaseHeld)
		require.Positive(t, total.Faults)
		require.Positive(t, total.Dropped)
	}
}
