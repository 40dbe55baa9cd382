package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/ddd26017/fixpoint/inference/resilient"
	"github.com/ddd26017/fixpoint/inference/resilient/remote"
)

// errCut is what a stream ends with that ends too early.
var errCut = errors.New("the stream ended before the answer did")

// complaint is what a service says that went wrong.
type complaint struct {
	code, kind, message, param string
}

func (c *complaint) Error() string { return c.text() }

// text returns what the service said, and of which parameter.
func (c *complaint) text() string {
	if c.message == "" || c.param == "" {
		return c.message
	}
	return c.message + " (param " + c.param + ")"
}

// failure classifies whatever an exchange ended with.
func (x *exchange) failure(err error) *resilient.Failure {
	e := remote.Exchange{Provider: Name, Model: x.request.Model, Response: x.http, Partial: x.partial, Secrets: x.model.secrets}
	return e.Failure(x.ctx, err, func(status int) (remote.Complaint, bool) {
		var broken *ssestream.StreamError
		var said *complaint
		switch {
		case errors.As(err, &said):
		case errors.As(err, &broken):
			said = readComplaint(broken.Event.Data)
		case status >= 400:
			text, _ := io.ReadAll(io.LimitReader(x.http.Body, 1<<20)) // the SDK has read it into memory
			said = readComplaint(text)
		default:
			return remote.Complaint{}, false
		}
		return remote.Complaint{
			Class: classify(said, status), Code: cmp.Or(said.code, said.kind), Message: said.text(), Wait: said.wait(),
		}, true
	})
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

// wait returns how long the message asks for.
func (c *complaint) wait() time.Duration {
	if match := tryAgain.FindStringSubmatch(c.message); match != nil {
		if wait, err := time.ParseDuration(match[1]); err == nil {
			return wait
		}
	}
	return 0
}
