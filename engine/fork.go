package engine

import (
	"context"
	"slices"

	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Lineage says where a forked thread comes from.
type Lineage struct {
	Thread   string `json:"thread"`
	Run      string `json:"run,omitzero"` // that was under way or had ended there
	Revision uint64 `json:"revision"`
}

var lineage = state.NewCell("fixpoint.lineage", state.Options[Lineage]{Scope: state.ScopeThread})

// Origin returns where the thread was forked from; false when it was not.
func (t *Thread) Origin() (Lineage, bool) { return lineage.Lookup(t.store.Snapshot()) }

// Fork returns a new thread that begins as t was at an earlier revision, with edits
// applied. The original is only read.
//
// A fork is another story, not a second answer: a run that had not ended there is
// the fork's own, under a new id, and goes on with Resume. Calls without a result
// begin anew there: their tools run, also if they had started, and questions about
// them are asked again, with new ids. A call that has its result keeps it. An empty id
// is replaced by a new one.
func (t *Thread) Fork(ctx context.Context, revision uint64, id string, edits ...state.Update) (*Thread, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	snap, err := t.Past(ctx, revision)
	if err != nil {
		return nil, err
	}
	dump, err := snap.Export()
	if err != nil {
		return nil, err
	}
	fork, err := t.eng.NewThread(id)
	if err != nil {
		return nil, err
	}
	if _, err := fork.store.Import(dump, state.KeepUnknown); err != nil {
		return nil, err
	}
	fork.lastID.Store(lastID.Get(fork.store.Snapshot()))
	l := lifecycle(snap)
	updates := []state.Update{lineage.With(Lineage{Thread: t.id, Run: l.Run, Revision: revision}), decisions.Reset()}
	if l.Status == phase.Waiting || l.Status == phase.Running {
		run := t.eng.config.NewID()
		updates = append(updates, phase.RunLifecycle.With(phase.LifecycleUpdate{Fork: run}))
		for _, c := range stepCalls(snap) {
			switch open := c.Status == CallSuspended || c.Status == CallResuming; {
			case !c.Ended && c.Status != CallNew:
				updates = append(updates, ToolCalls.Put(c.Call.ID, CallState{Index: c.Index, Call: c.Call, Status: CallNew}))
			case c.After && open: // it has run, and whether its result is released is asked again
				old := c.Ticket.ID
				c.Answers = slices.DeleteFunc(slices.Clone(c.Answers), func(a TicketAnswer) bool { return a.Ticket.ID == old })
				c.Status, c.Tickets = CallSuspended, c.Tickets+1
				c.Ticket.ID = ticketID(run, l.Step, c.Call.ID, c.Tickets)
				if c.Ticket.Lifetime > 0 {
					c.Ticket.Until = t.eng.config.Now().Add(c.Ticket.Lifetime).UTC().Round(0)
				}
				updates = append(updates, ToolCalls.Put(c.Call.ID, c))
			}
		}
	}
	_, err = fork.store.Commit(state.Batch{Owner: engineName, Updates: append(updates, edits...)})
	if err != nil {
		return nil, err
	}
	return fork, nil
}

// Replay does again what came after a revision at which a run was under way or waited:
// it forks the thread there and lets the fork's run go on, with the model and the tools
// asked anew. It returns the fork also when its run could not go on. For decisions and
// edits use Fork and Resume.
func (t *Thread) Replay(ctx context.Context, revision uint64, id string, spec AgentSpec, in Input) (*Thread, *Result, error) {
	fork, err := t.Fork(ctx, revision, id)
	if err != nil {
		return nil, nil, err
	}
	res, err := fork.Resume(ctx, spec, in)
	return fork, res, err
}
