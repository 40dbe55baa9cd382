package worker

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

// serve starts work for as long as ctx lasts.
func (w *Worker) serve(ctx, hard context.Context, runs *sync.WaitGroup) {
	for {
		select {
		case w.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		t, ok := w.next(ctx)
		if ok {
			runs.Go(func() {
				defer func() { <-w.slots; w.wake() }()
				w.work(ctx, hard, t)
			})
			continue
		}
		<-w.slots
		timer := time.NewTimer(w.config.spread(w.config.Poll))
		select {
		case <-w.kick:
		case <-timer.C:
			w.relist()
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// wake has serve look for work.
func (w *Worker) wake() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

func (w *Worker) relist() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stale = true
}

// task is a thread to look at.
type task struct {
	thread string
	lane   Lane
	claim  *store.Claim // of the wake-up that led to it; nil for one that this worker knew of
	at     *active
}

// next finds a thread whose turn it is.
func (w *Worker) next(ctx context.Context) (task, bool) {
	w.list(ctx)
	for ctx.Err() == nil {
		lane, thread, ok := w.turn()
		if !ok {
			return task{}, false
		}
		t := task{thread: thread, lane: lane}
		if thread == "" {
			claims, err := bounded(ctx, w.limit, func(ctx context.Context) ([]store.Claim, error) {
				return w.queue.Claim(ctx, lane.String(), w.config.Owner, 1, w.config.Claim)
			})
			if err != nil || len(claims) == 0 {
				w.fault(ctx, "wake-ups could not be claimed", err)
				w.mu.Lock()
				delete(w.lanes, lane)
				w.mu.Unlock()
				continue
			}
			w.counts.claims.Add(1)
			t.claim = &claims[0]
			id, ours := strings.CutPrefix(t.claim.Ref.Thread, InboxPrefix)
			if !ours {
				w.settle(ctx, t.claim, store.Settlement{Dead: true, Error: "worker: it is of no inbox"})
				continue
			}
			t.thread = id
			w.order.took(lane)
		} else {
			w.order.took(lane)
		}
		if w.enter(&t) {
			return t, true
		}
	}
	return task{}, false
}

// list asks the store for the lanes, when that is due.
func (w *Worker) list(ctx context.Context) {
	w.mu.Lock()
	stale := w.stale
	w.stale = false
	w.mu.Unlock()
	if !stale {
		return
	}
	names, err := bounded(ctx, w.limit, func(ctx context.Context) ([]string, error) { return w.queue.Lanes(ctx, lanePrefix) })
	w.fault(ctx, "lanes could not be listed", err)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		if l, ok := ParseLane(name); ok {
			w.lanes[l] = true
		}
	}
}

// turn returns the lane whose turn it is, and a thread if one of it is known to have work.
func (w *Worker) turn() (lane Lane, thread string, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var lanes []Lane
	for l := range w.lanes {
		lanes = append(lanes, l)
	}
	for l := range w.local {
		if !w.lanes[l] {
			lanes = append(lanes, l)
		}
	}
	if len(lanes) == 0 {
		return lane, "", false
	}
	lane = w.order.next(lanes)
	// A thread that has more to do and those that come new take turns.
	if known := w.local[lane]; len(known) > 0 && (!w.lanes[lane] || w.fresh[lane]) {
		delete(w.fresh, lane)
		thread = known[0]
		if w.local[lane] = known[1:]; len(known) == 1 {
			delete(w.local, lane)
		}
	}
	return lane, thread, true
}

// enter makes the worker be at the task's thread. If it is there already, it will look
// again before it leaves, and at once for a cancel.
func (w *Worker) enter(t *task) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.claim != nil {
		if slices.ContainsFunc(slices.Collect(maps.Values(w.local)), func(known []string) bool { return slices.Contains(known, t.thread) }) {
			w.hold(t) // its turn comes
			return false
		}
		w.fresh[t.lane] = true
	}
	if a := w.active[t.thread]; a != nil {
		a.again = true
		a.hint()
		w.hold(t)
		return false
	}
	t.at = &active{look: make(chan struct{}, 1)}
	w.active[t.thread] = t.at
	return true
}

func (a *active) hint() {
	select {
	case a.look <- struct{}{}:
	default:
	}
}

// hold remembers a wake-up of a thread that is still to be worked at. The lock is held.
func (w *Worker) hold(t *task) {
	if t.claim != nil {
		w.held[t.thread] = append(w.held[t.thread], *t.claim)
	}
}

// leave ends the worker's being at a thread, unless it is to look again, and returns the
// wake-ups that were held until then.
func (w *Worker) leave(t *task, n next) (left bool, held []store.Claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.at.again && n.kind == nextNothing {
		t.at.again, t.claim = false, nil // which is settled
		return false, nil
	}
	delete(w.active, t.thread)
	if n.kind == nextMore {
		w.hold(t)
		if !slices.Contains(w.local[n.lane], t.thread) {
			w.local[n.lane] = append(w.local[n.lane], t.thread)
		}
		return true, nil
	}
	held = w.held[t.thread]
	delete(w.held, t.thread)
	return true, held
}

// handOver gives the wake-ups that are still held to other workers.
func (w *Worker) handOver(ctx context.Context) {
	w.mu.Lock()
	held := w.held
	w.held = map[string][]store.Claim{}
	w.mu.Unlock()
	for _, claims := range held {
		for i := range claims {
			w.postpone(ctx, &claims[i], w.now())
		}
	}
}

// postpone has a wake-up come again. Others hear of it if that is at once.
func (w *Worker) postpone(ctx context.Context, c *store.Claim, at time.Time) {
	w.settle(ctx, c, store.Settlement{RetryAt: at})
	if !at.After(w.now()) {
		w.bell.ring(ctx, workersTopic, notice{Lane: c.Effect.Lane})
	}
}
