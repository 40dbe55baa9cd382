package bench

import (
	"context"
	"errors"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// cascadeRows is P5: rounds of one action each.
func cascadeRows() []Row {
	return []Row{{
		ID: "P5", Case: "rounds=16", Name: "cascade of 16 rounds",
		Baseline: "16 commits by hand on a btree", Impl: "loop", Limit: 1.0,
		Work: StepStart(Cascade(16)), Base: plain(cascadeByHand(16)),
	}, {
		ID: "P5", Case: "part=commits", Name: "of it: 16 commits with a queue",
		Baseline: "16 commits by hand on a btree", Impl: "loop",
		Work: CommitRounds(16), Base: plain(cascadeByHand(16)),
	}}
}

// queueRows is P12: that many queued actions cost as much each as few do.
func queueRows() []Row {
	return []Row{{
		ID: "P12", Case: "actions=10000", Name: "10,000 queued actions in one phase",
		Baseline: "1,000 of them", Impl: "few", Limit: 12,
		Work: StepStart(Queue(10_000)), Base: StepStart(Queue(1_000)),
	}}
}

var cascade = phase.NewAction[int]("cascade", phase.StepStart)

// Cascade is one hook at StepStart whose action schedules the next, for the given
// number of rounds. Each round adds to a cell.
func Cascade(rounds int) engine.Plugin {
	return engine.NewPlugin("cascade", func(r *engine.Registrar) error {
		key := state.NewCell[int]("cascade", state.Options[int]{})
		r.Key(key)
		r.Hook(phase.StepStart, phase.HookFunc(func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			cmd.Schedule(cascade.New(rounds))
			return cmd, nil
		}))
		r.Action(cascade.Handle(func(_ context.Context, pc *phase.Context, left int) (cmd phase.Command, err error) {
			cmd.Update(key.With(key.Get(pc.Snapshot()) + 1))
			if left > 1 {
				cmd.Schedule(cascade.New(left - 1))
			}
			return cmd, nil
		}))
		return nil
	})
}

// handAction is a queued action of the baseline: which handler, and for what.
type handAction struct {
	kind string
	left int
}

// handCommand is what its handler returns.
type handCommand struct {
	total int
	next  []handAction
}

// cascadeByHand is what P5 is without an engine. The queue is part of the state, since
// a saved state must have it: the start schedules by a commit, and each round reads a
// snapshot, calls the handler, and commits the counter and the queue that is left.
func cascadeByHand(rounds int) func(int) error {
	s := newHandStore()
	handlers := map[string]func(total, left int) handCommand{
		"cascade": func(total, left int) handCommand {
			cmd := handCommand{total: total + 1}
			if left > 1 {
				cmd.next = []handAction{{"cascade", left - 1}}
			}
			return cmd
		},
	}
	want := 0
	return each(func() error {
		s.commit2("counter", s.get("counter"), "queue", []handAction{{"cascade", rounds}})
		for {
			snap := s.snapshot()
			v, _ := snap.Get("queue")
			queue, _ := v.([]handAction)
			if len(queue) == 0 {
				break
			}
			cmd := handlers[queue[0].kind](number(snap, "counter"), queue[0].left)
			s.commit2("counter", cmd.total, "queue", append(queue[1:len(queue):len(queue)], cmd.next...))
		}
		if want += rounds; s.get("counter") != want {
			return errors.New("bench: a round was lost")
		}
		return nil
	})
}

// Queue is one hook at StepStart that schedules n actions for the same phase.
func Queue(n int) engine.Plugin {
	return engine.NewPlugin("queue", func(r *engine.Registrar) error {
		work := phase.NewAction[int]("work", phase.StepStart)
		done := state.NewCounter("done", state.Options[int64]{})
		r.Key(done)
		r.Hook(phase.StepStart, phase.HookFunc(func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			for i := range n {
				cmd.Schedule(work.New(i))
			}
			return cmd, nil
		}))
		r.Action(work.Handle(func(context.Context, *phase.Context, int) (cmd phase.Command, err error) {
			cmd.Update(done.With(1))
			return cmd, nil
		}))
		return nil
	})
}
