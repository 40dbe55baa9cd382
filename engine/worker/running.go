package worker

import (
	"context"
	"errors"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/store"
)

// run makes a call that runs, and meanwhile looks out for a cancel.
func (s *session) run(ctx context.Context, th *engine.Thread, id string, call func(context.Context) (*engine.Result, error)) (*engine.Result, error) {
	w := s.w
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	w.mu.Lock()
	s.at.run = &underway{th, stop}
	w.mu.Unlock()
	w.live.expect(id, s.thread)
	w.counts.running.Add(1)
	w.counts.runs.Add(1)
	watching, unwatch := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.lookOut(watching, th, id, stop)
	}()
	res, err := call(ctx)
	unwatch()
	<-watched
	w.counts.running.Add(-1)
	w.live.forget(id)
	w.mu.Lock()
	s.at.run = nil
	w.mu.Unlock()
	if err == nil && errors.Is(res.Err, store.ErrFenced) && !w.fuse.off(s.thread) {
		w.counts.leaseLost.Add(1)
	}
	return res, err
}

var errCancelled = errors.New("worker: the run was cancelled")

// lookOut ends the run when its inbox has a cancel.
func (s *session) lookOut(ctx context.Context, th *engine.Thread, id string, stop context.CancelCauseFunc) {
	every := s.w.config.Poll
	if s.w.bell.Notifier != nil {
		every *= 10 // only for notices that got lost
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-s.at.look:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		life := phase.RunLifecycle.Get(th.Snapshot())
		if life.Run != id || life.Status != phase.Running { // it has not begun yet
			_ = pause(ctx, 10*time.Millisecond)
			s.at.hint()
			continue
		}
		b, err := s.w.load(ctx, s.thread, 0)
		if err != nil {
			s.w.fault(ctx, "an inbox could not be read", err)
			continue
		}
		c := scene{th, b, life, placeOf(th.Snapshot(), b)}
		e := s.cancelOf(c)
		if e == nil {
			continue
		}
		if _, err = th.Submit(ctx, Name, c.ending(*e)); err == nil {
			stop(errCancelled)
			return
		}
		s.w.fault(ctx, "a run could not be cancelled", err)
		_ = pause(ctx, s.w.config.Poll)
		s.at.hint()
	}
}
