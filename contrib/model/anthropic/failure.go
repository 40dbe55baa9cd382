package anthropic

import (
	"cmp"
	"encoding/json"
	"errors"
	"regexp"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/ddd26017/fixpoint/inference/resilient"
	"github.com/ddd26017/fixpoint/inference/resilient/remote"
)

// complaint is what a service says that went wrong.
type complaint struct{ kind, code, message string }

func (c *complaint) Error() string { return cmp.Or(c.message, "the service says no more") }

// readComplaint reads an error's body: {"type":"error","error":{"type":...,"message":...}}.
func readComplaint(text []byte) *complaint {
	var body struct {
		Error struct {
			Type, Message string
			Details       struct {
				Code string `json:"error_code"`
			}
		}
	}
	if json.Unmarshal(text, &body) != nil && body.Error.Type == "" {
		return &complaint{}
	}
	return &complaint{body.Error.Type, body.Error.Details.Code, body.Error.Message}
}

// failure classifies whatever an exchange ended with.
func (x *exchange) failure(err error) *resilient.Failure {
	e := remote.Exchange{Provider: Name, Model: x.request.Model, Response: x.http, Partial: x.partial, Secrets: x.model.secrets}
	return e.Failure(x.ctx, err, func(status int) (remote.Complaint, bool) {
		var said *complaint
		var answered *sdk.Error
		switch {
		case errors.As(err, &said):
		case errors.As(err, &answered): // by a status, or by an event
			said = readComplaint([]byte(answered.RawJSON()))
		case status >= 400: // with a body that cannot be read
			said = &complaint{}
		default:
			return remote.Complaint{}, false
		}
		return remote.Complaint{Class: classify(said, status), Code: cmp.Or(said.code, said.kind), Message: said.message}, true
	})
}

// classes by the types and codes of errors.
var classes = map[string]resilient.Class{
	"authentication_error":         resilient.Auth,
	"permission_error":             resilient.Auth,
	"billing_error":                resilient.Quota,
	"enforced_spend_limit_reached": resilient.Quota,
	"not_found_error":              resilient.NotFound,
	"request_too_large":            resilient.ContextOverflow,
	"rate_limit_error":             resilient.RateLimited,
	"overloaded_error":             resilient.Overloaded,
	"timeout_error":                resilient.Transient,
	"conflict_error":               resilient.Transient,
	"api_error":                    resilient.Transient,
	"invalid_request_error":        resilient.BadRequest,
}

// What the service calls an invalid request, and says in words only.
var worded = []struct {
	words *regexp.Regexp
	class resilient.Class
}{
	{regexp.MustCompile(`(?i)prompt is too long|context (window|limit|length)`), resilient.ContextOverflow},
	{regexp.MustCompile(`(?i)credit balance|usage limit|spend(ing)? limit`), resilient.Quota},
	{regexp.MustCompile(`(?i)content filter`), resilient.ContentFiltered},
}

func classify(c *complaint, status int) resilient.Class {
	class, known := classes[c.code]
	if !known {
		class, known = classes[c.kind]
	}
	if !known || class == resilient.Transient && status >= 400 {
		class = resilient.ClassOfStatus(status)
	}
	if class == resilient.Unknown {
		return resilient.Transient // a failure of no sort that comes in mid stream
	}
	for _, w := range worded {
		if class == resilient.BadRequest && w.words.MatchString(c.message) {
			return w.class
		}
	}
	return class
}
