package recording

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// call is a Call and what happened about it, in order.
type call struct {
	Call
	item
	run     *run
	asked   bool           // the model was seen to ask for it
	first   inference.JSON // the arguments that the model gave
	span    *span
	body    *span
	bodyRev uint64 // of the state that its body works on
	took    time.Duration
	ran     int // times that the body ran
	clashes int // that belong to passes which are over
	deeds   []deed
	refused []*conflict
	commits []*commit // that name it
}

// deed is something that happened about a call.
type deed struct {
	kind   deedKind
	n      int // place among the votes, edits or tickets
	to     int // of votes: behind the last one
	span   *span
	commit *commit

	pass, clash, clashTo int // of votes: their pass, and the clashes in it
}

type deedKind uint8

const (
	passed     deedKind = iota // the gates were asked
	edited                     // the arguments were
	opened                     // a ticket was
	answered                   // one was
	hookFailed                 // a hook about the call did
	wrote                      // a commit about the call
	endsRun                    // by the commit that a block made
	bodyRan
)

func (c *call) did(d deed) { c.deeds = append(c.deeds, d) }

// callOf returns what is known of a tool call of the run's step.
func (r *Recording) callOf(x *run, h engine.Header, id, tool string) *call {
	c := x.calls[id]
	if c == nil {
		c = &call{Call: Call{Call: id, Run: x.ID, Step: h.Step, Tool: tool, Status: string(phase.Running)}, run: x, item: item{index: int32(len(r.calls))}}
		c.ID = r.unique("call ", fmt.Sprintf("%s/%d/%s", x.ID, h.Step, id))
		r.calls = append(r.calls, c)
		x.calls[id] = c
		r.changed(ofCalls, &c.item)
	}
	if tool != "" && c.Tool != tool {
		c.Tool = tool
		for _, k := range c.commits {
			r.changed(ofCommits, &k.item)
		}
		if c.span != nil {
			c.span.Name = tool
			r.changed(ofSpans, &c.span.item)
		}
	}
	return c
}

// asked takes in that the model asked for a call.
func (r *Recording) asked(x *run, h engine.Header, t inference.ToolCall) {
	if c := x.calls[t.ID]; c != nil && c.asked {
		delete(x.calls, t.ID) // the model was asked again
	}
	c := r.callOf(x, h, t.ID, t.Name)
	c.asked, c.first = true, sound(t.Args)
	if c.Args == "" {
		c.Args = c.first
	}
	r.changed(ofCalls, &c.item)
}

// callSpan returns the call's span, which begins with the first that happens about it.
func (r *Recording) callSpan(x *run, c *call, at time.Time) *span {
	if c.span == nil {
		c.span = r.open(x, x.here(), KindCall, c.Tool, at)
		c.span.Call, c.span.Step, c.Span = c.ID, c.Step, c.span.ID
		r.changed(ofCalls, &c.item)
	}
	return c.span
}

// aboutCalls takes in the events about tool calls.
func (r *Recording) aboutCalls(x *run, h engine.Header, e engine.Event) bool {
	var c *call
	switch e := e.(type) {
	case engine.GateVoted:
		c = r.callOf(x, h, e.Call, e.Tool)
		r.voted(x, h, c, e)
	case engine.GateResolved:
		c = r.callOf(x, h, e.Call, e.Tool)
		r.resolved(x, h, c, e)
	case engine.GateClashed:
		c = r.callOf(x, h, e.Call, "")
		what := e.Clash.Kind.String()
		if e.Clash.Edit {
			what = "edit"
		}
		text := fmt.Sprintf("the gates of %s and %s differ over %s: that of %s counts, which was registered first",
			e.Clash.Winner, e.Clash.Loser, what, e.Clash.Winner)
		c.Clashes = append(c.Clashes, oneLine(text))
		r.mark(x, r.aboutCall(x, h, c), "clash", text, h.Time)
	case engine.CallEdited:
		c = r.callOf(x, h, e.Call, "")
		c.Edits = append(c.Edits, EditItem{e.Plugin, sound(e.Before), sound(e.After)})
		c.Args = sound(e.After)
		c.did(deed{kind: edited, n: len(c.Edits) - 1})
		r.mark(x, r.aboutCall(x, h, c), "edit", e.Plugin+" changed the arguments", h.Time).Plugin = e.Plugin
	case engine.TicketOpened:
		c = r.callOf(x, h, e.Ticket.Call, "")
		r.opened(x, h, c, e.Ticket)
	case engine.TicketAnswered:
		c = r.callOf(x, h, e.Call, "")
		r.ticketAnswered(x, h, c, e)
	case engine.ToolStarted:
		c = r.callOf(x, h, e.Call.ID, e.Call.Name)
		r.breakOff(c.body, h.Time)
		c.body = r.open(x, r.callSpan(x, c, h.Time), KindBody, "body", h.Time)
		c.body.RevBefore, c.bodyRev, c.Args = h.Revision, h.Revision, sound(e.Call.Args)
		c.ran++
		c.did(deed{kind: bodyRan, n: c.ran})
	case engine.ToolFinished:
		c = r.callOf(x, h, e.Call.ID, e.Call.Name)
		r.toolFinished(x, h, c, e)
	default:
		return false
	}
	r.changed(ofCalls, &c.item)
	return true
}

// aboutCall is the span that something about the call happens in.
func (r *Recording) aboutCall(x *run, h engine.Header, c *call) *span {
	if d := x.in(h.Phase); d != nil && d.call == c.Call.Call {
		return d.span
	}
	return r.callSpan(x, c, h.Time)
}

func (r *Recording) voted(x *run, h engine.Header, c *call, e engine.GateVoted) {
	c.Votes = append(c.Votes, VoteItem{Pass: len(c.Resolutions) + 1, Plugin: e.Plugin, Gate: e.Gate, Decision: e.Decision.String(),
		Reason: e.Reason, Edits: e.Edits, Error: e.Error})
	parent := r.aboutCall(x, h, c)
	status, text, began := e.Decision.String(), e.Reason, e.Began
	switch {
	case e.Error != "":
		status, text = statusFailed, e.Error
		x.Failed++
		r.changed(ofRuns, &x.item)
	case e.Edits && e.Decision == gate.KindAbstain:
		status = "edit"
	}
	if began.IsZero() {
		began = parent.began
	}
	end := began.Add(e.Duration)
	if e.Began.IsZero() {
		end = h.Time
	}
	s := r.past(x, parent, KindGate, e.Gate, began, end, status)
	s.Plugin, s.Text = e.Plugin, clip(text, longText)
	if e.Edits {
		s.Facts = map[string]any{"edits": true}
	}
}

func (r *Recording) resolved(x *run, h engine.Header, c *call, e engine.GateResolved) {
	c.Resolutions = append(c.Resolutions, ResolutionItem{Pass: len(c.Resolutions) + 1, Decision: e.Decision.String(), Plugin: e.Plugin,
		Cause: string(e.Cause), Reason: e.Reason})
	n := len(c.Resolutions)
	from := len(c.Votes)
	for from > 0 && c.Votes[from-1].Pass == n {
		from--
	}
	c.did(deed{kind: passed, n: from, to: len(c.Votes), pass: n, clash: c.clashes, clashTo: len(c.Clashes)})
	c.clashes = len(c.Clashes)
	text := e.Decision.String()
	if e.Plugin != "" {
		text += " by " + e.Plugin
	} else {
		text += " by " + string(e.Cause)
	}
	r.mark(x, r.aboutCall(x, h, c), "gates", text+then(": ", e.Reason), h.Time)
}

// ticket returns the place of a question among the call's, which has it now.
func (r *Recording) ticket(c *call, t gate.Ticket) int {
	for i := range c.Tickets {
		if c.Tickets[i].ID == t.ID {
			if c.Tickets[i].Kind == "" {
				c.Tickets[i].Kind, c.Tickets[i].Message, c.Tickets[i].Plugin = string(t.Kind), t.Message, t.Plugin
				r.changed(ofCalls, &c.item)
			}
			return i
		}
	}
	c.Tickets = append(c.Tickets, TicketItem{ID: t.ID, Kind: string(t.Kind), Message: t.Message, Plugin: t.Plugin})
	c.did(deed{kind: opened, n: len(c.Tickets) - 1})
	if c.Status != string(phase.Done) {
		c.Status = string(phase.Waiting)
	}
	r.changed(ofCalls, &c.item)
	return len(c.Tickets) - 1
}

func (r *Recording) opened(x *run, h engine.Header, c *call, t gate.Ticket) {
	r.ticket(c, t)
	if c.body != nil && strings.HasPrefix(t.Plugin, "tool ") { // the tool asks, and is called again with the answer
		r.close(c.body, h.Time, "ask")
		c.body = nil
	}
	r.breakOff(x.waits[t.ID], h.Time)
	r.waits(r.callSpan(x, c, h.Time), statusWaiting)
	s := r.open(x, r.callSpan(x, c, h.Time), KindWait, cmp.Or(string(t.Kind), "answer"), h.Time)
	s.Plugin, s.Text, s.Status = t.Plugin, clip(t.Message, longText), statusWaiting
	s.Facts = map[string]any{"ticket": t.ID}
	x.waits[t.ID] = s
}

// waits says of a call's span, while it is open, whether it waits.
func (r *Recording) waits(s *span, status string) {
	if s != nil && s.End == nil && s.Status != status {
		s.Status = status
		r.changed(ofSpans, &s.item)
	}
}

func (r *Recording) ticketAnswered(x *run, h engine.Header, c *call, e engine.TicketAnswered) {
	i := r.ticket(c, gate.Ticket{ID: e.Ticket})
	t := &c.Tickets[i]
	t.Answered, t.Approved, t.By, t.Reason = true, e.Approved, e.By, e.Reason
	c.did(deed{kind: answered, n: i})
	if c.Status != string(phase.Done) {
		c.Status = string(phase.Running)
	}
	r.waits(c.span, statusOpen)
	status, text := "approve", "yes by "+e.By
	if !e.Approved {
		status, text = "denied", "no by "+e.By
	}
	text += then(": ", e.Reason)
	s := x.waits[e.Ticket]
	if s == nil { // it was asked before the recording began
		r.mark(x, r.callSpan(x, c, h.Time), "answer", text, h.Time)
		return
	}
	delete(x.waits, e.Ticket)
	r.know(s, "answer", text)
	r.close(s, h.Time, status)
}

func (r *Recording) toolFinished(x *run, h engine.Header, c *call, e engine.ToolFinished) {
	s := r.callSpan(x, c, h.Time)
	c.Args = sound(e.Call.Args)
	c.Status, c.Outcome, c.Result, c.Error = string(phase.Done), string(e.Result.Outcome), e.Result.Content, e.Result.IsError
	c.took = e.Duration
	if b := c.body; b != nil {
		c.body = nil
		end, status := h.Time, statusOK
		if at := b.began.Add(e.Duration); at.Before(end) {
			end = at
		}
		if e.Result.Outcome != inference.OutcomeOK {
			status = string(e.Result.Outcome)
		}
		r.close(b, end, cmp.Or(status, statusUnknown))
	}
	status := statusOK
	switch e.Result.Outcome {
	case inference.OutcomeBlocked, inference.OutcomeDenied:
		x.Blocked++
		status = "block"
	case inference.OutcomeError, inference.OutcomeTimedOut:
		x.Failed++
		status = statusFailed
	case inference.OutcomeSubstituted, inference.OutcomeCancelled:
		status = string(e.Result.Outcome)
	case inference.OutcomeNotRun:
		status = "skipped"
	}
	s.Text = clip(e.Result.Content, longText)
	s.RevAfter = h.Revision
	r.close(s, h.Time, status)
	r.changed(ofRuns, &x.item)
}

// committedAbout takes in a commit that has to do with a call.
func (r *Recording) committedAbout(c *call, k *commit) {
	own := false
	for _, w := range k.Writes {
		switch {
		case w.Plugin == engineName && w.Key == lifecycleKey && k.phase == phase.ToolGate:
			c.did(deed{kind: endsRun, commit: k})
		case w.Plugin == callOwner+c.Call.Call:
			own = own || w.Key != callsKey
		case w.Plugin != engineName && !strings.HasPrefix(w.Plugin, callOwner):
			own = true
		}
	}
	if own {
		c.did(deed{kind: wrote, commit: k})
	}
	r.changed(ofCalls, &c.item)
}

// Keys of the engine that say something about calls.
const (
	lifecycleKey = "fixpoint.lifecycle"
	callsKey     = "fixpoint.tool_calls"
)
