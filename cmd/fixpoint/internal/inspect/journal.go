package inspect

import (
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// narrator makes of the commits of a thread the events that they tell of. A journal does
// not know who wrote what, nor what hooks and gates did.
type narrator struct {
	thread string
	tell   func(engine.Event)

	run          string // that is under way or was the last one; "" before the first
	began        time.Time
	step         time.Time // when it began
	seq          uint64
	before, last time.Time // of the last two commits
	held         []commit  // the reset before a run, which is told behind its beginning
}

// commit tells one commit.
func (n *narrator) commit(c commit) error {
	n.before, n.last = n.last, c.time
	if n.before.IsZero() {
		n.before = c.time
	}
	was, is := phase.Lifecycle{Status: phase.Created}, phase.RunLifecycle.Get(c.after)
	if c.before != nil {
		was = phase.RunLifecycle.Get(c.before)
	}
	if is.Run == "" {
		n.held = append(n.held, c)
		return nil
	}
	base := c
	if len(n.held) > 0 {
		base = n.held[0]
	}
	switch {
	case is.Run != n.run && c.before == nil && is.Status == phase.Done:
		n.run = is.Run // over before what is kept of the thread begins
	case is.Run != n.run:
		if err := n.start(c, base, is); err != nil {
			return err
		}
	case was.Status == phase.Waiting && is.Status == phase.Running:
		n.seq = 0
		if err := n.resume(c); err != nil {
			return err
		}
	}
	n.release()
	if c.before == nil { // what it changed is not known; it is the base
		if is.Status == phase.Waiting {
			n.suspended(c)
		}
		return nil
	}
	outside := was.Status == phase.Done && is.Status == phase.Done && was.Run == is.Run
	if outside {
		n.tell(engine.Committed{Header: engine.Header{Time: c.time, Thread: n.thread, Revision: c.after.Revision()}, Changes: c.changes})
		return nil
	}
	h := func() engine.Header { return n.header(c, is.Step) }
	if is.Step > was.Step && was.Run == is.Run {
		if was.Step > 0 {
			n.stepped(c, was.Step)
		}
		n.step = c.time
		n.tell(engine.StepStarted{Header: h()})
	}
	n.tell(engine.Committed{Header: h(), Changes: c.changes})
	n.messages(c, h)
	n.toolCalls(c, h)
	switch {
	case is.Status == phase.Waiting && was.Status != phase.Waiting:
		n.suspended(c)
	case is.Status == phase.Done && was.Status != phase.Done:
		if is.Step > 0 {
			n.stepped(c, is.Step)
		}
		n.tell(engine.RunFinished{
			Header: h(), Status: is.Status, Reason: is.Reason, Detail: is.Detail, Steps: is.Step,
			Usage: engine.Usage.Get(c.after), Duration: c.time.Sub(n.began),
		})
	}
	return nil
}

func (n *narrator) suspended(c commit) {
	var tickets []gate.Ticket
	for _, s := range engine.ToolCalls.All(c.after) {
		if s.Status == engine.CallSuspended {
			tickets = append(tickets, s.Ticket)
		}
	}
	n.tell(engine.RunSuspended{Header: n.header(c, phase.RunLifecycle.Get(c.after).Step), Tickets: tickets})
}

// release tells the commits that were held, as far as they are known.
func (n *narrator) release() {
	for _, c := range n.held {
		if c.before != nil {
			n.tell(engine.Committed{Header: n.header(c, 0), Changes: c.changes})
		}
	}
	n.held = nil
}

func (n *narrator) header(c commit, step int) engine.Header {
	n.seq++
	return engine.Header{
		Seq: n.seq, Time: c.time, Run: n.run, Thread: n.thread, Agent: kept.Key.Get(c.after).Agent, Step: step, Revision: c.after.Revision(),
	}
}

// start tells that a run began, on the state before the commit base.
func (n *narrator) start(c, base commit, is phase.Lifecycle) error {
	found, err := base.found()
	if err != nil {
		return err
	}
	n.run, n.seq, n.began, n.step = is.Run, 0, base.time, base.time
	e := engine.RunStarted{Header: n.header(c, 0), Base: engine.Base{Found: &found}}
	e.Time, e.Revision = base.time, found.Revision
	if rec := kept.Key.Get(c.after); rec.Run == is.Run {
		e.Input = rec.Prompt
	}
	n.tell(e)
	return nil
}

func (n *narrator) resume(c commit) error {
	found, err := c.found()
	if err != nil {
		return err
	}
	e := engine.RunResumed{Header: n.header(c, phase.RunLifecycle.Get(c.after).Step), Base: engine.Base{Found: &found}}
	e.Revision = found.Revision
	n.tell(e)
	return nil
}

// found is the state before the commit, or that of the oldest one.
func (c commit) found() (state.Dump, error) {
	if c.before == nil {
		return c.after.Export()
	}
	return c.before.Export()
}

func (n *narrator) stepped(c commit, step int) {
	n.tell(engine.StepFinished{Header: n.header(c, step), Duration: c.time.Sub(n.step)})
}

// messages tells what the model answered.
func (n *narrator) messages(c commit, h func() engine.Header) {
	before, after := engine.Transcript.Get(c.before).Len(), engine.Transcript.Get(c.after)
	for i, m := range after.All() {
		if i < before || m.Role != inference.RoleAssistant {
			continue
		}
		was, is := engine.Usage.Get(c.before), engine.Usage.Get(c.after)
		n.tell(engine.InferenceFinished{Header: h(), Text: m.Text, ToolCalls: m.ToolCalls, Usage: inference.Usage{
			InputTokens: is.InputTokens - was.InputTokens, OutputTokens: is.OutputTokens - was.OutputTokens,
			CachedTokens: is.CachedTokens - was.CachedTokens,
		}})
	}
}

// toolCalls tells what became of the calls of a step.
func (n *narrator) toolCalls(c commit, h func() engine.Header) {
	for id, is := range engine.ToolCalls.All(c.after) {
		was, _ := engine.ToolCalls.Get(c.before, id)
		if was.Call.ID != "" && was.Call.Args != is.Call.Args {
			n.tell(engine.CallEdited{Header: h(), Call: id, Before: was.Call.Args, After: is.Call.Args})
		}
		if is.Tickets > was.Tickets {
			n.tell(engine.TicketOpened{Header: h(), Ticket: is.Ticket})
		}
		for _, a := range is.Answers[min(len(was.Answers), len(is.Answers)):] {
			n.tell(engine.TicketAnswered{Header: h(), Ticket: a.Ticket.ID, Call: id, Approved: a.Answer.Approved, Reason: a.Answer.Reason,
				By: "somebody; the store does not tell who"})
		}
		if is.Ended && !was.Ended {
			e := engine.ToolFinished{Call: is.Call, Result: is.Result}
			if ran(is.Result) {
				// Its body ran since the commit before, or for a part of that time.
				begun := h()
				begun.Time = n.before
				n.tell(engine.ToolStarted{Header: begun, Call: is.Call})
				e.Duration = c.time.Sub(n.before)
			}
			e.Header = h()
			n.tell(e)
		}
	}
}

// ran reports whether a result is one that comes of a tool's work. An error may also be
// of a call that could not be made, which the store does not tell apart.
func ran(r inference.ToolResult) bool {
	return slices.Contains([]inference.Outcome{inference.OutcomeOK, inference.OutcomeError, inference.OutcomeTimedOut}, r.Outcome)
}
