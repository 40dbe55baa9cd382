package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/ddd26017/fixpoint/inference/resilient"
)

// Unsent marks an error of a request that was not sent, since the service would not take it: a bad request.
func Unsent(err error) error { return unsent{err} }

type unsent struct{ error }

func (u unsent) Unwrap() error { return u.error }

// Exchange is one request to a service, and what is known of it when it fails.
type Exchange struct {
	// Provider is the adapter's package name, and Model the model that was asked.
	Provider, Model string
	// Response is what the service answered with; nil if it did not get to that.
	Response *http.Response
	// Partial is true when some of the answer, text or calls, was passed on.
	Partial bool
	Secrets Secrets
}

// Complaint is what a service says that went wrong.
type Complaint struct {
	Class resilient.Class
	// Code is the service's own name for it.
	Code string
	// Message is the service's own text; "" is replaced by what the status means.
	Message string
	// Wait is how long the service asks in the body to be left alone. Of that and what the header says the longer counts.
	Wait time.Duration
}

// Failure classifies whatever the exchange ended with. read returns what the service said in err, or in the response
// with the given status (0 for one that is none of a failure), and false where it said nothing: then the way to it
// failed, or its answer cannot be understood. read is not called where that does not count: when ctx has ended, or for
// what is [Unsent].
func (x Exchange) Failure(ctx context.Context, err error, read func(status int) (Complaint, bool)) *resilient.Failure {
	f := &resilient.Failure{Provider: x.Provider, Model: x.Model, Partial: x.Partial}
	if ended := ctx.Err(); ended != nil {
		f.Class, f.Err = resilient.Cancelled, ended
		if errors.Is(ended, context.DeadlineExceeded) {
			f.Class = resilient.Transient
		}
		if cause := context.Cause(ctx); !errors.Is(cause, ended) {
			f.Err = fmt.Errorf("%w: %w", ended, cause)
		}
		return f
	}
	if no := (unsent{}); errors.As(err, &no) {
		f.Class, f.Err = resilient.BadRequest, no.error
		return f
	}
	if x.Response != nil && x.Response.StatusCode >= 300 {
		f.Status = x.Response.StatusCode
	}
	said, ok := read(f.Status)
	if !ok {
		f.Err = x.Secrets.Hide(err)
		f.Class = resilient.ClassOf(err)
		if f.Class == resilient.Unknown && (x.Response != nil || errors.Is(err, io.EOF)) {
			f.Class = resilient.Transient
		}
		return f
	}
	f.Class, f.Code = said.Class, said.Code
	if f.Class.Again() {
		f.RetryAfter = said.Wait
		if x.Response != nil {
			f.RetryAfter = max(f.RetryAfter, RetryAfter(x.Response.Header, time.Now()))
		}
	}
	f.Err = x.Secrets.Hide(errors.New(cmp.Or(said.Message, http.StatusText(f.Status), "the service says no more")))
	return f
}

// RetryAfter returns how long the header of an answer asks to wait: in milliseconds, which some services add since a
// whole second is long, or as [resilient.ParseRetryAfter] reads it. 0 means that it does not say.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	const most = 1e12 // milliseconds, far above what anybody waits for
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < most {
		return time.Duration(ms * float64(time.Millisecond))
	}
	wait, _ := resilient.ParseRetryAfter(h.Get("Retry-After"), now)
	return wait
}
