package terminal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
)

// show writes what there is to say about an event.
func (v *View) show(e engine.Event) {
	s := v.p.s
	switch e := e.(type) {
	case engine.RunStarted:
		v.p.line(s.bold, "run", 0, s.bold.Render(e.Run), s.dim.Render("of "+clean(e.Agent)+":"), clip(clean(e.Input), 100))
	case engine.RunResumed:
		v.p.line(s.bold, "run", 0, s.bold.Render(e.Run), s.dim.Render("goes on"))
	case engine.StepStarted:
		v.call = ""
		v.p.gap()
		v.p.line(s.step, "step", 0, s.bold.Render(fmt.Sprint(e.Step)))
	case engine.StepFinished:
		v.call = ""
		if v.verbose() {
			v.p.line(s.dim, "step", 0, s.dim.Render(fmt.Sprintf("%d ended", e.Step)), v.took(e.Duration))
		}
	case engine.PhaseStarted:
		v.beginCall(e.Call)
		v.phase = &e
		if v.verbose() {
			v.announce()
		}
	case engine.PhaseFinished:
		v.phaseFinished(e)
	case engine.HookFinished:
		v.hook(e)
	case engine.Conflict:
		key := e.Key
		if e.Entry != "" {
			key += "[" + e.Entry + "]"
		}
		fate := "has to run again"
		if e.Fate != "retried" {
			fate = "is " + e.Fate
		}
		v.say(s.note, "conflict", s.bold.Render(clean(key))+":", fmt.Sprintf("%s was first, %s %s", clean(e.Winner), clean(e.Loser), fate))
	case engine.Committed:
		v.committed(e)
	case engine.RoundFinished:
		v.round(e)
	case engine.ActionFinished:
		v.action(e)
	case engine.EffectFinished:
		v.effect(e)
	case engine.Warning:
		v.say(s.note, "warning", clean(e.Plugin)+":", clean(e.Message))
	case engine.Continued:
		v.say(s.note, "continue", clean(e.Reason))
	case engine.HandedOff:
		v.say(s.note, "handoff", clean(e.From), "→", clean(e.To))
	case engine.RunFinished:
		v.call, v.phase = "", nil
	case engine.RunSuspended:
		v.call, v.phase = "", nil
		v.say(s.note, "waiting", count(len(e.Tickets), "open question"))
	default:
		v.showCall(e)
	}
}

// showCall writes what there is to say about a model or tool call.
func (v *View) showCall(e engine.Event) {
	s := v.p.s
	switch e := e.(type) {
	case engine.InferenceStarted:
		if v.verbose() {
			v.say(s.model, "model", s.dim.Render("asked"), clean(e.Model), s.dim.Render("("+count(e.Messages, "message")+", "+count(e.Tools, "tool")+")"))
		}
		v.stream(e)
	case engine.InferenceChunk:
		v.stream(e)
	case engine.InferenceFinished:
		v.inferred(e)
	case engine.OverrideApplied:
		for _, f := range e.Fields {
			v.say(s.flow, "override", fmt.Sprintf("%s = %s, by %s", clean(f.Field), clean(string(f.Value)), clean(f.Plugin)))
		}
	case engine.RequestTransformed:
		v.say(s.flow, "request", "changed by", clean(e.Plugin))
	case engine.GateVoted:
		v.voted(e)
	case engine.GateResolved:
		v.resolved(e)
	case engine.GateClashed:
		v.say(s.note, "clash", fmt.Sprintf("%s and %s both say %s; the first counts", clean(e.Clash.Winner), clean(e.Clash.Loser), e.Clash.Kind))
	case engine.CallEdited:
		v.say(s.note, "edited", clip(clean(string(e.After)), 100), s.dim.Render("by "+clean(e.Plugin)))
	case engine.TicketOpened:
		v.say(s.note, "question", clean(e.Ticket.Message), s.dim.Render("by "+clean(e.Ticket.Plugin)))
	case engine.TicketAnswered:
		v.answered = true
		answer, look := "no", s.bad
		if e.Approved {
			answer, look = "yes", s.good
		}
		v.say(look, "answer", look.Render(answer)+",", s.dim.Render(clean(cmp.Or(e.Reason, "by the "+e.By))))
	case engine.ToolStarted:
		if v.verbose() {
			v.say(s.tool, "tool", "starts")
		}
	case engine.ToolFinished:
		v.tool(e)
	}
}

func (v *View) phaseFinished(e engine.PhaseFinished) {
	s := v.p.s
	if e.Error != "" {
		v.say(s.bad, "failed", s.bad.Render(e.Head().Phase.String())+":", clean(e.Error))
	} else if v.verbose() {
		v.say(s.dim, "end", s.dim.Render(e.Head().Phase.String()), v.took(e.Duration))
	}
	v.phase = nil
}

func (v *View) hook(e engine.HookFinished) {
	s := v.p.s
	name := clean(e.Plugin)
	switch {
	case e.Status == engine.HookRetried:
		v.say(s.note, "retry", s.bold.Render(name), "ran again on the new state and committed", v.took(e.Duration))
	case e.Status != engine.HookCommitted:
		v.say(s.bad, "hook", s.bold.Render(name), s.bad.Render(words(string(e.Status)))+":", clean(e.Error))
	case e.Slow:
		v.say(s.note, "hook", s.bold.Render(name), s.note.Render("slow"), v.took(e.Duration))
	case v.verbose():
		v.say(s.dim, "hook", name, v.took(e.Duration))
	}
}

func (v *View) committed(e engine.Committed) {
	if e.Round > 0 {
		for _, w := range e.Writes {
			if !internalKey(w.Key) {
				v.writes = append(v.writes, written(w))
			}
		}
	}
	if !v.verbose() {
		return
	}
	var parts []string
	for _, w := range e.Writes {
		parts = append(parts, fmt.Sprintf("%s: %s %s", clean(w.Plugin), w.Op, written(w)))
	}
	v.say(v.p.s.dim, "commit", v.p.s.dim.Render(fmt.Sprintf("#%d", e.Revision)), clip(strings.Join(parts, "; "), 160))
}

func written(w engine.Write) string {
	if w.Entry == "" {
		return clean(w.Key)
	}
	return clean(w.Key) + "[" + clip(clean(w.Entry), 24) + "]"
}

// words writes a name such as timed_out as people do.
func words(name string) string { return strings.ReplaceAll(name, "_", " ") }

// internalKey tells the engine's own bookkeeping from what plugins keep.
func internalKey(name string) bool { return strings.HasPrefix(name, "fixpoint.") }

func (v *View) action(e engine.ActionFinished) {
	if e.Status == engine.ActionDone {
		v.actions = append(v.actions, e)
		return
	}
	v.say(v.p.s.bad, "action", v.p.s.bold.Render(clean(e.Action)), v.p.s.bad.Render(words(string(e.Status)))+":", clean(e.Error))
}

// round writes what ran in a round, by kind and by who scheduled it.
func (v *View) round(e engine.RoundFinished) {
	s := v.p.s
	var kinds []string
	times := map[string]int{}
	for _, a := range v.actions {
		kind := s.bold.Render(clean(a.Action)) + s.dim.Render(" by ") + clean(a.Plugin)
		if times[kind]++; times[kind] == 1 {
			kinds = append(kinds, kind)
		}
	}
	for i, kind := range kinds {
		if times[kind] > 1 {
			kinds[i] += s.dim.Render(fmt.Sprintf(" ×%d", times[kind]))
		}
	}
	text := strings.Join(kinds, ", ")
	if writes := slices.Compact(slices.Clone(v.writes)); len(writes) > 0 {
		text += s.dim.Render(" → " + clip(strings.Join(writes, ", "), 80))
	}
	v.say(s.flow, "round", s.flow.Render(fmt.Sprint(e.Round)), text)
	v.actions, v.writes = nil, nil
}

func (v *View) effect(e engine.EffectFinished) {
	s := v.p.s
	if e.Error != "" {
		v.say(s.bad, "effect", s.bold.Render(clean(e.Effect)), s.bad.Render("failed")+":", clean(e.Error))
		return
	}
	v.say(s.flow, "effect", s.bold.Render(clean(e.Effect)), s.dim.Render("delivered to"), clean(e.Handler), v.took(e.Duration))
}

func (v *View) inferred(e engine.InferenceFinished) {
	s := v.p.s
	shown := v.finish(e)
	var names []string
	for _, c := range e.ToolCalls {
		names = append(names, clean(c.Name))
	}
	if e.Error != "" {
		v.say(s.bad, "model", s.bad.Render("failed")+":", clean(e.Error))
		return
	}
	if e.Text != "" && shown.length == 0 {
		v.say(s.model, "model", s.model.Render("“"+clip(clean(e.Text), 200)+"”"))
	}
	calls := "asks for nothing more"
	if len(names) > 0 {
		calls = "asks for " + strings.Join(names, ", ")
	}
	if shown.calls > 0 && shown.calls == len(names) {
		calls = ""
	}
	tokens := thousands(e.Usage.Total()) + " tokens"
	if v.verbose() {
		tokens = "tokens: " + usage(e.Usage)
	}
	v.say(s.model, "model", calls, s.dim.Render("("+tokens+")"), v.took(e.Duration))
}

func (v *View) voted(e engine.GateVoted) {
	s := v.p.s
	look, verdict, detail := v.decision(e.Decision), words(e.Decision.String()), clean(e.Reason)
	if e.Error != "" {
		look, verdict, detail = s.bad, "failed", clean(e.Error)
	}
	repeated := v.answered && (e.Decision == gate.KindAsk || e.Decision == gate.KindSuspend)
	if (repeated || e.Decision == gate.KindAbstain) && e.Error == "" && !e.Edits && !v.verbose() {
		return
	}
	edits := ""
	if e.Edits {
		edits = s.note.Render("edits the call")
	}
	if e.Edits && e.Decision == gate.KindAbstain {
		verdict = "" // it has no other opinion
	}
	who := clean(e.Plugin)
	if detail != "" {
		who += ":"
	}
	v.say(look, "gate", look.Render(verdict), edits, s.dim.Render("by"), who, s.dim.Render(detail), v.took(e.Duration))
}

// resolved writes the outcome where it is more than the one vote says.
func (v *View) resolved(e engine.GateResolved) {
	passed := v.answered && e.Pass > 1
	if v.answered = false; e.Cause == gate.Decided && !passed && !v.verbose() {
		return
	}
	look := v.decision(e.Decision)
	who := "since no gate has an opinion"
	if e.Plugin != "" {
		who = "by " + clean(e.Plugin)
	}
	if e.Cause == gate.Unsettled || e.Cause == gate.GateFailed {
		who += ", " + words(string(e.Cause))
	}
	v.say(look, "gates", look.Render(words(e.Decision.String())), v.p.s.dim.Render(fmt.Sprintf("%s, pass %d", who, e.Pass)))
}

func (v *View) decision(k gate.Kind) lipgloss.Style {
	switch k {
	case gate.KindApprove:
		return v.p.s.good
	case gate.KindBlock:
		return v.p.s.bad
	case gate.KindAbstain:
		return v.p.s.dim
	default:
		return v.p.s.note
	}
}

func (v *View) tool(e engine.ToolFinished) {
	v.beginCall(e.Call.ID)
	s := v.p.s
	look := s.good
	if e.Result.IsError {
		look = s.bad
	}
	outcome := string(e.Result.Outcome)
	first, _, _ := strings.Cut(strings.TrimSpace(e.Result.Content), "\n")
	first = strings.TrimPrefix(clean(first), outcome+": ")
	first = clip(first, 120)
	if n := strings.Count(strings.TrimSpace(e.Result.Content), "\n"); n > 0 {
		first += s.dim.Render(fmt.Sprintf(" (and %s)", count(n, "more line")))
	}
	label := "result"
	if e.Result.Outcome != inference.OutcomeOK && e.Result.Outcome != inference.OutcomeSubstituted {
		label = "failed"
	}
	v.say(look, label, look.Render(words(outcome))+":", first, v.took(e.Duration))
}
