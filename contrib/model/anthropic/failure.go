package anthropic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/ddd26017/fixpoint/inference/resilient"
)

// refused is an error of a request that was not sent.
type refused struct{ error }

func (r refused) Unwrap() error { return r.error }

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
	var header http.Header
	if x.http != nil {
		header = x.http.Header
		if x.http.StatusCode >= 300 {
			f.Status = x.http.StatusCode
		}
	}
	var said *complaint
	var answered *sdk.Error
	switch {
	case errors.As(err, &said):
	case errors.As(err, &answered): // by a status, or by an event
		said = readComplaint([]byte(answered.RawJSON()))
	case f.Status >= 400: // with a body that cannot be read
		said = &complaint{}
	default: // the way to the service, or no answer that can be understood
		f.Err = x.hideKey(err)
		f.Class = resilient.ClassOf(err)
		if f.Class == resilient.Unknown && (x.http != nil || errors.Is(err, io.EOF)) {
			f.Class = resilient.Transient
		}
		return f
	}
	said.message = cmp.Or(said.message, http.StatusText(f.Status))
	f.Code = cmp.Or(said.code, said.kind)
	f.Class = classify(said, f.Status)
	if f.Class.Again() {
		f.RetryAfter = retryAfter(header)
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
	switch class {
	case resilient.Unknown:
		return resilient.Transient // a failure of no sort that comes in mid stream
	case resilient.BadRequest:
		for _, w := range worded {
			if w.words.MatchString(c.message) {
				return w.class
			}
		}
	}
	return class
}

func retryAfter(header http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	wait, _ := resilient.ParseRetryAfter(header.Get("Retry-After"), time.Now())
	return wait
}
