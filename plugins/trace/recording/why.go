package recording

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// Decision is the whole decision about a tool call: what the gates, people, hooks and the
// tool itself made of it. Its text tells it in sentences.
type Decision struct {
	Call Call
}

// String tells the decision in sentences, one a line, below a line that says which call
// it is about.
func (d Decision) String() string {
	c := &d.Call
	status := c.Status
	if c.Outcome != "" {
		status = c.Outcome
	}
	head := fmt.Sprintf("call %s%s in step %d of run %s: %s", clip(c.Call, shortText), callTool(c.Tool), c.Step, clip(c.Run, shortText), clip(status, shortText))
	return strings.Join(append([]string{head}, c.Why...), "\n  ")
}

// Why returns the decisions about the calls of an id, as the model gave it or as in
// Call.ID, or else of a tool; several if there were several, in order. The error matches
// ErrUnknown.
func (r *Recording) Why(id string) ([]Decision, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := map[string]bool{}
	for _, is := range []func(c *call) bool{
		func(c *call) bool { return c.ID == id || c.Call.Call == id },
		func(c *call) bool { return c.Tool == id },
	} {
		var out []Decision
		for _, c := range r.calls {
			known[c.Call.Call], known[c.Tool] = true, true
			if is(c) {
				out = append(out, Decision{r.callView(c)})
			}
		}
		if len(out) > 0 {
			return out, nil
		}
	}
	delete(known, "")
	return nil, unknown("call", id, sortedKeys(known, nil))
}

// callView is the call as the view has it. What it has of lists grows at its end only.
func (r *Recording) callView(c *call) Call {
	v := c.Call
	v.Tickets = append([]TicketItem(nil), c.Tickets...)
	v.Why = c.why()
	return v
}

// why tells what happened about the call, in order.
func (c *call) why() (out []string) {
	say := func(format string, args ...any) { out = append(out, sentence(fmt.Sprintf(format, args...))) }
	tool := clip(c.Tool, shortText)
	switch {
	case c.asked && c.first == "":
		say("the model asked for %s without arguments", tool)
	case c.asked && strings.HasPrefix(string(c.first), `"`):
		say("the model asked for %s with arguments that are no JSON object: %s", tool, jsonText(c.first))
	case c.asked:
		say("the model asked for %s with %s", tool, jsonText(c.first))
	default:
		say("when the model asked for it is not in the recording")
	}
	for _, d := range c.deeds {
		out = append(out, c.told(d)...)
	}
	for _, l := range c.refused {
		say("its state changes were refused: %s", l.inWords())
	}
	switch {
	case c.Status == string(phase.Waiting):
		say("the call waits for an answer")
	case c.Status != string(phase.Done) && len(c.deeds) == 0:
		say("nothing was decided about it yet")
	case c.Status != string(phase.Done):
		say("its end is not in the recording")
	default:
		out = append(out, c.ending()...)
	}
	return out
}

// ending says how the call ended and what the model was told.
func (c *call) ending() (out []string) {
	gates := len(c.Resolutions) > 0
	switch o := inference.Outcome(c.Outcome); {
	case c.ran > 0:
	case !gates && o == inference.OutcomeError:
		out = append(out, "It was refused before any gate was asked, and the tool did not run.")
	default:
		out = append(out, "The tool did not run.")
	}
	flag := ""
	if c.Error && c.Outcome == string(inference.OutcomeOK) {
		flag = ", marked as an error"
	}
	return append(out, fmt.Sprintf("The result that the model was given is %s%s: %s.", orElse(c.Outcome, "without an outcome"), flag, quoted(c.Result, longText)))
}

func orElse(a, b string) string {
	if a == "" {
		return b
	}
	return clip(a, shortText)
}

// told is what one deed comes to in sentences.
func (c *call) told(d deed) (out []string) {
	say := func(format string, args ...any) { out = append(out, sentence(fmt.Sprintf(format, args...))) }
	switch d.kind {
	case passed:
		return c.toldPass(d)
	case edited:
		e := c.Edits[d.n]
		by := "plugin " + clip(e.Plugin, shortText)
		if rest, is := strings.CutPrefix(e.Plugin, "answer to "); is {
			by = "the answer to ticket " + clip(rest, shortText)
		}
		say("%s changed the arguments from %s to %s", by, jsonText(e.Before), jsonText(e.After))
	case opened:
		t := c.Tickets[d.n]
		if t.Kind == "" {
			say("ticket %s was opened before the recording began", clip(t.ID, shortText))
			break
		}
		by := "plugin " + clip(t.Plugin, shortText)
		if strings.HasPrefix(t.Plugin, "tool ") {
			by = "the tool itself"
		}
		say("%s asked (%s): %s", by, clip(t.Kind, shortText), quoted(t.Message, longText))
	case answered:
		t := c.Tickets[d.n]
		how := "no"
		if t.Approved {
			how = "yes"
		}
		reason := then(": ", t.Reason)
		if t.By == "expiry" || t.By == "default" {
			reason = "" // says the same
		}
		say("the answer was %s, %s%s", how, answerer(t.By), reason)
	case hookFailed:
		how := "failed"
		switch d.span.Status {
		case statusFailed:
		case "skipped":
			how = "failed and was skipped"
		default:
			how = "was " + d.span.Status
		}
		say("in %s, %s %s: %s", clip(d.span.Phase, shortText), hookName(d.span.Plugin, d.span.Name), how, clip(d.span.Text, longText))
	case wrote:
		return c.toldCommit(d.commit)
	case endsRun:
		say("the block ends the run")
	case bodyRan:
		what := "the tool ran"
		if d.n > 1 {
			what = "the tool was called again"
		}
		if strings.HasPrefix(c.Tool, engine.DelegatePrefix) {
			what += fmt.Sprintf(", as run %s", clip(fmt.Sprintf("%s/%d/%s", c.Run, c.Step, c.Call.Call), longText))
		}
		if d.n == c.ran && c.Status == string(phase.Done) {
			what += ", for " + length(c.took)
		}
		say("%s", what)
	}
	return out
}

// answerer says who answered a ticket.
func answerer(by string) string {
	switch by {
	case "resolver":
		return "given by the resolver"
	case "default":
		return "by default, as nobody was there to ask"
	case "decision":
		return "by a decision that came with Resume"
	case "expiry":
		return "as nobody answered in time"
	}
	return "by " + clip(by, shortText)
}

// toldPass says what each gate said, and what came of it.
func (c *call) toldPass(d deed) (out []string) {
	pass := c.Resolutions[d.pass-1]
	var said, silent []string
	for _, v := range c.Votes[d.n:d.to] {
		gateName := "gate " + clip(v.Gate, shortText)
		if !strings.HasPrefix(v.Gate, v.Plugin+"/") {
			gateName += " of plugin " + clip(v.Plugin, shortText)
		}
		switch {
		case v.Error != "":
			failed := gateName + " failed"
			if pass.Decision != gate.KindBlock.String() {
				failed += " and has no say"
			}
			said = append(said, failed+then(": ", v.Error))
		case v.Edits && v.Decision == gate.KindAbstain.String():
			said = append(said, gateName+" wants other arguments"+then(": ", v.Reason))
		case v.Decision == gate.KindAbstain.String():
			silent = append(silent, gateName)
		default:
			edits := ""
			if v.Edits {
				edits = ", with other arguments"
			}
			said = append(said, gateName+" says "+v.Decision+edits+then(": ", v.Reason))
		}
	}
	if len(silent) > 0 {
		all := ""
		switch len(silent) {
		case 1:
		case 2:
			all = " both"
		default:
			all = " all"
		}
		said = append(said, listed(silent)+all+" abstained")
	}
	lead := "the gates were asked"
	if pass.Pass > 1 {
		lead = fmt.Sprintf("the gates were asked again (pass %d)", pass.Pass)
	}
	switch {
	case len(said) > 0:
		out = append(out, sentence(lead+": "+strings.Join(said, "; ")))
	case pass.Cause == string(gate.ByDefault):
		return append(out, "No gate looked at it, so the run's default applies.")
	}
	for i := d.clash; i < d.clashTo; i++ {
		out = append(out, sentence(c.Clashes[i]))
	}
	return append(out, sentence(outcomeOf(pass)))
}

// outcomeOf says what the gates came to.
func outcomeOf(p ResolutionItem) string {
	by, reason := "plugin "+clip(p.Plugin, shortText), then(": ", p.Reason)
	switch {
	case p.Cause == string(gate.GateFailed):
		return "the gate of " + by + " failed, so the call was blocked for safety" + reason
	case p.Cause == string(gate.Unsettled):
		return "the gates did not come to rest, so the call was blocked" + reason
	case p.Plugin == "":
		return "nobody had an opinion, so the run's default applies"
	}
	switch p.Decision {
	case gate.KindBlock.String():
		return by + " blocked the call" + reason
	case gate.KindSuspend.String():
		return by + " decided: the call waits for an answer" + reason
	case gate.KindSetResult.String():
		return by + " decided: its own result stands for the tool's" + reason
	case gate.KindApprove.String():
		if ticket, is := strings.CutPrefix(p.Reason, "answered: "); is {
			return by + " approved the call, since its question was answered (ticket " + clip(ticket, shortText) + ")"
		}
		return by + " approved the call" + reason
	case gate.KindAsk.String():
		return by + " decided: nobody approved, so somebody must be asked" + reason
	}
	return by + " decided: " + clip(p.Decision, shortText) + reason
}

// toldCommit says what hooks, or the call's own command, wrote.
func (c *call) toldCommit(k *commit) (out []string) {
	own := callOwner + c.Call.Call
	var order []string
	did, first := map[string][]string{}, map[string]*Write{}
	wrote := map[string]int{} // place among the deeds of the one that lists keys
	for i := range k.Writes {
		w := &k.Writes[i]
		mine := w.Plugin == own
		if w.Plugin == engineName || strings.HasPrefix(w.Plugin, callOwner) && !mine {
			continue
		}
		what, plain := deedOf(w, c.Call.Call, mine)
		if what == "" {
			continue
		}
		by := w.Plugin + "\x00" + w.Hook
		if first[by] == nil {
			first[by] = w
			order = append(order, by)
		}
		at, again := wrote[by]
		switch list := did[by]; {
		case plain && again:
			did[by][at] += ", " + what
		case plain:
			wrote[by] = len(list)
			did[by] = append(list, "wrote "+what)
		case !slices.Contains(list, what):
			did[by] = append(list, what)
		}
	}
	for _, by := range order {
		w := k.writerOf(first[by])
		text := "its command"
		if w.Call == "" {
			text = strings.TrimSuffix(w.who(), ",")
			if where := w.where(); where != "" {
				text = where + ", " + text
			}
		}
		text += " " + some(did[by]) + fmt.Sprintf(" (revision %d", k.Rev)
		if k.Retry {
			text += ", a serial retry after a conflict"
		}
		out = append(out, sentence(text+")"))
	}
	return out
}

// deedOf says what a write did, "" for what goes without saying. If it is plain that is
// the key that it wrote.
func deedOf(w *Write, call string, mine bool) (what string, plain bool) {
	field, result := strings.CutPrefix(w.Key, "fixpoint.result.")
	switch {
	case result && w.Entry == call:
		return "changed the result's " + field + argument(w.Op, w.Value), false
	case w.Key == queueKey && w.Op == "put":
		return "scheduled an action", false
	case w.Key == "fixpoint.effects":
		return "emitted effects", false
	case w.Key == lifecycleKey:
		return "wrote the run's lifecycle", false
	case w.Key == callsKey && !mine:
		return "suspended the call", false
	case w.Key == queueKey, w.Key == "fixpoint.last_id", w.Key == callsKey:
		return "", false
	}
	return placeName(w.Key, w.Entry), true
}
