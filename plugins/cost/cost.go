package cost

import (
	"context"
	"fmt"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Name is the plugin's name.
const Name = "cost"

// ReasonLimit is why a run ended that reached a limit, and ReasonUnknown why one did
// that used a model without a price.
const (
	ReasonLimit   phase.Reason = "cost_limit"
	ReasonUnknown phase.Reason = "cost_unknown_model"
)

// Options adjust the plugin. The zero value tells nobody but the model.
type Options struct {
	// Tell is called with every report, after the commit that it is about. It is the
	// handler of an effect: its error is in the run's events and stops nothing. It must
	// be safe for concurrent use.
	Tell func(ctx context.Context, r Report) error
}

// New returns the plugin. It is safe for concurrent use as far as o.Tell is.
func New(o Options) engine.Plugin {
	return engine.NewPlugin(Name, func(r *engine.Registrar) error {
		r.Key(Run, Thread, Models, Cache, counted, told)
		r.Section(Section)
		r.Effect(Reported.Handle(func(ctx context.Context, _ *state.Snapshot, rep Report) error {
			if o.Tell == nil {
				return nil
			}
			return o.Tell(ctx, rep)
		}))
		r.Gate(gate.Func(check))
		skip := engine.OnError(engine.Skip)
		account := engine.Writes(Run, Thread, Models, Cache, counted, told, phase.RunLifecycle)
		last := engine.Writes(Run, Thread, Models, counted, told)
		r.Hook(phase.RunStart, phase.HookFunc(begin), engine.Writes(phase.RunLifecycle, told), skip)
		r.Hook(phase.BeforeInference, phase.HookFunc(tellModel), engine.Writes(told), skip)
		r.Hook(phase.AfterInference, phase.HookFunc(settle), account, skip)
		r.Hook(phase.StepEnd, phase.HookFunc(settle), account, skip)
		r.Hook(phase.RunEnd, phase.HookFunc(summarise), last, skip)
		return nil
	})
}

// bill is what is not in the totals yet: the model call of the moment, and the rest.
type bill struct {
	parts   []ModelTotal
	total   Total
	used    inference.Usage // what counted becomes
	call    inference.Usage
	called  bool   // a model call is part of it
	model   string // that answered
	unknown string // a model without a price, or ""
}

// open returns the bill that is open at pc.
func open(pc *phase.Context, s Settings) (b bill) {
	snap := pc.Snapshot()
	b.used = engine.Usage.Get(snap)
	rest := less(b.used, counted.Get(snap))
	add := func(name string, calls int64, u inference.Usage, models ...string) {
		part := Total{Calls: calls, Usage: u}
		p, model, ok := s.price(models...)
		if ok {
			part.Amount = p.Of(u)
		} else {
			part.Unpriced = u
			b.unknown = model
		}
		if name == "" {
			name, b.model = model, model
		}
		b.parts = append(b.parts, ModelTotal{name, part})
		b.total = b.total.Add(part)
	}
	own := pc.Agent().Model
	if resp, ok := pc.Response(); ok && pc.Phase() == phase.AfterInference {
		b.call, b.called = resp.Usage, true
		models := []string{resp.Model}
		if !s.settled(resp.Model) {
			req, _ := pc.Request() // a copy of all messages
			models = append(models, req.Model, own)
		}
		add("", 1, resp.Usage, models...)
		rest = less(rest, resp.Usage)
	}
	if rest != (inference.Usage{}) {
		add(Elsewhere, 0, rest, own)
	}
	return b
}

// totals returns the totals with the bill charged.
func (b bill) totals(snap *state.Snapshot) (run, thread Total) {
	return Run.Get(snap).Add(b.total), Thread.Get(snap).Add(b.total)
}

// limit returns the limit that the totals have reached, if any, in words too.
func (s Settings) limit(run, thread Total) (Amount, string) {
	switch {
	case s.Limit > 0 && run.Amount >= s.Limit:
		return s.Limit, fmt.Sprintf("the run has cost %s of %s %s", run.Amount, s.Limit, s.Currency)
	case s.ThreadLimit > 0 && thread.Amount >= s.ThreadLimit:
		return s.ThreadLimit, fmt.Sprintf("the thread has cost %s of %s %s", thread.Amount, s.ThreadLimit, s.Currency)
	}
	return 0, ""
}

// begin ends a run at once on a thread that has used up its limit.
func begin(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	s := Section.Get(pc)
	s.enforce(pc, &cmd, Run.Get(pc.Snapshot()), Thread.Get(pc.Snapshot()), notes{})
	return cmd, nil
}

// enforce does what is due at a limit; n is what was told before.
func (s Settings) enforce(pc *phase.Context, cmd *phase.Command, run, thread Total, n notes) {
	at, words := s.limit(run, thread)
	if at == 0 {
		return
	}
	if s.AtLimit != LimitBlocksCall {
		cmd.EndRun(ReasonLimit, words)
	}
	if !n.Limit {
		n.Limit = true
		rep := report(pc, s, EventLimit, run, thread)
		rep.At = at
		cmd.Update(told.With(n)).Emit(Reported.New(rep))
	}
}

// settle charges what is open.
func settle(_ context.Context, pc *phase.Context) (phase.Command, error) {
	s := Section.Get(pc)
	return charging(pc, s, open(pc, s)), nil
}

// charging returns the command that charges a bill.
func charging(pc *phase.Context, s Settings, b bill) (cmd phase.Command) {
	if len(b.parts) == 0 {
		return cmd
	}
	snap := pc.Snapshot()
	run, thread := b.totals(snap)
	cmd.Update(counted.With(b.used), Run.With(b.total), Thread.With(b.total))
	emit := func(event Event, at Amount, model string) {
		rep := report(pc, s, event, run, thread)
		rep.At, rep.Model = at, model
		cmd.Emit(Reported.New(rep))
	}
	for _, part := range b.parts {
		before, _ := Models.Get(snap, part.Model)
		cmd.Update(Models.Put(part.Model, before.Add(part.Total)))
		if part.Total.Unpriced != (inference.Usage{}) && before.Unpriced == (inference.Usage{}) {
			emit(EventUnknown, 0, part.Model)
		}
	}
	if b.called {
		was := Cache.Get(snap)
		is := was.after(b.call)
		cmd.Update(Cache.With(is))
		if is.Cold > was.Cold {
			emit(EventColdCall, 0, b.model)
		}
	}
	n := told.Get(snap)
	if at := passed(s.TellAt, run.Amount); at > n.Person {
		n.Person = at
		cmd.Update(told.With(n))
		emit(EventPassed, at, "")
	}
	if pc.Phase() == phase.RunEnd {
		return cmd // it is over, whatever the limits
	}
	if b.unknown != "" && b.total.Unpriced != (inference.Usage{}) && s.Unknown == UnknownEndRun {
		cmd.EndRun(ReasonUnknown, fmt.Sprintf("model %q has no price", b.unknown))
	}
	s.enforce(pc, &cmd, run, thread, n)
	return cmd
}

// passed returns the highest of the amounts that cost has reached.
func passed(at []Amount, cost Amount) (highest Amount) {
	for _, a := range at {
		if cost >= a {
			highest = a
		}
	}
	return highest
}

// tellModel tells the model what was told the person, before it is asked again.
func tellModel(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	s, n := Section.Get(pc), told.Get(pc.Snapshot())
	if n.Person <= n.Model {
		return cmd, nil
	}
	n.Model = n.Person
	text := fmt.Sprintf("This run has cost %s %s so far.", Run.Get(pc.Snapshot()).Amount, s.Currency)
	if s.Limit > 0 {
		text += fmt.Sprintf(" It may cost %s.", s.Limit)
	}
	cmd.Update(told.With(n))
	cmd.Schedule(engine.AddContext.New(engine.ContextArgs{Message: inference.System(text), Mode: s.Note}))
	return cmd, nil
}

// check blocks tool calls at a limit, if that is what it does.
func check(_ context.Context, pc *phase.Context) (gate.Decision, error) {
	s := Section.Get(pc)
	if s.AtLimit != LimitBlocksCall {
		return gate.Abstain(), nil
	}
	// With what is not charged yet: a delegate of this step may have passed the limit.
	if at, words := s.limit(open(pc, s).totals(pc.Snapshot())); at > 0 {
		return gate.Block(words + "; answer with what you have, tools do not run any more"), nil
	}
	return gate.Abstain(), nil
}

// summarise charges what is left and reports what the run has cost.
func summarise(_ context.Context, pc *phase.Context) (phase.Command, error) {
	s, snap := Section.Get(pc), pc.Snapshot()
	b := open(pc, s)
	cmd := charging(pc, s, b)
	run, thread := b.totals(snap)
	models := Models.View(snap)
	for _, part := range b.parts {
		before, _ := models.Get(part.Model)
		models = models.With(part.Model, before.Add(part.Total))
	}
	rep := report(pc, s, EventSummary, run, thread)
	for model, total := range models.All() {
		rep.Models = append(rep.Models, ModelTotal{model, total})
	}
	cmd.Emit(Reported.New(rep))
	return cmd, nil
}
