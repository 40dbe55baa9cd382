package gemini

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/ddd26017/fixpoint/inference/resilient"
)

// refused is an error of a request that was not sent.
type refused struct{ error }

func (r refused) Unwrap() error { return r.error }

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
	f := &resilient.Failure{Provider: Name, Model: x.request.Model, Partial: x.partial}
	if ended := x.ctx.Err(); ended != nil {
		f.Class, f.Err = resilient.Cancelled, ended
		if errors.Is(ended, context.DeadlineExceeded) {
			f.Class = resilient.Transient
		}
		if cause := context.Cause(x.ctx); !errors.Is(cause, ended) {
			f.Err = fmt.Errorf("%w: %w", ended, cause)
		}
		return f
	}
	var no refused
	if errors.As(err, &no) {
		f.Class, f.Err = resilient.BadRequest, no.error
		return f
	}
	if x.http != nil && x.http.StatusCode >= 300 {
		f.Status = x.http.StatusCode
	}
	var said *complaint
	var answered genai.APIError
	switch {
	case errors.As(err, &said):
	case errors.As(err, &answered): // by a status, or in a stream
		said = readComplaint(answered)
	default: // the way to the service, or no answer that can be understood
		err = cmp.Or(x.broken, err)
		f.Err = x.hideKey(err)
		f.Class = resilient.ClassOf(err)
		if f.Class == resilient.Unknown && (x.http != nil || errors.Is(err, io.EOF)) {
			f.Class = resilient.Transient
		}
		return f
	}
	said.message = cmp.Or(said.message, http.StatusText(f.Status))
	f.Code = said.code
	f.Class = classify(said, cmp.Or(f.Status, answered.Code))
	if f.Class.Again() {
		f.RetryAfter = said.wait
		if f.RetryAfter == 0 && x.http != nil {
			f.RetryAfter, _ = resilient.ParseRetryAfter(x.http.Header.Get("Retry-After"), time.Now())
		}
	}
	f.Err = x.hideKey(said)
	return f
}

// hideKey returns err, or an error without the secrets that its text has: services repeat what they do not accept.
func (x *exchange) hideKey(err error) error {
	const limit = 4 << 10
	text := err.Error()
	hidden := text
	for _, secret := range x.model.secrets {
		hidden = strings.ReplaceAll(hidden, secret, "[key]")
	}
	if len(hidden) > limit {
		hidden = strings.ToValidUTF8(hidden[:limit], "") + "..."
	}
	if hidden == text {
		return err
	}
	return errors.New(hidden)
}

// secrets returns what no error may have: the key, and headers that are called like one. What is too short to be a
// secret is a word for "no key".
func secrets(key string, header http.Header) []string {
	all := []string{key}
	for name, values := range header {
		for _, word := range []string{"key", "auth", "token", "secret", "cookie"} {
			if strings.Contains(strings.ToLower(name), word) {
				all = append(all, values...)
				break
			}
		}
	}
	return slices.DeleteFunc(all, func(secret string) bool { return len(secret) < 8 })
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
