package trace

import (
	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
)

// event writes one of those that a step is full of.
func (e *encoder) event(in engine.Event) {
	switch in := in.(type) {
	case engine.StepStarted:
		e.head(`{"type":"step_started","seq":`, &in.Header)
	case engine.StepFinished:
		e.head(`{"type":"step_finished","seq":`, &in.Header)
		e.took(in.Duration)
	case engine.PhaseStarted:
		e.head(`{"type":"phase_started","seq":`, &in.Header)
		e.int(`,"hooks":`, int64(in.Hooks))
		e.maybe(`,"call":`, in.Call)
	case engine.PhaseFinished:
		e.head(`{"type":"phase_finished","seq":`, &in.Header)
		e.maybe(`,"call":`, in.Call)
		e.int(`,"rounds":`, int64(in.Rounds))
		e.int(`,"retries":`, int64(in.Retries))
		e.maybe(`,"error":`, in.Error)
		e.took(in.Duration)
	case engine.HookFinished:
		e.head(`{"type":"hook_finished","seq":`, &in.Header)
		e.text(`,"plugin":`, in.Plugin)
		e.text(`,"hook":`, in.Hook)
		e.int(`,"tier":`, int64(in.Tier))
		e.text(`,"status":`, string(in.Status))
		e.int(`,"calls":`, int64(in.Calls))
		e.maybe(`,"error":`, in.Error)
		e.flag(`,"slow":`, in.Slow)
		e.began(in.Began)
		e.took(in.Duration)
		e.retries(in.Retries)
	case engine.Committed:
		e.committed(&in)
	case engine.RoundFinished:
		e.head(`{"type":"round_finished","seq":`, &in.Header)
		e.int(`,"round":`, int64(in.Round))
		e.int(`,"actions":`, int64(in.Actions))
	case engine.ActionFinished:
		e.head(`{"type":"action_finished","seq":`, &in.Header)
		e.uint(`,"id":`, in.ID)
		e.text(`,"action":`, in.Action)
		e.text(`,"plugin":`, in.Plugin)
		e.some(`,"round":`, int64(in.Round))
		e.text(`,"status":`, string(in.Status))
		e.maybe(`,"by":`, in.By)
		e.maybe(`,"reason":`, in.Reason)
		e.maybe(`,"error":`, in.Error)
		e.began(in.Began)
		e.took(in.Duration)
		e.retries(in.Retries)
	case engine.EffectFinished:
		e.head(`{"type":"effect_finished","seq":`, &in.Header)
		if in.ID != (effects.ID{}) {
			e.text(`,"id":`, in.ID.String())
		}
		e.text(`,"effect":`, in.Effect)
		e.text(`,"plugin":`, in.Plugin)
		e.text(`,"handler":`, in.Handler)
		e.maybe(`,"error":`, in.Error)
		e.began(in.Began)
		e.took(in.Duration)
	case engine.GateVoted:
		e.head(`{"type":"gate_voted","seq":`, &in.Header)
		e.text(`,"call":`, in.Call)
		e.text(`,"tool":`, in.Tool)
		e.text(`,"plugin":`, in.Plugin)
		e.text(`,"gate":`, in.Gate)
		e.fixed(`,"decision":"`, in.Decision.String())
		e.maybe(`,"reason":`, in.Reason)
		e.flag(`,"edits":`, in.Edits)
		e.maybe(`,"error":`, in.Error)
		e.began(in.Began)
		e.took(in.Duration)
	case engine.GateResolved:
		e.head(`{"type":"gate_resolved","seq":`, &in.Header)
		e.text(`,"call":`, in.Call)
		e.text(`,"tool":`, in.Tool)
		e.int(`,"pass":`, int64(in.Pass))
		e.fixed(`,"decision":"`, in.Decision.String())
		e.maybe(`,"plugin":`, in.Plugin)
		e.text(`,"cause":`, string(in.Cause))
		e.maybe(`,"reason":`, in.Reason)
	case engine.ToolStarted:
		e.head(`{"type":"tool_started","seq":`, &in.Header)
		e.put(`,"call":`)
		e.call(&in.Call)
	case engine.ToolFinished:
		e.head(`{"type":"tool_finished","seq":`, &in.Header)
		e.put(`,"call":`)
		e.call(&in.Call)
		e.put(`,"result":`)
		e.result(&in.Result)
		e.took(in.Duration)
	case engine.InferenceStarted:
		e.head(`{"type":"inference_started","seq":`, &in.Header)
		e.text(`,"model":`, in.Model)
		e.int(`,"messages":`, int64(in.Messages))
		e.int(`,"tools":`, int64(in.Tools))
	case engine.InferenceChunk:
		e.head(`{"type":"inference_chunk","seq":`, &in.Header)
		if !e.chunks {
			in.Text = ""
		}
		e.text(`,"text":`, in.Text)
	case engine.InferenceFinished:
		e.head(`{"type":"inference_finished","seq":`, &in.Header)
		e.maybe(`,"text":`, in.Text)
		e.calls(`,"tool_calls":`, in.ToolCalls)
		e.maybe(`,"stop":`, string(in.Stop))
		e.put(`,"usage":`)
		e.tokens(in.Usage)
		e.maybe(`,"error":`, in.Error)
		e.took(in.Duration)
	default:
		e.odd = true
		return
	}
	e.put("}")
}

// head writes what all events have, behind the beginning of a line.
func (e *encoder) head(begin string, h *engine.Header) {
	e.uint(begin, h.Seq)
	e.time(`,"time":`, h.Time)
	if h.Phase != 0 && !h.Phase.Valid() {
		e.odd = true
		return
	}
	e.names(h)
	e.int(`,"step":`, int64(h.Step))
	if h.Phase != 0 {
		e.fixed(`,"phase":"`, h.Phase.String())
	}
	e.uint(`,"revision":`, h.Revision)
}

// names writes whose event it is, mostly the same as of the last.
func (e *encoder) names(h *engine.Header) {
	if last := &e.who; len(last.names) > 0 && last.run == h.Run && last.parent == h.Parent && last.thread == h.Thread && last.agent == h.Agent {
		e.out = append(e.out, last.names...)
		return
	}
	begin, doubt := len(e.out), e.doubt
	e.doubt = false
	e.text(`,"run":`, h.Run)
	e.maybe(`,"parent":`, h.Parent)
	e.text(`,"thread":`, h.Thread)
	e.text(`,"agent":`, h.Agent)
	if !e.doubt && len(e.out)-begin < mostNames {
		e.who = whose{h.Run, h.Parent, h.Thread, h.Agent, append(e.who.names[:0], e.out[begin:]...)}
	}
	e.doubt = e.doubt || doubt
}

func (e *encoder) retries(all []engine.Retry) {
	for i := range all {
		if i == 0 {
			e.time(`,"retries":[{"began":`, all[i].Began)
		} else {
			e.time(`,{"began":`, all[i].Began)
		}
		e.took(all[i].Duration)
		e.put("}")
	}
	if len(all) > 0 {
		e.put("]")
	}
}

func (e *encoder) committed(in *engine.Committed) {
	if len(in.Changes) > 0 && (in.Before == nil || in.After == nil) {
		e.odd = true // it was read, and may be anybody's
		return
	}
	e.survey(in)
	e.head(`{"type":"committed","seq":`, &in.Header)
	e.maybe(`,"call":`, in.Call)
	e.int(`,"round":`, int64(in.Round))
	e.flag(`,"retry":`, in.Retry)
	e.put(`,"writes":`)
	if in.Writes == nil {
		e.put("null")
	} else {
		e.put("[")
		for i := range in.Writes {
			e.comma(i)
			e.write(in, &in.Writes[i])
		}
		e.put("]")
	}
	if in.Before != nil && in.After != nil {
		e.changes(in)
	}
}

func (e *encoder) comma(i int) {
	if i > 0 {
		e.put(",")
	}
}

func (e *encoder) write(in *engine.Committed, w *engine.Write) {
	e.text(`{"plugin":`, w.Plugin)
	e.maybe(`,"hook":`, w.Hook)
	e.text(`,"key":`, w.Key)
	e.maybe(`,"entry":`, w.Entry)
	e.text(`,"op":`, w.Op)
	switch {
	case e.hidesWrite(w):
		e.put(`,"value":` + hiddenValue)
	case w.Update.Op() != "":
		begin, odd := len(e.out), e.odd
		if !e.usual.is || !e.given(`,"value":`, in, w) || e.odd {
			e.out, e.odd = e.out[:begin], odd
			e.argument(`,"value":`, w.Update)
		}
	default:
		e.maybeJSON(`,"value":`, w.Value)
	}
	e.put("}")
}
