package enginetest

import (
	"errors"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
)

// assemble makes a report of the events of one phase, from its start to its end.
func assemble(p phase.Phase, events []engine.Event) (*engine.Report, error) {
	rep := &engine.Report{Phase: p}
	var failed error
	for _, e := range events {
		switch e := e.(type) {
		case engine.HookFinished:
			rep.Hooks = append(rep.Hooks, engine.HookReport{
				Plugin: e.Plugin, Hook: e.Hook, Tier: e.Tier, Status: e.Status, Calls: e.Calls,
				Duration: e.Duration, Err: textError(e.Error),
			})
		case engine.ActionFinished:
			rep.Actions = append(rep.Actions, engine.ActionReport{
				ID: e.ID, Action: e.Action, Plugin: e.Plugin, Round: e.Round, Status: e.Status,
				By: e.By, Reason: e.Reason, Duration: e.Duration, Err: textError(e.Error),
			})
		case engine.EffectFinished:
			rep.Effects = append(rep.Effects, effects.Outcome{
				ID: e.ID, Name: e.Effect, Owner: e.Plugin, Handler: e.Handler, Began: e.Began, Duration: e.Duration, Err: textError(e.Error),
			})
		case engine.PhaseFinished:
			rep.Rounds, rep.Retries, rep.Duration = e.Rounds, e.Retries, e.Duration
			rep.Revision = e.Revision
			failed = textError(e.Error)
		}
	}
	return rep, failed
}

// textError is an error of which only the text is left.
func textError(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}
