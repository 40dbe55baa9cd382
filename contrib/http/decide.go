package serve

import (
	"fmt"
	"net/http"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// decisionsBody is what people decided.
type decisionsBody struct {
	Decisions []decisionBody `json:"decisions"`
}

// decisionBody answers a ticket.
type decisionBody struct {
	ID       string         `json:"id"`       // a repeat with the same one changes nothing
	Ticket   string         `json:"ticket"`   // or
	Call     string         `json:"call"`     // the ticket's call, or neither if one ticket is open
	Approved *bool          `json:"approved"` // required unless Cancel
	Cancel   bool           `json:"cancel"`   // nobody decided
	Reason   string         `json:"reason"`
	Value    inference.JSON `json:"value"`
	Args     inference.JSON `json:"args"` // to run instead
}

// decide answers tickets of a run, which goes on then.
func (s *Server) decide(c caller, w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	var body decisionsBody
	if _, err := s.strict(w, r, &body); err != nil {
		return err
	}
	if n := len(body.Decisions); n > s.options.Limits.Messages {
		return refuse(http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("there are more than %d decisions", s.options.Limits.Messages))
	}
	var ds []engine.Decision
	for i, d := range body.Decisions {
		switch {
		case d.Approved == nil && !d.Cancel:
			return refuse(http.StatusBadRequest, "bad_decision", fmt.Sprintf("decision %d says neither approved nor cancel", i))
		case d.Approved != nil && *d.Approved && d.Cancel:
			return refuse(http.StatusBadRequest, "bad_decision", fmt.Sprintf("decision %d says approved and cancel", i))
		case len(d.ID) > 200:
			return refuse(http.StatusBadRequest, "bad_decision", fmt.Sprintf("decision %d has an id of more than 200 bytes", i))
		}
		e := engine.Decision{ID: d.ID, Call: d.Call, Answer: phase.Answer{
			Approved: d.Approved != nil && *d.Approved, Cancel: d.Cancel, Reason: d.Reason, Value: d.Value, Args: d.Args,
		}}
		if d.Ticket != "" {
			e.Answer.Ticket = c.inside(d.Ticket)
		}
		ds = append(ds, e)
	}
	k, err := s.find(c, r)
	if err != nil {
		return err
	}
	if _, err := s.resume(c, r.Context(), &k, false, ds); err != nil {
		return err
	}
	c.write(w, http.StatusOK, s.view(k))
	return nil
}

// cancel ends a run, whether it is under way or waits.
func (s *Server) cancel(c caller, w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	if err := bodyless(r); err != nil {
		return err
	}
	k, err := s.find(c, r)
	if err != nil {
		return err
	}
	g, err := s.resume(c, r.Context(), &k, true, nil)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if g != nil {
		status = http.StatusAccepted
	}
	c.write(w, status, s.view(k))
	return nil
}
