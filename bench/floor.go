package bench

import (
	"context"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// floorRows state what parts of P1 cost by themselves, against P1's baseline: what no
// engine can leave out that tells how long each hook took and keeps what each wrote.
// The parts overlap: a commit makes the values, an idle phase reads the clock.
func floorRows() []Row {
	const n = 64
	part := func(name, words string, work Work) Row {
		return Row{
			ID: "P1", Case: "part=" + name, Name: "of it: " + words,
			Baseline: "errgroup, 64 empty closures", Impl: "errgroup", Work: work, Base: Spawn(n),
		}
	}
	return []Row{
		part("clock", "64 readings of the clock", plain(readClock(n))),
		part("values", "64 updates made", MakeUpdates(n)),
		part("commit", "64 updates made and committed", CommitBatches(n)),
		part("idle", "the phase, with hooks that return nothing", StepStart(Idle(n))),
	}
}

// CommitOneByOne commits n updates of one key, each decided on the state after the last.
func CommitOneByOne(n int) Work {
	return func(measure func(func(int) error) error) error {
		store, keys, err := cells(n)
		if err != nil {
			return err
		}
		return measure(each(func() error {
			for range n {
				base := store.Snapshot()
				_, err := store.Commit(state.Batch{Owner: "own", Base: base, Updates: []state.Update{keys[0].With(keys[0].Get(base) + 1)}})
				if err != nil {
					return err
				}
			}
			return nil
		}))
	}
}

// CommitRounds makes the commits of a cascade of n rounds, without the engine: each
// writes a value, takes an action from the queue, puts one in and counts it.
func CommitRounds(n int) Work {
	return func(measure func(func(int) error) error) error {
		value, last := state.NewCell[int]("value", state.Options[int]{}), state.NewCell[uint64]("last", state.Options[uint64]{})
		queue := state.NewTable[uint64]("queue", state.Options[int]{})
		store, err := state.NewStore(state.Config{Keys: []state.AnyKey{value, last, queue}})
		if err != nil {
			return err
		}
		return measure(each(func() error {
			for left := n; left > 0; left-- {
				base := store.Snapshot()
				id := last.Get(base)
				updates := []state.Update{value.With(value.Get(base) + 1), queue.Delete(id), queue.Put(id+1, left), last.With(id + 1)}
				if _, err := store.Commit(state.Batch{Owner: "own", Base: base, Updates: updates}); err != nil {
					return err
				}
			}
			return nil
		}))
	}
}

func readClock(n int) func(int) error {
	start := time.Now()
	return each(func() error {
		var sum time.Duration
		for range n {
			sum += time.Since(start)
		}
		sink.Store(int64(sum))
		return nil
	})
}

// MakeUpdates makes an update of each of n keys.
func MakeUpdates(n int) Work {
	return func(measure func(func(int) error) error) error {
		_, keys, err := cells(n)
		if err != nil {
			return err
		}
		updates := make([]state.Update, n)
		value := 0
		return measure(each(func() error {
			value++
			for i, k := range keys {
				updates[i] = k.With(value)
			}
			return nil
		}))
	}
}

// CommitBatches makes an update of each of n keys and commits them at once, each as a
// batch of its own, as those of hooks are.
func CommitBatches(n int) Work {
	return func(measure func(func(int) error) error) error {
		store, keys, err := cells(n)
		if err != nil {
			return err
		}
		updates := make([]state.Update, n)
		batches := make([]state.Batch, n)
		for i := range batches {
			batches[i] = state.Batch{Owner: "own", Updates: updates[i : i+1]}
		}
		value := 0
		return measure(each(func() error {
			value++
			base := store.Snapshot()
			for i, k := range keys {
				updates[i] = k.With(value)
				batches[i].Base = base
			}
			_, err := store.Commit(batches...)
			return err
		}))
	}
}

// Idle is n hooks at StepStart that do nothing.
func Idle(n int) engine.Plugin {
	return engine.NewPlugin("idle", func(r *engine.Registrar) error {
		for range n {
			r.Hook(phase.StepStart, phase.HookFunc(func(context.Context, *phase.Context) (phase.Command, error) {
				return phase.Command{}, nil
			}))
		}
		return nil
	})
}
