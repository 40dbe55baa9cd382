package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/internal/fanout"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// aside is a delegate at work beside the steps of its run. It ends before the run ends
// or waits, so that neither leaves a goroutine behind.
type aside struct {
	id     string // of its run
	task   task
	out    Output // once done
	done   <-chan struct{}
	recall context.CancelCauseFunc
	held   heldEvents
}

// task is what is known of a delegate in the background, also by who finds the run
// after its process ended.
type task struct {
	Agent string `json:"agent"`
	Call  string `json:"call"`
}

// background holds the delegates whose answers have not arrived, by the id of their run.
var background = state.NewTable[string]("fixpoint.background", state.Options[task]{})

// errRecalled is why a delegate in the background is cancelled when its run ends.
var errRecalled = errors.New("engine: the run that delegated has ended")

// sendOff starts the call's delegate. Its answer arrives at the beginning of a later step.
func (r *run) sendOff(ctx context.Context, d *delegate, p *passage, in string) (out Output) {
	a := &aside{id: r.childID(p.sc.call.Call), task: task{d.agent, p.sc.call.Call.ID}}
	ctx, a.recall = context.WithCancelCause(ctx)
	a.done = fanout.Beside(r.crew, func() { a.out, _ = r.delegated(ctx, a.id, d, in, &a.held) })
	p.aside = a
	out.Content = fmt.Sprintf("agent %s works in the background; its answer comes as a message", d.agent)
	out.Command.Update(background.Put(a.id, a.task))
	return out
}

// arrive takes in what delegates in the background gave that are done, in the order in
// which they were sent off. The run's next model call sees it. An ending is why it cannot
// go on.
func (r *run) arrive(ctx context.Context) ending {
	pending := background.All(r.th.store.Snapshot())
	var cmd phase.Command
	arrived := func(id string, t task, text string) {
		cmd.Update(background.Delete(id))
		cmd.Schedule(AddContext.New(ContextArgs{Message: inference.User(
			fmt.Sprintf("Agent %s, which worked in the background since call %s, is done:\n%s", t.Agent, t.Call, text))}))
	}
	var known []string
	r.asides = slices.DeleteFunc(r.asides, func(a *aside) bool {
		known = append(known, a.id)
		select {
		case <-a.done:
		default:
			return false
		}
		a.recall(nil)
		r.replay(&a.held)
		cmd.Update(a.out.Command.Updates()...)
		arrived(a.id, a.task, a.out.Content)
		return true
	})
	for id, t := range pending {
		if !slices.Contains(known, id) {
			arrived(id, t, "error: it was lost when its process ended")
		}
	}
	if _, err := r.submit(ctx, scene{}, engineName, cmd); err != nil {
		return r.failed(ctx, err)
	}
	return ending{}
}

// reunite waits for all delegates in the background and takes in what they gave. An ending
// means that the run must end instead: somebody may ask for that meanwhile.
func (r *run) reunite(ctx context.Context) ending {
	r.out.Rouse()
	wait, stop := context.WithCancel(ctx)
	defer stop()
	look := func(state.Commit) {
		if r.ended() {
			stop()
		}
	}
	defer r.th.Subscribe(look)()
	look(state.Commit{}) // at what was committed before
	for _, a := range r.asides {
		select {
		case <-a.done:
		case <-wait.Done():
		}
	}
	if end := r.boundary(ctx); end.reason != "" {
		return end
	}
	return r.arrive(ctx)
}

// callBack stops the delegates in the background, since the run ends. Nobody is left to
// hear what they would say; what they cost counts.
func (r *run) callBack(ctx context.Context) error {
	var updates []state.Update
	for _, a := range r.asides {
		a.recall(errRecalled)
	}
	for _, a := range r.asides {
		<-a.done
		r.replay(&a.held)
		updates = append(updates, a.out.Command.Updates()...)
		r.warn(scene{}, engineName, "agent %s worked in the background since call %s when the run ended: %s", a.task.Agent, a.task.Call, a.out.Content)
	}
	r.asides = nil
	for id := range background.All(r.th.store.Snapshot()) { // also what another process took with it
		updates = append(updates, background.Delete(id))
	}
	return r.apply(ctx, scene{}, updates...)
}
