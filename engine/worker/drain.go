package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/phase"
)

// drain waits for the runs under way, and stops those that take too long.
func (w *Worker) drain(runs *sync.WaitGroup) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runs.Wait()
	}()
	wait := func() bool {
		timer := time.NewTimer(w.config.Grace)
		defer timer.Stop()
		select {
		case <-done:
			return true
		case <-timer.C:
			return false
		}
	}
	if wait() {
		return nil
	}
	w.mu.Lock()
	var moving sync.WaitGroup
	for id, a := range w.active {
		moving.Go(func() { w.move(id, a) })
	}
	w.mu.Unlock()
	if moving.Wait(); wait() {
		return nil
	}
	return ErrGrace
}

// errMoved is the cause of cancellation of a run that others go on with.
var errMoved = errors.New("worker: it shuts down, and another one goes on with the run")

// move stops a run in such a way that others go on with it.
func (w *Worker) move(thread string, a *active) {
	w.mu.Lock()
	run := a.run
	w.mu.Unlock()
	if run == nil {
		w.fuse.blow(thread) // it has not begun
		return
	}
	marked := make(chan struct{})
	go func() {
		defer close(marked)
		run.mark()
	}()
	timer := time.NewTimer(w.config.Timeout)
	defer timer.Stop()
	select {
	case <-marked:
	case <-timer.C: // a commit hangs, and others behind it
	}
	w.fuse.blow(thread)
	run.stop(errMoved)
}

// mark writes down that the run is left to others on purpose. If that fails, it counts as
// a failure of the worker.
func (u *underway) mark() {
	snap := u.thread.Snapshot()
	if phase.RunLifecycle.Get(snap).Status != phase.Running {
		return
	}
	p := Place.Get(snap)
	p.Moved = true
	var cmd phase.Command
	cmd.Update(Place.With(p))
	_, _ = u.thread.Submit(context.Background(), Name, cmd)
}
