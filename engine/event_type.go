package engine

import "slices"

// Type returns "run_started".
func (RunStarted) Type() string { return "run_started" }

// Type returns "run_finished".
func (RunFinished) Type() string { return "run_finished" }

// Type returns "run_suspended".
func (RunSuspended) Type() string { return "run_suspended" }

// Type returns "run_resumed".
func (RunResumed) Type() string { return "run_resumed" }

// Type returns "step_started".
func (StepStarted) Type() string { return "step_started" }

// Type returns "step_finished".
func (StepFinished) Type() string { return "step_finished" }

// Type returns "phase_started".
func (PhaseStarted) Type() string { return "phase_started" }

// Type returns "phase_finished".
func (PhaseFinished) Type() string { return "phase_finished" }

// Type returns "hook_finished".
func (HookFinished) Type() string { return "hook_finished" }

// Type returns "conflict".
func (Conflict) Type() string { return "conflict" }

// Type returns "committed".
func (Committed) Type() string { return "committed" }

// Type returns "round_finished".
func (RoundFinished) Type() string { return "round_finished" }

// Type returns "action_finished".
func (ActionFinished) Type() string { return "action_finished" }

// Type returns "effect_finished".
func (EffectFinished) Type() string { return "effect_finished" }

// Type returns "gate_voted".
func (GateVoted) Type() string { return "gate_voted" }

// Type returns "gate_resolved".
func (GateResolved) Type() string { return "gate_resolved" }

// Type returns "gate_clashed".
func (GateClashed) Type() string { return "gate_clashed" }

// Type returns "call_edited".
func (CallEdited) Type() string { return "call_edited" }

// Type returns "ticket_opened".
func (TicketOpened) Type() string { return "ticket_opened" }

// Type returns "ticket_answered".
func (TicketAnswered) Type() string { return "ticket_answered" }

// Type returns "tool_started".
func (ToolStarted) Type() string { return "tool_started" }

// Type returns "tool_finished".
func (ToolFinished) Type() string { return "tool_finished" }

// Type returns "inference_started".
func (InferenceStarted) Type() string { return "inference_started" }

// Type returns "inference_chunk".
func (InferenceChunk) Type() string { return "inference_chunk" }

// Type returns "inference_finished".
func (InferenceFinished) Type() string { return "inference_finished" }

// Type returns "override_applied".
func (OverrideApplied) Type() string { return "override_applied" }

// Type returns "request_transformed".
func (RequestTransformed) Type() string { return "request_transformed" }

// Type returns "continued".
func (Continued) Type() string { return "continued" }

// Type returns "handed_off".
func (HandedOff) Type() string { return "handed_off" }

// Type returns "warning".
func (Warning) Type() string { return "warning" }

// cloneEvent returns an event that shares no slice with e.
func cloneEvent(e Event) Event {
	switch e := e.(type) {
	case RunSuspended:
		e.Tickets = slices.Clone(e.Tickets)
		return e
	case Committed:
		e.Writes = slices.Clone(e.Writes)
		return e
	case Conflict:
		e.Lost = slices.Clone(e.Lost)
		return e
	case HookFinished:
		e.Retries = slices.Clone(e.Retries)
		return e
	case ActionFinished:
		e.Retries = slices.Clone(e.Retries)
		return e
	case InferenceFinished:
		e.ToolCalls = slices.Clone(e.ToolCalls)
		return e
	case OverrideApplied:
		e.Fields = slices.Clone(e.Fields)
		return e
	}
	return e
}
