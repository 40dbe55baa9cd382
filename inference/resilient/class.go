package resilient

import (
	"context"
	"errors"
	"io"
	"net"
)

// Class says what sort of failure a model's error is, and so what helps against it. A class is an error itself, the
// sentinel of its sort:
//
//	if errors.Is(err, resilient.ContextOverflow) { ... }
type Class uint8

// The classes.
const (
	// Unknown is an error that nobody classified. It is not tried again, since what it did is unknown too.
	Unknown Class = iota
	// Transient is a failure that has nothing to do with the request: a broken connection or stream, an answer that
	// did not come in time, a fault of the service (5xx).
	Transient
	// RateLimited means that the caller asked too often, or for too much in a while.
	RateLimited
	// Overloaded means that the service is too busy, whoever asks.
	Overloaded
	// ContextOverflow means that the request is longer than the model can read.
	ContextOverflow
	// ContentFiltered means that the service will not answer this request.
	ContentFiltered
	// BadRequest means that the service does not understand this request and never will.
	BadRequest
	// Auth means that the service does not accept the key, or that the key does not permit this.
	Auth
	// Quota means that what was paid for is used up.
	Quota
	// NotFound means that the service has no model of that name, or not for this caller.
	NotFound
	// Cancelled means that the caller no longer wanted the answer.
	Cancelled

	classes // how many there are
)

var classWords = [classes]string{
	Unknown:         "unknown failure",
	Transient:       "transient failure",
	RateLimited:     "rate limited",
	Overloaded:      "overloaded",
	ContextOverflow: "context overflow",
	ContentFiltered: "content filtered",
	BadRequest:      "bad request",
	Auth:            "not authorized",
	Quota:           "quota used up",
	NotFound:        "model not found",
	Cancelled:       "cancelled",
}

// String returns the class in words, such as "rate limited".
func (c Class) String() string {
	if c >= classes {
		c = Unknown
	}
	return classWords[c]
}

// Error implements error.
func (c Class) Error() string { return "resilient: " + c.String() }

// Again reports whether to ask the same model the same thing again may help.
func (c Class) Again() bool { return c == Transient || c == RateLimited || c == Overloaded }

// Elsewhere reports whether to ask another model the same thing may help. It does not for a request that is wrong, one
// that nobody wants answered any more, and one that a service filtered: to look for a laxer one is not ours to decide.
func (c Class) Elsewhere() bool {
	return c != BadRequest && c != ContentFiltered && c != Cancelled
}

// ClassOf returns the class of an error: that of the [Failure] or the Class in it, else Cancelled for
// [context.Canceled], Transient for time limits and broken connections, and Unknown for the rest, nil included.
//
// Where the caller's own context ended, that counts whatever the error says: ask it first.
func ClassOf(err error) Class {
	var failure *Failure
	var class Class
	var network *net.OpError
	var lookup *net.DNSError
	var limit interface{ Timeout() bool } // as net.Error, and context.DeadlineExceeded
	switch {
	case err == nil:
		return Unknown
	case errors.As(err, &failure):
		return failure.Class
	case errors.As(err, &class):
		return class
	case errors.Is(err, context.Canceled):
		return Cancelled
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return Unknown // a name that is wrong stays wrong
	case errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &network), lookup != nil, errors.As(err, &limit) && limit.Timeout():
		return Transient
	}
	return Unknown
}

// ClassOfStatus returns the class that an HTTP status stands for when the service says nothing more exact, and Unknown
// for a status that is none of a failure. Services put what matters into codes of their own: a spent quota often comes
// as 429, an overflow as 400. So an adapter looks at those first.
func ClassOfStatus(status int) Class {
	switch status {
	case 401, 403, 407:
		return Auth
	case 402:
		return Quota
	case 404, 410:
		return NotFound
	case 408, 409, 425:
		return Transient
	case 413:
		return ContextOverflow
	case 429:
		return RateLimited
	case 503, 529:
		return Overloaded
	case 501, 505:
		return BadRequest
	}
	switch {
	case status >= 400 && status < 500:
		return BadRequest
	case status >= 500 && status < 600:
		return Transient
	}
	return Unknown
}
