package serve

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/ddd26017/fixpoint/engine"
)

// fault is why a request is refused, as its client is told.
type fault struct {
	status     int
	Code       string `json:"code"`
	Message    string `json:"message"`
	Position   *int64 `json:"position,omitempty"` // in the body, in bytes
	Decision   *int   `json:"decision,omitempty"` // index of the one that was refused
	Run        *View  `json:"run,omitempty"`      // where the run stands instead
	After      string `json:"after,omitempty"`    // with it a stream can be asked for
	retryAfter int    // seconds
	allow      string
}

func (f *fault) Error() string { return "serve: " + f.Message }

func refuse(status int, code, message string) *fault {
	return &fault{status: status, Code: code, Message: message}
}

// hidden is the answer for whatever is not there or is not the caller's: nobody can tell
// which.
func hidden() *fault {
	return refuse(http.StatusNotFound, "not_found", "there is no such thing")
}

// ended is the answer of a server that shuts down.
func ended() *fault {
	f := refuse(http.StatusServiceUnavailable, "shutting_down", "the server shuts down; try again")
	f.retryAfter = 5
	return f
}

// answer writes a fault. Errors of the engine become the fault that stands for them.
func (c caller) answer(w http.ResponseWriter, err error) {
	f := c.faultOf(err)
	if f.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.retryAfter))
	}
	if f.allow != "" {
		w.Header().Set("Allow", f.allow)
	}
	c.write(w, f.status, struct {
		Error *fault `json:"error"`
	}{f})
}

// write answers with a value in JSON.
func (c caller) write(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil { // values of this package can be written
		status, text = http.StatusInternalServerError, []byte(`{"error":{"code":"internal","message":"the answer cannot be written"}}`)
	}
	body := string(text)
	if c.space != "" {
		body = c.outside(body)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append([]byte(body), '\n')) // the client may be gone
}

func (c caller) faultOf(err error) *fault {
	var f *fault
	if errors.As(err, &f) {
		return f
	}
	var refused *engine.DecisionError
	if errors.As(err, &refused) {
		f = decisionFault(refused)
		f.Decision = &refused.Index
		return f
	}
	switch {
	case errors.Is(err, engine.ErrBusy):
		return refuse(http.StatusConflict, "busy", "a run of the thread is under way; wait for it or cancel it")
	case errors.Is(err, engine.ErrWaiting):
		return refuse(http.StatusConflict, "waiting", "the thread's last run waits for decisions; make them or cancel it")
	case errors.Is(err, engine.ErrNotWaiting):
		return refuse(http.StatusConflict, "not_waiting", "the run does not wait for decisions")
	case errors.Is(err, engine.ErrLeaseHeld), errors.Is(err, engine.ErrFenced), errors.Is(err, engine.ErrJournalConflict):
		f = refuse(http.StatusConflict, "elsewhere", "another process is at the thread; try again")
		f.retryAfter = 1
		return f
	case errors.Is(err, engine.ErrInput):
		return refuse(http.StatusBadRequest, "bad_input", "the engine does not take the input")
	case errors.Is(err, engine.ErrTooLarge):
		return refuse(http.StatusRequestEntityTooLarge, "too_large", "the thread would be too large for the store")
	case errors.Is(err, engine.ErrClosed), errors.Is(err, engine.ErrJournalClosed), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return ended()
	}
	return refuse(http.StatusInternalServerError, "internal", "something went wrong; the server's log may tell more")
}

func decisionFault(err *engine.DecisionError) *fault {
	switch {
	case errors.Is(err, engine.ErrUnknownTicket):
		return refuse(http.StatusNotFound, "unknown_ticket", "the run has no such ticket; nothing was applied")
	case errors.Is(err, engine.ErrLate):
		return refuse(http.StatusConflict, "late", "the ticket was answered already, or its time ran out; nothing was applied")
	case errors.Is(err, engine.ErrAmbiguous):
		return refuse(http.StatusBadRequest, "ambiguous", "several tickets are open; name one; nothing was applied")
	case errors.Is(err, engine.ErrRepeated):
		return refuse(http.StatusConflict, "repeated", "the decision contradicts another one; nothing was applied")
	case errors.Is(err, engine.ErrBadAnswer):
		return refuse(http.StatusUnprocessableEntity, "bad_answer", "the answer is not of the form that its ticket asks for; nothing was applied")
	}
	return refuse(http.StatusInternalServerError, "internal", "the decision could not be kept; nothing was applied")
}
