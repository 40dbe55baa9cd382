package openai

import (
	"bytes"
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

	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/ddd26017/fixpoint/inference/resilient"
)

// refused is an error of a request that was not sent.
type refused struct{ error }

func (r refused) Unwrap() error { return r.error }

// errCut is what a stream ends with that ends too early.
var errCut = errors.New("the stream ended before the answer did")

// complaint is what a service says that went wrong.
type complaint struct {
	code, kind, message, param string
}

func (c *complaint) Error() string {
	text := c.message
	if text == "" {
		text = "the service says no more"
	}
	if c.param != "" {
		text += " (param " + c.param + ")"
	}
	return text
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
	var broken *ssestream.StreamError
	var said *complaint
	switch {
	case errors.As(err, &said):
	case errors.As(err, &broken):
		said = readComplaint(broken.Event.Data)
	case f.Status >= 400:
		text, _ := io.ReadAll(io.LimitReader(x.http.Body, 1<<20)) // the SDK has read it into memory
		said = readComplaint(text)
		if said.message == "" {
			said.message = http.StatusText(f.Status)
		}
	default: // the way to the service, or no answer that can be understood
		f.Err = x.hideKey(err)
		f.Class = resilient.ClassOf(err)
		if f.Class == resilient.Unknown && (x.http != nil || errors.Is(err, io.EOF)) {
			f.Class = resilient.Transient
		}
		return f
	}
	f.Code = said.code
	if f.Code == "" {
		f.Code = said.kind
	}
	f.Class = classify(said, f.Status)
	if f.Class.Again() {
		f.RetryAfter = retryAfter(header, said.message)
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

// readComplaint reads the forms that services give their errors: an object error, its text alone, the same in a list,
// or members at the top.
func readComplaint(text []byte) *complaint {
	text = bytes.TrimSpace(text)
	var list []json.RawMessage
	if json.Unmarshal(text, &list) == nil && len(list) > 0 {
		text = list[0]
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil {
		return &complaint{}
	}
	if inner, ok := members["error"]; ok {
		var word string
		if json.Unmarshal(inner, &word) == nil && word != "" {
			return &complaint{message: word}
		}
		var fields map[string]json.RawMessage
		if json.Unmarshal(inner, &fields) == nil && fields != nil {
			members = fields
		}
	}
	c := &complaint{code: word(members["code"]), kind: word(members["type"]), message: word(members["message"]), param: word(members["param"])}
	if c.message == "" {
		c.message = word(members["detail"])
	}
	return c
}

// word returns a JSON string's text or a number as it is written, and "" for other values.
func word(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	var number json.Number
	if json.Unmarshal(value, &number) == nil {
		return number.String()
	}
	return ""
}

// classes by the codes and types of OpenAI, Azure and widespread compatible servers.
var classes = map[string]resilient.Class{
	"insufficient_quota":             resilient.Quota,
	"billing_hard_limit_reached":     resilient.Quota,
	"billing_not_active":             resilient.Quota,
	"rate_limit_exceeded":            resilient.RateLimited,
	"rate_limit_error":               resilient.RateLimited,
	"context_length_exceeded":        resilient.ContextOverflow,
	"exceed_context_size_error":      resilient.ContextOverflow,
	"content_filter":                 resilient.ContentFiltered,
	"content_policy_violation":       resilient.ContentFiltered,
	"invalid_prompt":                 resilient.ContentFiltered,
	"bio_policy":                     resilient.ContentFiltered,
	"cyber_policy":                   resilient.ContentFiltered,
	"misalignment_policy_violation":  resilient.ContentFiltered,
	"image_content_policy_violation": resilient.ContentFiltered,
	"moderation_blocked":             resilient.ContentFiltered,
	"invalid_api_key":                resilient.Auth,
	"authentication_error":           resilient.Auth,
	"permission_error":               resilient.Auth,
	"model_not_found":                resilient.NotFound,
	"DeploymentNotFound":             resilient.NotFound,
	"overloaded_error":               resilient.Overloaded,
	"server_is_overloaded":           resilient.Overloaded,
	"slow_down":                      resilient.Overloaded,
	"engine_overloaded":              resilient.Overloaded,
	"server_error":                   resilient.Transient,
	"internal_server_error":          resilient.Transient,
	"vector_store_timeout":           resilient.Transient,
	"invalid_request_error":          resilient.BadRequest,
}

// overflow is how services that have no code for it say that a request is too long.
var overflow = regexp.MustCompile(`(?i)maximum context length|context (window|length|size)|prompt is too long|too many tokens`)

func classify(c *complaint, status int) resilient.Class {
	if class, ok := classes[c.code]; ok && class != resilient.BadRequest {
		return class
	}
	if class, ok := classes[c.kind]; ok && class != resilient.BadRequest && class != resilient.Transient {
		return class
	}
	if n, err := strconv.Atoi(c.code); err == nil && status < 400 {
		status = n // gateways that had begun to answer
	}
	class := resilient.ClassOfStatus(status)
	if class == resilient.Unknown {
		class = resilient.Transient // a failure without a status comes in mid stream
		if known, ok := classes[c.kind]; ok {
			class = known
		} else if strings.HasPrefix(c.code, "invalid_") || strings.Contains(c.code, "image") {
			class = resilient.BadRequest
		}
	}
	if class == resilient.BadRequest && overflow.MatchString(c.message) {
		class = resilient.ContextOverflow
	}
	return class
}

// tryAgain is how a failure in mid stream, which has no header, asks for time.
var tryAgain = regexp.MustCompile(`(?i)try again in ((?:[0-9.]+(?:ms|s|m|h))+)`)

func retryAfter(header http.Header, message string) time.Duration {
	if ms, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	if wait, ok := resilient.ParseRetryAfter(header.Get("Retry-After"), time.Now()); ok {
		return wait
	}
	if match := tryAgain.FindStringSubmatch(message); match != nil {
		if wait, err := time.ParseDuration(match[1]); err == nil {
			return wait
		}
	}
	return 0
}
