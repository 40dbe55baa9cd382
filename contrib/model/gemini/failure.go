package gemini

import (
	"cmp"
	"errors"
	"regexp"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/ddd26017/fixpoint/inference/resilient"
	"github.com/ddd26017/fixpoint/inference/resilient/remote"
)

// complaint is what a service says that went wrong.
type complaint struct {
	// code is an error's reason, or else its status, such as "API_KEY_INVALID" or "RESOURCE_EXHAUSTED".
	code, status, message string
	// daily is true of a quota that is used up for the day, and blocked of a prompt that was filtered.
	daily, blocked bool
	wait           time.Duration
}

func (c *complaint) Error() string { return cmp.Or(c.message, "the service says no more") }

var word = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)

// readComplaint reads an error, with the details that say more.
func readComplaint(e genai.APIError) *complaint {
	c := &complaint{message: e.Message}
	if word.MatchString(e.Status) { // not a status of HTTP in words
		c.status = e.Status
	} else {
		c.message = "" // the body, whatever it is
	}
	c.code = c.status
	for _, d := range e.Details {
		kind, _ := d["@type"].(string)
		switch {
		case strings.HasSuffix(kind, "google.rpc.ErrorInfo"):
			if reason, _ := d["reason"].(string); reason != "" {
				c.code = reason
			}
		case strings.HasSuffix(kind, "google.rpc.RetryInfo"):
			text, _ := d["retryDelay"].(string)
			if wait, err := time.ParseDuration(text); err == nil {
				c.wait = max(0, wait)
			}
		case strings.HasSuffix(kind, "google.rpc.QuotaFailure"):
			violations, _ := d["violations"].([]any)
			for _, v := range violations {
				violation, _ := v.(map[string]any)
				id, _ := violation["quotaId"].(string)
				c.daily = c.daily || strings.Contains(id, "PerDay")
			}
		}
	}
	return c
}

// failure classifies whatever an exchange ended with.
func (x *exchange) failure(err error) *resilient.Failure {
	var said *complaint
	var answered genai.APIError
	switch {
	case errors.As(err, &said):
	case errors.As(err, &answered): // by a status, or in a stream
		said = readComplaint(answered)
	default:
		err = cmp.Or(x.broken, err)
	}
	e := remote.Exchange{Provider: Name, Model: x.request.Model, Response: x.http, Partial: x.partial, Secrets: x.model.secrets}
	return e.Failure(x.ctx, err, func(status int) (remote.Complaint, bool) {
		if said == nil {
			return remote.Complaint{}, false
		}
		return remote.Complaint{
			Class: classify(said, cmp.Or(status, answered.Code)), Code: said.code, Message: said.message, Wait: said.wait,
		}, true
	})
}

// classes by the reasons and statuses of errors. Others are told by the status of HTTP.
var classes = map[string]resilient.Class{
	"API_KEY_INVALID":     resilient.Auth,
	"API_KEY_EXPIRED":     resilient.Auth,
	"UNAUTHENTICATED":     resilient.Auth,
	"PERMISSION_DENIED":   resilient.Auth,
	"FAILED_PRECONDITION": resilient.Auth, // a country, or an account without billing
	"NOT_FOUND":           resilient.NotFound,
	"RESOURCE_EXHAUSTED":  resilient.RateLimited,
	"UNAVAILABLE":         resilient.Overloaded,
	"INTERNAL":            resilient.Transient,
	"UNKNOWN":             resilient.Transient,
	"ABORTED":             resilient.Transient,
	"CANCELLED":           resilient.Transient,
	"DEADLINE_EXCEEDED":   resilient.Transient,
	"INVALID_ARGUMENT":    resilient.BadRequest,
	"OUT_OF_RANGE":        resilient.BadRequest,
	"UNIMPLEMENTED":       resilient.BadRequest,
	// An answer's end: the calls of a conversation that another service's model began have no signatures.
	"MISSING_THOUGHT_SIGNATURE": resilient.BadRequest,
}

var (
	overflow = regexp.MustCompile(`(?i)input token count.*exceeds|exceeds the maximum number of tokens|input context is too long`)
	badKey   = regexp.MustCompile(`(?i)api key (not valid|expired|not found)`)
	spent    = regexp.MustCompile(`(?i)credits? (are|is|have been) (depleted|exhausted)`)
)

func classify(c *complaint, status int) resilient.Class {
	if c.blocked {
		return resilient.ContentFiltered
	}
	class, known := classes[c.code]
	if !known {
		class, known = classes[c.status]
	}
	if !known {
		class = resilient.ClassOfStatus(status)
	}
	switch {
	case class == resilient.Unknown:
		return resilient.Transient // an answer that failed
	case class == resilient.RateLimited && (c.daily || spent.MatchString(c.message)):
		return resilient.Quota
	case class == resilient.BadRequest && overflow.MatchString(c.message):
		return resilient.ContextOverflow
	case class == resilient.BadRequest && badKey.MatchString(c.message):
		return resilient.Auth
	}
	return class
}
