package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Run runs the agent on this thread and returns when the run ended. The error is
// non-nil only when nothing ran: a bad spec or input, a run under way, a closed
// engine. How the run itself went is in the Result, whatever happened.
func (t *Thread) Run(ctx context.Context, spec AgentSpec, in Input) (*Result, error) {
	a, err := t.eng.prepare(spec)
	if err != nil {
		return nil, err
	}
	return t.run(ctx, a, in, nil, nil)
}

func (t *Thread) run(ctx context.Context, a *agent, in Input, parent *run, held *heldEvents) (*Result, error) {
	if err := t.eng.ready(); err != nil {
		return nil, err
	}
	in, err := checkInput(in, a)
	if err != nil {
		return nil, err
	}
	r, done, err := t.claim(ctx, a, in, parent, held)
	if err != nil {
		return nil, err
	}
	defer done()
	// Only now, since the run before may have begun to wait until the thread was free.
	if lifecycle(t.Snapshot()).Status == phase.Waiting {
		return nil, ErrWaiting
	}
	return r.whole(ctx), nil
}

// claim makes a run and the thread its own. The caller calls done when it is over.
func (t *Thread) claim(ctx context.Context, a *agent, in Input, parent *run, held *heldEvents) (r *run, done func(), err error) {
	if t.active.Load() != nil {
		return nil, nil, ErrBusy // before newRun starts anything
	}
	if r, err = t.newRun(a, in, parent, held); err != nil {
		return nil, nil, err
	}
	if !t.active.CompareAndSwap(nil, r) {
		r.release()
		return nil, nil, ErrBusy
	}
	if r.lease, err = t.chain.acquire(ctx); err != nil {
		t.active.Store(nil)
		r.release()
		return nil, nil, err
	}
	return r, func() {
		// The thread is free before the observers have caught up: one of them may use it.
		t.active.Store(nil)
		r.release()
	}, nil
}

// lifecycle returns where the thread's last run stands.
func lifecycle(snap *state.Snapshot) phase.Lifecycle { return phase.RunLifecycle.Get(snap) }

// checkInput returns a copy of the input that nobody else can change.
func checkInput(in Input, a *agent) (Input, error) {
	for i, m := range in.Messages {
		if m.Role != inference.RoleUser && m.Role != inference.RoleSystem && m.Role != inference.RoleAssistant {
			return in, fmt.Errorf("%w: message %d has role %q; use user, system or assistant", ErrInput, i, m.Role)
		}
		if len(m.ToolCalls) > 0 {
			return in, fmt.Errorf("%w: message %d asks for tool calls, which nobody would answer", ErrInput, i)
		}
	}
	seen := map[string]bool{}
	tools := make([]Tool, len(in.Tools))
	for i, t := range in.Tools {
		if t == nil {
			return in, fmt.Errorf("%w: tool %d is nil", ErrInput, i)
		}
		p, err := pin(t)
		if err == nil && p.bring != nil {
			err = errors.New("it brings parts, which only a plugin can register")
		}
		if err != nil {
			return in, fmt.Errorf("%w: tool %d: %w", ErrInput, i, err)
		}
		tools[i] = p
		name := p.Spec().Name
		if seen[name] || a.toolByName[name] != nil {
			return in, fmt.Errorf("%w: tool %q is there already; names are unique in a run", ErrInput, name)
		}
		seen[name] = true
	}
	in.Messages, in.Tools, in.Updates = inference.CloneMessages(in.Messages), tools, slices.Clone(in.Updates)
	return in, nil
}

// ending is why a run leaves its loop.
type ending struct {
	reason phase.Reason
	detail string
	err    error
}

// whole is a run from start to end.
func (r *run) whole(ctx context.Context) *Result {
	r.emit(scene{}, func(h Header) Event {
		ev := RunStarted{Header: h, Base: Base{State: r.th.store.Snapshot()}, Mode: r.input.Mode, Adapter: r.input.Adapter}
		if n := len(r.input.Messages); n > 0 {
			ev.Input = r.input.Messages[n-1].Text
		}
		return ev
	})
	return r.loop(ctx, r.start)
}

// loop does what comes first and then step after step, until the run ends or waits.
func (r *run) loop(ctx context.Context, first func(context.Context) ending) *Result {
	ctx, stop := r.hold(ctx)
	defer stop()
	ctx, cancel := r.deadline(ctx)
	defer cancel()
	returned := false
	defer func() {
		if !returned {
			// A lone hook ended this goroutine. Nobody gets the result, but the run has its end.
			r.finish(ctx, ending{phase.ReasonError, ErrGoexit.Error(), ErrGoexit})
		}
	}()
	end := first(ctx)
	for end.reason == "" {
		end = r.oneStep(ctx)
	}
	returned = true // from here on finish itself sees to it
	if end.reason == phase.ReasonWaiting {
		return r.suspend(ctx)
	}
	return r.finish(ctx, end)
}

// start commits the run's beginning and runs RunStart.
func (r *run) start(ctx context.Context) ending {
	if _, err := r.th.store.ResetScope(state.ScopeRun); err != nil {
		return r.failed(ctx, err)
	}
	updates := []state.Update{
		phase.RunLifecycle.With(phase.LifecycleUpdate{Run: r.info.ID, Status: phase.Running}),
		activeAgent.With(r.agent.Load().spec.ID),
	}
	if len(r.input.Messages) > 0 {
		updates = append(updates, Transcript.Append(r.input.Messages...))
	}
	begun := state.Batch{Owner: engineName, Updates: append(updates, r.input.Updates...)}
	activated, err := r.activation(ctx, nil, r.agent.Load())
	if err == nil {
		// In one commit: a run that began is one whose plugins were activated.
		err = r.applyAll(scene{}, append([]state.Batch{begun}, activated...)...)
	}
	if err != nil {
		return r.failed(ctx, errors.Join(err, r.applyAll(scene{}, begun)))
	}
	return r.passed(ctx, phase.RunStart)
}

// passed runs a phase. An ending means that the run must end behind it.
func (r *run) passed(ctx context.Context, p phase.Phase) ending {
	if err := r.phase(ctx, scene{phase: p}); err != nil {
		return r.failed(ctx, err)
	}
	return r.boundary(ctx)
}

// boundary reports whether the run must end here: it was cancelled or a command
// asked for its end.
func (r *run) boundary(ctx context.Context) ending {
	if ctx.Err() != nil {
		return r.failed(ctx, context.Cause(ctx))
	}
	if l := lifecycle(r.th.store.Snapshot()); l.Ended {
		return ending{reason: l.Reason, detail: l.Detail}
	}
	return ending{}
}

// ended reports whether a command asked for the run's end.
func (r *run) ended() bool { return lifecycle(r.th.store.Snapshot()).Ended }

// endReason says in words why calls do not run any more.
func (r *run) endReason() string {
	l := lifecycle(r.th.store.Snapshot())
	switch {
	case !l.Ended:
		return "the run ended early"
	case l.Detail != "":
		return fmt.Sprintf("the run ended: %s: %s", l.Reason, l.Detail)
	default:
		return fmt.Sprintf("the run ended: %s", l.Reason)
	}
}

// failed classifies an error that ends the run.
func (r *run) failed(ctx context.Context, err error) ending {
	switch {
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), errRunTimeout):
		return ending{reason: phase.ReasonTimeout, detail: errRunTimeout.Error()}
	case ctx.Err() != nil:
		return ending{reason: phase.ReasonCancelled, detail: context.Cause(ctx).Error(), err: err}
	default:
		return ending{reason: phase.ReasonError, detail: err.Error(), err: err}
	}
}

// oneStep runs one step and says whether the run ends with it.
func (r *run) oneStep(ctx context.Context) ending {
	start := r.now()
	step := r.step() + 1
	r.setStep(step)
	r.current.Store(nil)
	if end := r.arrive(ctx); end.reason != "" {
		return end
	}
	snap := r.th.store.Snapshot()
	r.saveWhole()
	begin := append(stepKeys(snap), phase.RunLifecycle.With(phase.LifecycleUpdate{Step: step}))
	if err := r.apply(ctx, scene{}, begin...); err != nil {
		return r.failed(ctx, err)
	}
	r.emit(scene{}, func(h Header) Event { return StepStarted{h} })
	return r.endStep(ctx, start, r.inStep(ctx))
}

// endStep tells that a step is over, which one that waits is not, and says whether
// there is another.
func (r *run) endStep(ctx context.Context, start time.Time, end ending) ending {
	if end.reason != phase.ReasonWaiting {
		r.emit(scene{}, func(h Header) Event { return StepFinished{Header: h, Duration: r.now().Sub(start)} })
	}
	if end.reason != "" {
		return end
	}
	return r.afterStep(ctx)
}

// inStep runs the phases of a step. An ending means that the step broke off.
func (r *run) inStep(ctx context.Context) ending {
	if l := lifecycle(r.th.store.Snapshot()); l.Answered == l.Step {
		return r.afterModel(ctx, r.remembered()) // the step of a run whose process ended
	}
	for _, p := range []phase.Phase{phase.StepStart, phase.BeforeInference} {
		if end := r.passed(ctx, p); end.reason != "" {
			return end
		}
	}
	x, err := r.exchange(ctx)
	if err != nil {
		return r.failed(ctx, err)
	}
	after, cancel := r.settling(ctx)
	err = r.phase(after, scene{phase: phase.AfterInference, err: x.err})
	cancel()
	if err != nil {
		return r.failed(ctx, errors.Join(err, r.closeCalls(ctx, x.calls())))
	}
	return r.afterModel(ctx, x)
}

// afterModel is the rest of a step: its tool calls, from wherever they stand, and
// StepEnd.
func (r *run) afterModel(ctx context.Context, x *exchange) ending {
	if calls := x.calls(); len(calls) > 0 {
		waiting, err := r.tools(ctx, calls)
		if err != nil {
			return r.failed(ctx, err)
		}
		if waiting {
			return ending{reason: phase.ReasonWaiting}
		}
	}
	if ctx.Err() != nil {
		return r.failed(ctx, context.Cause(ctx))
	}
	if err := r.apply(ctx, scene{}, r.progressed(x.err)); err != nil {
		return r.failed(ctx, err)
	}
	if err := r.phase(ctx, scene{phase: phase.StepEnd, err: x.err}); err != nil {
		return r.failed(ctx, err)
	}
	return ending{}
}

// calls are what the model asked for.
func (x *exchange) calls() []inference.ToolCall {
	if x.response == nil {
		return nil
	}
	return x.response.Message.ToolCalls
}

// exchange asks the model. The error is a fault of the run; the model's own is in
// the exchange, for AfterInference to see.
func (r *run) exchange(ctx context.Context) (*exchange, error) {
	sc := scene{phase: phase.BeforeInference}
	req, err := r.request(ctx, sc)
	if err != nil {
		return nil, err
	}
	x := &exchange{request: &req}
	sc.phase = phase.AfterInference
	resp, err := r.infer(ctx, sc, req)
	for x := r; x != nil; x = x.parent {
		x.used.Add(min(max(0, resp.Usage.Total()), 1<<40)) // the sum of many of them is still a number
	}
	// The answer is there: it counts even if the run is cancelled now.
	settle, cancel := r.settling(ctx)
	defer cancel()
	if err != nil {
		x.err = fmt.Errorf("engine: the model failed: %w", err)
		r.current.Store(x)
		return x, r.paid(settle, sc, resp.Usage)
	}
	x.response = &resp
	if err := r.remember(settle, sc, resp); err != nil {
		return nil, err
	}
	r.current.Store(x)
	return x, nil
}

// afterStep decides, after a whole step, whether there is another.
func (r *run) afterStep(ctx context.Context) ending {
	x := r.current.Load()
	if end := r.boundary(ctx); end.reason != "" {
		return end
	}
	a := r.agent.Load()
	if x.err != nil && a.errorLimit() == 0 {
		return ending{phase.ReasonError, x.err.Error(), x.err}
	}
	if reason, detail := r.stopped(x.response); reason != "" {
		return ending{reason, detail, x.err}
	}
	handed, err := r.handOff(ctx)
	if err != nil {
		return r.failed(ctx, err)
	}
	last := r.step() >= r.agent.Load().maxRounds() // and none comes that could see the answers of a background
	if !handed && x.err == nil && len(x.calls()) == 0 && !(last && background.Len(r.th.store.Snapshot()) > 0) {
		if end := r.natural(ctx); end.reason != "" {
			return end
		}
	}
	if last {
		return ending{reason: phase.ReasonMaxRounds, detail: fmt.Sprintf("the limit is %d steps", r.agent.Load().maxRounds())}
	}
	return ending{}
}

// natural ends the run unless a command wished for another step and the limit of
// such wishes allows it.
func (r *run) natural(ctx context.Context) ending {
	snap := r.th.store.Snapshot()
	if background.Len(snap) > 0 { // its step is to see their answers
		end := r.reunite(ctx)
		if end.reason == "" {
			end.reason, end.detail = r.stopped(nil)
		}
		return end
	}
	l := lifecycle(snap)
	if l.Continue == "" {
		return ending{reason: phase.ReasonNatural}
	}
	if l.Resumed >= r.eng.config.Limits.Continues {
		r.warn(scene{}, "", "the run ends although a hook wished to continue (%s): the limit is %d times", l.Continue, r.eng.config.Limits.Continues)
		return ending{reason: phase.ReasonNatural, detail: "limit of continuations reached"}
	}
	if err := r.apply(ctx, scene{}, phase.RunLifecycle.With(phase.LifecycleUpdate{Granted: true})); err != nil {
		return r.failed(ctx, err)
	}
	r.emit(scene{}, func(h Header) Event { return Continued{Header: h, Reason: l.Continue, Count: l.Resumed + 1} })
	return ending{}
}
