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
	first := state.Batch{Owner: engineName, Updates: []state.Update{nextAgent.Reset(), activeAgent.With(to)}}
	off, err := r.activation(ctx, old, next)
	if err != nil {
		return false, err
	}
	if err := r.applyAll(scene{}, append([]state.Batch{first}, off...)...); err != nil {
		return false, err
	}
	r.agent.Store(next)
	r.emit(scene{}, func(h Header) Event { return HandedOff{Header: h, From: old.spec.ID, To: to} })
	return true, nil
}

// activation returns what plugins want to commit when next follows old, which is
// nil at the start of a run. Plugins active in both are not asked. It is all or
// nothing: if two of them want to write the same thing, nothing is committed.
func (r *run) activation(ctx context.Context, old, next *agent) (batches []state.Batch, err error) {
	var errs []error
	for _, ps := range r.eng.parts {
		was, is := old != nil && old.active[ps.plugin], next.active[ps.plugin]
		if was == is {
			continue
		}
		a, wakes := ps.impl.(Activator)
		d, sleeps := ps.impl.(Deactivator)
		if !(wakes && is) && !(sleeps && was) {
			continue
		}
		b, err := detached(ctx, nil, ps.plugin, 0, func(context.Context) (b Batch, err error) {
			if is {
				err = a.OnActivate(next.spec.Clone(), &b)
			} else {
				err = d.OnDeactivate(&b)
			}
			return b, err
		})
		if err != nil {
			errs = append(errs, &HookError{Plugin: ps.plugin, Hook: "activation", Phase: phase.RunStart, Err: err})
		} else if len(b.updates) > 0 {
			batches = append(batches, state.Batch{Owner: ps.plugin, Updates: b.updates, Required: true})
		}
	}
	return batches, errors.Join(errs...)
}
