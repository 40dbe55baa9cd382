package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// handOff lets the agent that HandOff named take over, in one commit with what
// its plugins prepare and the former agent's clean up.
func (r *run) handOff(ctx context.Context) (done bool, err error) {
	to := nextAgent.Get(r.th.store.Snapshot())
	if to == "" {
		return false, nil
	}
	next, ok := r.eng.agents[to]
	if !ok {
		return false, fmt.Errorf("%w %q in a handoff; put it into Config.Agents", ErrUnknownAgent, to)
	}
	old := r.agent.Load()
	lows := []lowered{{batch: state.Batch{Owner: engineName, Updates: []state.Update{
		nextAgent.Reset(), activeAgent.With(to),
	}}}}
	off, err := r.activation(old, next)
	if err != nil {
		return false, err
	}
	lows = append(lows, off...)
	res, err := r.commitLowered(ctx, lows)
	if err != nil {
		return false, err
	}
	if len(res.Rejected) > 0 {
		return false, res.Rejected[0].Err
	}
	r.committed(scene{}, res.Snapshot, lows)
	r.agent.Store(next)
	r.emit(scene{}, func(h Header) Event { return HandedOff{Header: h, From: old.spec.ID, To: to} })
	return true, nil
}

// activation returns what plugins want to commit when next follows old, which is
// nil at the start of a run. Plugins active in both are not asked.
func (r *run) activation(old, next *agent) ([]lowered, error) {
	var lows []lowered
	var errs []error
	for _, ps := range r.eng.parts {
		was, is := old != nil && old.active[ps.plugin], next.active[ps.plugin]
		if was == is {
			continue
		}
		var b Batch
		err := guard(ps.plugin, 0, func() error {
			if a, ok := ps.impl.(Activator); ok && is {
				return a.OnActivate(next.spec.Clone(), &b)
			}
			if d, ok := ps.impl.(Deactivator); ok && was {
				return d.OnDeactivate(&b)
			}
			return nil
		})
		if err != nil {
			errs = append(errs, &HookError{Plugin: ps.plugin, Hook: "activation", Phase: phase.RunStart, Err: err})
		} else if len(b.updates) > 0 {
			lows = append(lows, lowered{batch: state.Batch{Owner: ps.plugin, Updates: b.updates}})
		}
	}
	return lows, errors.Join(errs...)
}
