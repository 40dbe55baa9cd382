package serve

import (
	"context"
	"errors"
	"net/http"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
)

var (
	// errCancelled is why a run ended that its owner cancelled.
	errCancelled = errors.New("serve: cancelled by the run's owner")
	// errShutdown is why a run ended that did not do so in time by itself.
	errShutdown = errors.New("serve: the server shuts down")
)

// resume lets a waiting or interrupted run go on with decisions and returns once it does;
// or, if the run is called off, lets it end. It returns what is under way, or nil if that
// is nothing any more, and brings k up to date.
func (s *Server) resume(c caller, ctx context.Context, k *known, off bool, ds []engine.Decision) (*going, error) {
	t, done, err := s.at(ctx, k.thread)
	if err != nil {
		return nil, err
	}
	defer done()
	spec, ok := s.agents[k.record.Agent]
	if !ok {
		return nil, refuse(http.StatusConflict, "unknown_agent", "the agent of the run is not there any more")
	}
	g, err := s.busy(ctx, t)
	if err != nil {
		return nil, err
	}
	if g != nil {
		if off && g.id == k.id {
			g.cancel(errCancelled)
			k.snap = g.th.Snapshot()
			return g, nil
		}
		k.th = g.th
	} else if k.th, err = s.engine.OpenThread(ctx, t.id); err != nil {
		return nil, err
	}
	k.snap = k.th.Snapshot()
	l := phase.RunLifecycle.Get(k.snap)
	switch {
	case off && (l.Run != k.id || l.Status == phase.Done):
		return nil, nil
	case l.Run != k.id:
		return nil, engine.ErrNotWaiting
	case g != nil:
		// Only what was decided before can be repeated; the engine knows.
		_, err := k.th.Resume(ctx, spec, engine.Input{}, ds...)
		return g, err
	}
	how := resumed
	if off {
		how = calledOff
		if ds, err = s.callOff(ctx, k); err != nil {
			return nil, err
		}
	}
	g, err = s.launch(c, t, k.th, k.id, how, func(ctx context.Context) (*engine.Result, error) {
		return k.th.Resume(ctx, spec, engine.Input{Adapter: "http"}, ds...)
	})
	if err != nil {
		return nil, err
	}
	if err := g.begun(ctx); err != nil {
		return nil, err
	}
	if off {
		select {
		case <-g.finished:
			g = nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	k.snap = k.th.Snapshot()
	return g, nil
}

// callOff asks for the end of a run, and returns the decisions after which it comes.
func (s *Server) callOff(ctx context.Context, k *known) ([]engine.Decision, error) {
	var cmd phase.Command
	cmd.EndRun(phase.ReasonCancelled, "cancelled by its owner")
	if _, err := k.th.Submit(context.WithoutCancel(ctx), Name, cmd); err != nil {
		return nil, err
	}
	var ds []engine.Decision
	for _, t := range k.th.Tickets() {
		ds = append(ds, engine.Decision{Answer: phase.Answer{Ticket: t.ID, Cancel: true, Reason: "the run was cancelled"}})
	}
	return ds, nil
}
