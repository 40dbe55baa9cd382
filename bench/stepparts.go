package bench

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// StepParts is the work of doing, n times each and one after another, the parts of a
// step of WholeStep, all through public functions. What the parts do not have is what
// the engine adds when it puts them together: it leads from one to the next, looks for
// actions and for a reason to end, measures times, checks what comes back, and keeps
// calls that hang from holding up a run. The parts:
//
//   - phases: the step's phases that have hooks, by Thread.RunPhase inside a run of the
//     same plugins that nobody observes, with the commits of the hooks.
//   - gates: for each call, the three gates asked at the same time on an errgroup, and
//     gate.Resolve over their votes.
//   - tools: for each call, the tool's Call on a goroutine of its own, waited for
//     together with the context.
//   - model: the request from the transcript, the call with a copy of it on a goroutine
//     of its own, waited for together with the context, and the answer checked and copied.
//   - commits: the updates that the engine itself commits in such a step (where it stands,
//     the answer, the calls and their results), as recorded from one, in as many commits.
//   - events: those that one step emits, as recorded: each made anew with the time,
//     queued for another goroutine, copied and counted there.
func StepParts() Work {
	return func(measure func(func(int) error) error) error {
		rec, err := recordStep()
		if err != nil {
			return err
		}
		commits, err := rec.commits()
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(context.Background()) // one that can end is waited for
		defer cancel()
		model, err := askModel(ctx)
		if err != nil {
			return err
		}
		return Phases(stepPhases, stepPlugins()...)(func(phases func(int) error) error {
			parts := []func(int) error{phases, askGates(), callTools(ctx, rec.snapshot), model, commits, rec.events()}
			return measure(func(n int) error {
				for _, part := range parts {
					if err := part(n); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

// recording is what a step of WholeStep committed and emitted.
type recording struct {
	before   [][]state.Batch // commits up to the step
	inStep   [][]state.Batch // the engine's own commits of the step
	emitted  []engine.Event
	snapshot *state.Snapshot // of the step's last commit
}

// recordStep runs three steps and keeps the second.
func recordStep() (*recording, error) {
	rec := &recording{}
	observer := engine.ObserverFunc(func(e engine.Event) {
		if e.Head().Step == 2 {
			rec.emitted = append(rec.emitted, e)
		}
	})
	eng, err := NewEngine(CallingModel(stepCalls), []engine.Observer{observer}, stepPlugins()...)
	if err != nil {
		return nil, err
	}
	th, err := eng.NewThread("bench")
	if err != nil {
		return nil, err
	}
	defer th.Subscribe(rec.add)()
	spec := Spec
	spec.MaxRounds = 3
	res, err := th.Run(context.Background(), spec, engine.Prompt("go"))
	if err == nil {
		err = res.Err
	}
	if err == nil && (len(rec.inStep) == 0 || len(rec.emitted) == 0) {
		err = errors.New("bench: nothing was recorded of a step")
	}
	return rec, err
}

func (rec *recording) add(c state.Commit) {
	var batches []state.Batch
	own := true
	for _, w := range c.Writes {
		if last := len(batches) - 1; last >= 0 && batches[last].Owner == w.Owner {
			batches[last].Updates = append(batches[last].Updates, w.Update)
		} else {
			batches = append(batches, state.Batch{Owner: w.Owner, Updates: []state.Update{w.Update}})
		}
		own = own && !isHook(w.Owner)
	}
	switch step := phase.RunLifecycle.Get(c.Snapshot).Step; {
	case len(batches) == 0 || step > 2:
	case step < 2:
		rec.before = append(rec.before, batches)
	case own:
		rec.inStep = append(rec.inStep, batches)
		rec.snapshot = c.Snapshot
	}
}

// isHook reports whether a commit's author is one of stepPlugins, whose commits are
// part of the phases.
func isHook(owner string) bool {
	return slices.ContainsFunc(stepPlugins(), func(p engine.Plugin) bool { return p.Name() == owner })
}

// commits is the step that commits again what the engine did in the recorded step, on
// a store of the same keys that stands where the engine's stood.
func (rec *recording) commits() (func(int) error, error) {
	const history = 16 // as a thread has it
	store, err := state.NewStore(state.Config{Keys: slices.Collect(rec.snapshot.Keys()), History: history})
	if err != nil {
		return nil, err
	}
	commit := func(commits [][]state.Batch) error {
		for _, batches := range commits {
			if res, err := store.Commit(batches...); err != nil || len(res.Rejected) > 0 {
				return errors.Join(errors.New("bench: a recorded commit is refused"), err)
			}
		}
		return nil
	}
	if err := commit(rec.before); err != nil {
		return nil, err
	}
	// Once in a while, or the transcript that nobody cuts here would grow for ever.
	cut := [][]state.Batch{{{Updates: []state.Update{engine.Transcript.Reset(), engine.Transcript.Append(inference.User("go"))}}}}
	done := 0
	return each(func() error {
		if done++; done%64 == 0 {
			if err := commit(cut); err != nil {
				return err
			}
		}
		return commit(rec.inStep)
	}), nil
}

// events is the step that makes the recorded events anew and has them observed.
func (rec *recording) events() func(int) error {
	return func(n int) error {
		seen := &counter{}
		q := newMailbox()
		var observer sync.WaitGroup
		observer.Go(func() {
			for batch := q.take(); batch != nil; batch = q.take() {
				for _, e := range batch {
					seen.Observe(copyEvent(e, e.Head()))
				}
			}
		})
		seq := uint64(0)
		for range n {
			for _, e := range rec.emitted {
				seq++
				h := e.Head()
				h.Seq, h.Time = seq, time.Now()
				q.put(copyEvent(e, h))
			}
		}
		q.close()
		observer.Wait()
		if seen.seen.Load() != int64(seq) {
			return errors.New("bench: an event was lost")
		}
		return nil
	}
}

// copyEvent returns a copy of an event of such a step, with that header.
func copyEvent(e engine.Event, h engine.Header) engine.Event {
	switch e := e.(type) {
	case engine.StepStarted:
		e.Header = h
		return e
	case engine.StepFinished:
		e.Header = h
		return e
	case engine.PhaseStarted:
		e.Header = h
		return e
	case engine.PhaseFinished:
		e.Header = h
		return e
	case engine.HookFinished:
		e.Header = h
		return e
	case engine.Committed:
		e.Header, e.Writes = h, slices.Clone(e.Writes)
		return e
	case engine.InferenceStarted:
		e.Header = h
		return e
	case engine.InferenceFinished:
		e.Header, e.ToolCalls = h, slices.Clone(e.ToolCalls)
		return e
	case engine.GateVoted:
		e.Header = h
		return e
	case engine.GateResolved:
		e.Header = h
		return e
	case engine.ToolStarted:
		e.Header = h
		return e
	case engine.ToolFinished:
		e.Header = h
		return e
	}
	return nil // a step has no other events; the test of this package sees to it
}

// askGates is the step that settles the step's calls by three gates.
func askGates() func(int) error {
	call := inference.ToolCall{ID: "c0", Name: "null", Args: "{}"}
	pc := phase.NewContext(phase.Frame{Phase: phase.ToolGate})
	gates := []gate.Gate{approve, approve, approve}
	return each(func() error {
		for range stepCalls {
			votes := make([]gate.Vote, len(gates))
			g, ctx := errgroup.WithContext(context.Background())
			for i, one := range gates {
				g.Go(func() error {
					d, err := one.Check(ctx, pc)
					votes[i] = gate.Vote{Plugin: "gates", Decision: d, Err: err}
					return nil
				})
			}
			if err := g.Wait(); err != nil {
				return err
			}
			if gate.Resolve(call, votes).Decision.Kind() != gate.KindApprove {
				return errors.New("bench: a call was not approved")
			}
		}
		return nil
	})
}

// apart calls fn on a goroutine of its own and waits for it or the end of ctx.
func apart[T any](ctx context.Context, fn func(context.Context) (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := fn(ctx)
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// callTools is the step that runs the step's calls.
func callTools(ctx context.Context, snap *state.Snapshot) func(int) error {
	tool := nullTool()
	pc := phase.NewContext(phase.Frame{Phase: phase.BeforeToolExecute, Snapshot: snap})
	return each(func() error {
		for range stepCalls {
			out, err := apart(ctx, func(ctx context.Context) (engine.Output, error) { return tool.Call(ctx, pc) })
			if err != nil {
				return err
			}
			if out.Content != "ok" {
				return errors.New("bench: a tool gave " + out.Content)
			}
		}
		return nil
	})
}

// askModel is the step that makes the request of a step and asks the model.
func askModel(ctx context.Context) (func(int) error, error) {
	model := CallingModel(stepCalls)
	specs := []inference.ToolSpec{nullTool().Spec()}
	prompt := state.NewLog("prompt", state.Options[inference.Message]{Clone: inference.Message.Clone})
	store, err := state.NewStore(state.Config{Keys: []state.AnyKey{prompt}})
	if err == nil {
		_, err = store.Commit(state.Batch{Updates: []state.Update{prompt.Append(inference.User("go"))}})
	}
	if err != nil {
		return nil, err
	}
	return each(func() error {
		req := inference.Request{Messages: prompt.Get(store.Snapshot()).Slice(), Tools: slices.Clone(specs)}
		sent := req.Clone()
		resp, err := apart(ctx, func(ctx context.Context) (inference.Response, error) { return model.Generate(ctx, sent) })
		if err == nil {
			err = inference.ValidateResponse(resp)
		}
		if err != nil {
			return err
		}
		if len(resp.Clone().Message.ToolCalls) != stepCalls {
			return errors.New("bench: the model asked for no calls")
		}
		return nil
	}), nil
}
