package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/store"
)

// Worker applies activations. Make one with New. Run may be called once, all other methods
// at any time.
type Worker struct {
	boxes
	config Config
	eng    *engine.Engine
	fuse   *fuse
	queue  store.Queue
	bell   bell
	live   *live // nil if nobody is told
	counts counts

	order order         // of the goroutine that serves
	slots chan struct{} // one for each run under way
	kick  chan struct{} // 1-buffered: there may be work

	mu     sync.Mutex
	ran    bool
	stale  bool                     // the lanes are to be listed again
	lanes  map[Lane]bool            // that may have wake-ups which are due
	fresh  map[Lane]bool            // of which the last thread came by a wake-up
	local  map[Lane][]string        // threads of which this worker knows that more is to do
	active map[string]*active       // threads that this worker is at
	held   map[string][]store.Claim // wake-ups taken that are to wait for their thread's turn
}

// active is a thread that the worker is at.
type active struct {
	again bool          // look once more before the thread is let go
	look  chan struct{} // 1-buffered: the inbox may hold a cancel
	run   *underway     // nil while no run is under way
}

// underway is a run that can be stopped.
type underway struct {
	thread *engine.Thread
	stop   context.CancelCauseFunc
}

// New returns a worker. Nothing happens before Run.
func New(c Config) (*Worker, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	w := &Worker{
		boxes: boxes{c.Journal, c.Now, c.Timeout}, bell: newBell(c.Journal, c.Timeout), config: c, queue: c.Journal.(store.Queue), fuse: newFuse(c.Journal),
		order: order{weights: c.Weights, weight: c.TenantWeight},
		slots: make(chan struct{}, c.Concurrency), kick: make(chan struct{}, 1),
		stale: true, lanes: map[Lane]bool{}, local: map[Lane][]string{}, fresh: map[Lane]bool{}, active: map[string]*active{}, held: map[string][]store.Claim{},
	}
	given := engine.Config{Journal: w.fuse, Owner: c.Owner, Vault: c.Vault, Now: c.Now, Plugins: []engine.Plugin{Plugin()}}
	if w.bell.Notifier != nil && !c.Quiet {
		w.live = newLive(w.bell)
		given.Observers = []engine.Observer{w.live}
	}
	if w.eng, err = c.Engine(given); err != nil {
		return nil, fmt.Errorf("worker: Config.Engine: %w", err)
	}
	ours := func(p engine.PluginManifest) bool { return p.Name == Name }
	if !slices.ContainsFunc(w.eng.Describe().Plugins, ours) {
		return nil, fmt.Errorf("%w: Config.Engine made an engine without plugin %q; add to the configuration that it gets", engine.ErrConfig, Name)
	}
	return w, nil
}

// Owner returns the name that the worker has in leases and claims.
func (w *Worker) Owner() string { return w.config.Owner }

// Engine returns the worker's engine, to describe what it can do. Runs belong to Run.
func (w *Worker) Engine() *engine.Engine { return w.eng }

// Lanes is Client.Lanes.
func (w *Worker) Lanes(ctx context.Context) ([]LaneDepth, error) { return w.boxes.lanes(ctx) }

// ErrGrace is returned by Run when runs did not stop in time.
var ErrGrace = errors.New("worker: runs did not stop in time; they can write no more, and others go on with their threads")

// Run applies activations and delivers effects that are left in the outbox, until ctx
// ends. Then it takes no more work and waits for the runs under way, for Config.Grace at
// most. One that is still at it is not ended but left as it is after its last commit, for
// another worker to go on with, which does not count against its activation. Its context
// is cancelled. The result is nil then; ErrGrace if a tool or model did not return within
// another Config.Grace; or why the worker could not start.
func (w *Worker) Run(ctx context.Context) error {
	w.mu.Lock()
	again := w.ran
	w.ran = true
	w.mu.Unlock()
	if again {
		return errors.New("worker: Run was called before; make a new worker")
	}
	if err := w.eng.Open(ctx); err != nil {
		return fmt.Errorf("worker: opening the engine: %w", err)
	}
	hard, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	var beside, runs sync.WaitGroup
	if w.bell.Notifier != nil {
		beside.Go(func() { w.listen(ctx) })
	}
	beside.Go(func() { w.deliver(ctx) })
	if w.live != nil {
		beside.Go(func() { w.live.send(hard) })
	}
	w.serve(ctx, hard, &runs)
	err := w.drain(&runs)
	w.handOver(hard)
	kill()
	beside.Wait()
	return errors.Join(err, w.eng.Close(context.WithoutCancel(ctx)))
}

// work does what a thread has to do: one run at most, so that others have their turn.
func (w *Worker) work(ctx, hard context.Context, t task) {
	for {
		s := session{w: w, task: t, soft: ctx}
		n := s.advance(hard)
		if t.claim != nil && !s.settled {
			s.dispose(hard, t.claim, n)
		}
		left, held := w.leave(&t, n)
		for i := range held {
			s.dispose(hard, &held[i], n)
		}
		if left {
			return
		}
	}
}

// dispose settles a wake-up, now that it is known what is with its activation. That of one
// that is still to be applied here stays claimed: it is what makes others look when this
// worker fails.
func (s *session) dispose(ctx context.Context, c *store.Claim, n next) {
	switch o := s.outcome(c); {
	case o.Fate == Dead:
		s.w.settle(ctx, c, store.Settlement{Dead: true, Error: o.Error})
	case o.Fate == Pending && n.kind == nextLater:
		s.w.postpone(ctx, c, n.at)
	case o.Fate != Pending:
		s.w.settle(ctx, c, store.Settlement{}) // for nothing, if the commit that told the outcome did
	}
}

// settle settles a claim. If that fails, the wake-up comes again, which costs a look.
func (w *Worker) settle(ctx context.Context, c *store.Claim, s store.Settlement) {
	_, err := bounded(ctx, w.limit, func(ctx context.Context) (struct{}, error) { return struct{}{}, w.queue.Settle(ctx, *c, s) })
	if !errors.Is(err, store.ErrFenced) {
		w.fault(ctx, "a wake-up could not be settled", err)
	}
}

func (w *Worker) fault(ctx context.Context, what string, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	w.counts.faults.Add(1)
	if log := w.config.Logger; log != nil {
		log.WarnContext(ctx, what, "error", err)
	}
}

// listen takes notices of others for as long as ctx lasts.
func (w *Worker) listen(ctx context.Context) {
	for ctx.Err() == nil {
		notices, err := w.bell.Notifier.Listen(ctx, workersTopic)
		if err != nil {
			w.fault(ctx, "listening failed", err)
		} else {
			for data := range notices {
				var n notice
				if json.Unmarshal(data, &n) == nil {
					w.heard(n)
				}
			}
		}
		_ = pause(ctx, w.config.spread(w.config.Poll)) // until then, polling has to do
	}
}

func (w *Worker) heard(n notice) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l, ok := ParseLane(n.Lane); ok {
		w.lanes[l] = true
		w.wake()
	}
	if a := w.active[n.Thread]; a != nil && n.Cancel {
		a.hint()
	}
}

// deliver delivers effects that are left in the outbox.
func (w *Worker) deliver(ctx context.Context) {
	for ctx.Err() == nil {
		rep, err := w.eng.DeliverOutbox(ctx)
		w.counts.effectsDelivered.Add(int64(rep.Delivered))
		w.counts.effectsFailed.Add(int64(rep.Failed))
		w.counts.effectsDead.Add(int64(rep.Dead))
		w.fault(ctx, "effects could not be delivered", err)
		_ = pause(ctx, w.config.spread(w.config.Poll))
	}
}
