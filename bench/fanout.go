package bench

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// fanoutRows are P1 to P4: what it costs to run hooks side by side and to merge what
// they return. The baseline of the first three is less than any fan-out does: the
// closures of the errgroup are empty and nothing is committed.
func fanoutRows() []Row {
	gather := func(id string, n int, limit float64) Row {
		return Row{
			ID: id, Case: fmt.Sprintf("hooks=%d", n), Name: fmt.Sprintf("gather of %s on own keys", count(n, "hook")),
			Baseline: fmt.Sprintf("errgroup, %s", count(n, "empty closure")), Impl: "errgroup", Limit: limit,
			Work: StepStart(OwnKeys(n)), Base: Spawn(n),
		}
	}
	return append(append([]Row{gather("P1", 64, 0.7)}, floorRows()...),
		gather("P2", 8, 0.9),
		gather("P2", 1, 1.0),
		Row{
			ID: "P3", Case: "hooks=64", Name: "64 hooks add to one counter",
			Baseline: "errgroup, 64 empty closures", Impl: "errgroup", Limit: 0.5,
			Work: StepStart(Commutative(64)), Base: Spawn(64),
		},
		Row{
			ID: "P4", Case: "hooks=8", Name: "8 hooks on one key, 7 run again",
			Baseline: "detect and retry by hand on a btree", Impl: "loop", Limit: 1.0,
			Work: StepStart(Conflict(8)), Base: plain(retryByHand(8)),
		},
		Row{
			ID: "P4", Case: "part=commits", Name: "of it: 8 commits, one after another",
			Baseline: "detect and retry by hand on a btree", Impl: "loop",
			Work: CommitOneByOne(8), Base: plain(retryByHand(8)),
		},
	)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// OwnKeys is n hooks at StepStart, each of which reads one key and writes it.
func OwnKeys(n int) engine.Plugin {
	return engine.NewPlugin("own", func(r *engine.Registrar) error {
		for i := range n {
			key := state.NewCell[int](fmt.Sprintf("own.%03d", i), state.Options[int]{})
			r.Key(key)
			r.Hook(phase.StepStart, increment(key))
		}
		return nil
	})
}

// Commutative is n hooks at StepStart that all add to one counter.
func Commutative(n int) engine.Plugin {
	return engine.NewPlugin("commutative", func(r *engine.Registrar) error {
		key := state.NewCounter("commutative", state.Options[int64]{})
		r.Key(key)
		for range n {
			r.Hook(phase.StepStart, phase.HookFunc(func(context.Context, *phase.Context) (cmd phase.Command, err error) {
				cmd.Update(key.With(1))
				return cmd, nil
			}))
		}
		return nil
	})
}

// Conflict is n hooks at StepStart that all increment one Exclusive key, so that
// n-1 of them run again.
func Conflict(n int) engine.Plugin {
	return engine.NewPlugin("conflict", func(r *engine.Registrar) error {
		key := state.NewCell[int]("conflict", state.Options[int]{})
		r.Key(key)
		for range n {
			r.Hook(phase.StepStart, increment(key))
		}
		return nil
	})
}

// Spawn is the baseline of every fan-out: n empty closures on an errgroup, waited for.
func Spawn(n int) Work {
	return plain(each(func() error {
		var g errgroup.Group
		for range n {
			g.Go(func() error { return nil })
		}
		return g.Wait()
	}))
}

// retryByHand is what P4 is without an engine: n closures on an errgroup read one key
// of a snapshot and say what they would write; all but the first collide, and run
// again one by one, each on a fresh snapshot and with a commit of its own.
func retryByHand(n int) func(int) error {
	s := newHandStore()
	s.commit("key", 0)
	type claim struct {
		key   string
		value int
	}
	next := func() claim { return claim{"key", s.get("key") + 1} }
	want := 0
	return each(func() error {
		claims := make([]claim, n)
		var g errgroup.Group
		for i := range n {
			g.Go(func() error {
				claims[i] = next()
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		taken := map[string]bool{}
		for _, c := range claims {
			if taken[c.key] {
				c = next()
			}
			taken[c.key] = true
			s.commit(c.key, c.value)
		}
		if want += n; s.get("key") != want {
			return errors.New("bench: a write was lost")
		}
		return nil
	})
}
