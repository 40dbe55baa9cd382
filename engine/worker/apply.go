package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
	"github.com/ddd26017/fixpoint/store"
)

// cancel ends what is under way or waits, and drops what was submitted before. The run is
// then gone on with, to its end.
func (s *session) cancel(ctx context.Context, c scene, e entry) (next, bool) {
	_, err := c.th.Submit(ctx, Name, c.ending(e))
	if errors.Is(err, store.ErrLeaseHeld) {
		// Whoever has it may not have heard.
		s.w.bell.ring(ctx, workersTopic, notice{Thread: s.thread, Cancel: true})
	}
	if err != nil {
		return s.failed(ctx, e, err)
	}
	return next{}, false
}

// ending is the command of a cancel, which applies it.
func (c scene) ending(e entry) (cmd phase.Command) {
	seqs := []uint64{e.Seq}
	for _, before := range c.box.Pending {
		if before.Seq < e.Seq && !before.NotBefore.After(e.Time) && !c.place.applied(before.Seq) {
			seqs = append(seqs, before.Seq)
		}
	}
	if c.life.Status == phase.Running || c.life.Status == phase.Waiting {
		detail := e.Reason
		if detail == "" {
			detail = "cancelled"
		}
		cmd.EndRun(phase.ReasonCancelled, detail)
	}
	cmd.Update(Place.With(c.place.apply(c.box, seqs...)))
	return cmd
}

// start makes the run of an input.
func (s *session) start(ctx context.Context, c scene, e entry) (next, bool) {
	if s.ran || s.soft.Err() != nil {
		return s.wait(e)
	}
	spec, err := s.spec(ctx, e.Agent)
	if err != nil {
		return s.failed(ctx, e, err)
	}
	p := c.place.apply(c.box, e.Seq)
	p.Seq, p.Run, p.Agent, p.Tries, p.Moved = e.Seq, e.ID, e.Agent, 0, false
	in := engine.Input{Messages: e.Messages, RunID: e.ID, Mode: e.Mode, Adapter: e.Adapter, Updates: []state.Update{Place.With(p)}}
	res, err := s.run(ctx, c.th, e.ID, func(ctx context.Context) (*engine.Result, error) { return c.th.Run(ctx, spec, in) })
	if err == nil && phase.RunLifecycle.Get(c.th.Snapshot()).Run != e.ID {
		if err = res.Err; err == nil {
			err = errors.New("worker: the run did not begin")
		}
	}
	if err != nil {
		return s.failed(ctx, e, err)
	}
	s.ran = true
	return next{}, false
}

// goOn makes the waiting run go on, with the decisions of e, or without any when its
// tickets ran out. e may be nil.
func (s *session) goOn(ctx context.Context, c scene, e *entry) (next, bool) {
	if s.ran || s.soft.Err() != nil {
		return s.wait(*s.head(c.box))
	}
	p := c.place
	var ds []engine.Decision
	failed := func(err error) (next, bool) { return s.again(ctx, err) }
	if e != nil {
		ds = e.activation(s.thread).Decisions
		p = p.apply(c.box, e.Seq)
		p.Seq = e.Seq
		failed = func(err error) (next, bool) { return s.failed(ctx, *e, err) }
	}
	p.Run, p.Tries, p.Moved = c.life.Run, 0, false
	spec, err := s.specOf(ctx, c)
	if err == nil {
		err = reveal(ctx, s.w.config.Vault, ds)
	}
	if err == nil {
		in := engine.Input{Updates: []state.Update{Place.With(p)}}
		_, err = s.run(ctx, c.th, c.life.Run, func(ctx context.Context) (*engine.Result, error) { return c.th.Resume(ctx, spec, in, ds...) })
	}
	if err != nil {
		return failed(err)
	}
	if e != nil && !placeOf(c.th.Snapshot(), c.box).applied(e.Seq) {
		return s.conclude(ctx, c, *e, Applied, nil) // the decisions were applied before, by their ids
	}
	s.ran = true
	return next{}, false
}

// takeUp goes on with a run whose worker failed or moved, or that was told to end.
func (s *session) takeUp(ctx context.Context, c scene) (next, bool) {
	p := c.place
	if s.ran {
		return s.later(s.w.config.backoff(p.Tries + 1))
	}
	if s.soft.Err() != nil {
		return s.later(0)
	}
	if p.Run != c.life.Run { // nobody that has a position started it
		p.Run, p.Agent, p.Seq, p.Tries = c.life.Run, c.th.Agent(), 0, 0
	}
	if !p.Moved {
		p.Tries++
	}
	p.Moved = false
	spec, err := s.specOf(ctx, c)
	if p.Tries > s.w.config.MaxAttempts {
		if err != nil {
			spec, err = engine.AgentSpec{ID: c.th.Agent()}, nil // good enough to end it
		}
		if !c.life.Ended {
			var cmd phase.Command
			cmd.EndRun(phase.ReasonError, fmt.Sprintf("worker: given up after it was taken up %d times", p.Tries-1))
			_, err = c.th.Submit(ctx, Name, cmd)
		}
	}
	if err == nil {
		in := engine.Input{Updates: []state.Update{Place.With(p)}}
		s.w.counts.takenUp.Add(1)
		_, err = s.run(ctx, c.th, c.life.Run, func(ctx context.Context) (*engine.Result, error) { return c.th.Resume(ctx, spec, in) })
	}
	switch {
	case err == nil:
		s.ran = true
		return next{}, false
	case passing(err):
		return s.again(ctx, err)
	}
	s.w.counts.retries.Add(1)
	s.log(ctx, "a run could not be gone on with", entry{Seq: p.Seq, Attempts: p.Tries - 1}, err)
	var cmd phase.Command
	cmd.Update(Place.With(p))
	if _, fault := c.th.Submit(ctx, Name, cmd); fault != nil {
		s.w.fault(ctx, "a failed attempt could not be counted", fault)
	}
	return s.later(s.w.config.backoff(p.Tries))
}

// wait leaves an activation to the next turn of the thread, or to another worker.
func (s *session) wait(e entry) (next, bool) {
	if s.soft.Err() != nil {
		return s.later(0)
	}
	return next{kind: nextMore, lane: e.lane()}, true
}

// spec looks up an agent.
func (s *session) spec(ctx context.Context, agent string) (spec engine.AgentSpec, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("worker: Config.Specs panicked: %v", p)
		}
	}()
	if spec, err = s.w.config.Specs(ctx, agent); err != nil {
		return spec, fmt.Errorf("worker: agent %q: %w", agent, err)
	}
	return spec, nil
}

// specOf looks up the agent that the current run was started for. The engine knows to whom
// it was handed off.
func (s *session) specOf(ctx context.Context, c scene) (engine.AgentSpec, error) {
	if c.place.Run == c.life.Run && c.place.Agent != "" {
		return s.spec(ctx, c.place.Agent)
	}
	return s.spec(ctx, c.th.Agent())
}
