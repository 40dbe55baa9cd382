package serve

import (
	"encoding/json"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/trace"
	"github.com/ddd26017/fixpoint/state"
)

// Status says where a run is, for its owner.
type Status string

// The statuses.
const (
	StatusCreated     Status = "created"     // it was asked for and never started
	StatusRunning     Status = "running"     // under way in this process
	StatusInterrupted Status = "interrupted" // it was under way when its process ended, or is in another one
	StatusWaiting     Status = "waiting"     // for decisions
	StatusDone        Status = "done"
)

// View is what is told of a run.
type View struct {
	Run     string           `json:"run"`
	Thread  string           `json:"thread"`
	Agent   string           `json:"agent"` // that it started with
	Status  Status           `json:"status"`
	Reason  phase.Reason     `json:"reason,omitzero"` // why it ended
	Detail  string           `json:"detail,omitzero"`
	Text    string           `json:"text,omitzero"` // the model's last
	Steps   int              `json:"steps,omitzero"`
	Usage   *inference.Usage `json:"usage,omitempty"`
	Tickets []gate.Ticket    `json:"tickets,omitempty"`   // open ones
	Last    string           `json:"last_event,omitzero"` // id of the newest event, if there are any
}

// view tells of a run as its thread has it, within the rules. Ids are the engine's until
// the caller's answer is written.
func (s *Server) view(k known) View {
	v := View{Run: k.id, Thread: k.thread, Agent: k.record.Agent}
	if st := s.streams.of(k.id); st != nil {
		if n := st.end(); n > 0 {
			v.Last = st.event(n)
		}
	}
	l := phase.RunLifecycle.Get(k.snap)
	if l.Run != k.id {
		v.Status = StatusDone
		switch {
		case k.record.Outcome != "":
			var was View
			if k.record.Outcome.Decode(&was) == nil {
				was.Last = v.Last
				return was
			}
		case k.number == newest(k.snap):
			v.Status = StatusCreated
			if g := s.underWay(k.thread); g != nil && g.id == k.id {
				v.Status = StatusRunning
			}
		}
		return v
	}
	v.Steps = l.Step
	switch l.Status {
	case phase.Waiting:
		v.Status = StatusWaiting
	case phase.Done:
		v.Status = StatusDone
	default:
		v.Status = StatusInterrupted
		if g := s.underWay(k.thread); g != nil && g.id == k.id {
			v.Status = StatusRunning
		}
	}
	if v.Status == StatusDone {
		v.Reason, v.Detail = l.Reason, l.Detail
	}
	v.Text = lastText(k.snap)
	if u := engine.Usage.Get(k.snap); u != (inference.Usage{}) {
		v.Usage = &u
	}
	if v.Status == StatusWaiting {
		v.Tickets = k.th.Tickets()
	}
	return s.within(v)
}

// within applies the rules, which are made for events: so the view goes through some.
func (s *Server) within(v View) View {
	finished, _ := trace.Detailed(engine.RunFinished{Reason: v.Reason, Detail: v.Detail}, s.options.Rules).(engine.RunFinished)
	said, _ := trace.Detailed(engine.InferenceFinished{Text: v.Text}, s.options.Rules).(engine.InferenceFinished)
	v.Reason, v.Detail, v.Text = finished.Reason, finished.Detail, said.Text
	if len(v.Tickets) > 0 {
		open, _ := trace.Detailed(engine.RunSuspended{Tickets: v.Tickets}, s.options.Rules).(engine.RunSuspended)
		v.Tickets = open.Tickets
	}
	return v
}

// outcome is the view of a run as its thread keeps it when the next one begins.
func (s *Server) outcome(k known) inference.JSON {
	v := s.view(k)
	v.Last = ""
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return inference.JSON(text)
}

// lastText is what the model said last since it was last spoken to.
func lastText(snap *state.Snapshot) string {
	history := engine.Transcript.Get(snap)
	for i := history.Len() - 1; i >= 0; i-- {
		switch m := history.At(i); {
		case m.Role == inference.RoleUser:
			return ""
		case m.Role == inference.RoleAssistant && m.Text != "":
			return m.Text
		}
	}
	return ""
}
