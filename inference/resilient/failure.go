package resilient

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Failure is what went wrong at a model, in words that do not depend on the service. Adapters return a *Failure for
// whatever a service or the way to it answers with, so that the wrappers of this package, and whoever else reacts to
// failures, need not know the service. It matches its class under [errors.Is], and what Err matches.
//
// Nobody changes a Failure once it was returned.
type Failure struct {
	Class Class
	// Provider is the adapter's package name; the text of the error begins with it. Model is the model that was asked.
	Provider, Model string
	// Status is the HTTP status; 0 when there was none, as for a broken connection.
	Status int
	// Code is the service's own name for the failure, such as "insufficient_quota".
	Code string
	// RetryAfter is how long the service asks to be left alone; 0 when it does not say. See [ParseRetryAfter].
	RetryAfter time.Duration
	// Partial is true when some of the answer, text or calls, came before the failure.
	Partial bool
	// Err is the cause: an error of the SDK or the network, or what the service said. It must hold no secrets.
	Err error
}

// Error implements error. The text names the provider, the model, the class and the cause.
func (f *Failure) Error() string {
	var b strings.Builder
	b.WriteString(cmp.Or(f.Provider, "resilient") + ": ")
	if f.Model != "" {
		b.WriteString("model " + f.Model + ": ")
	}
	b.WriteString(f.Class.String())
	var notes []string
	if f.Status != 0 {
		notes = append(notes, fmt.Sprintf("status %d", f.Status))
	}
	if f.Code != "" {
		notes = append(notes, "code "+f.Code)
	}
	if f.RetryAfter > 0 {
		notes = append(notes, fmt.Sprintf("retry after %v", f.RetryAfter.Round(time.Millisecond)))
	}
	if f.Partial {
		notes = append(notes, "in mid answer")
	}
	if len(notes) > 0 {
		b.WriteString(" (" + strings.Join(notes, ", ") + ")")
	}
	if f.Err != nil {
		b.WriteString(": " + f.Err.Error())
	}
	return b.String()
}

// Is reports whether target is the failure's class.
func (f *Failure) Is(target error) bool {
	class, ok := target.(Class)
	return ok && class == f.Class
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// dateLayouts are the forms of a date in HTTP, newest first.
var dateLayouts = []string{"Mon, 02 Jan 2006 15:04:05 GMT", "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC}

// ParseRetryAfter reads the value of a Retry-After header: a number of seconds, which may have a fraction as some
// services write it, or an HTTP date, which is compared with now. It returns how long to wait, never less than 0, and
// whether the value could be read; an empty one cannot. A wait too long for a Duration is the longest there is.
func ParseRetryAfter(value string, now time.Time) (wait time.Duration, ok bool) {
	value = strings.TrimSpace(value)
	if value != "" && strings.Trim(value, "0123456789.") == "" {
		seconds, err := strconv.ParseFloat(value, 64)
		if err != nil && !math.IsInf(seconds, 1) {
			return 0, false
		}
		if seconds >= float64(math.MaxInt64)/float64(time.Second) {
			return math.MaxInt64, true
		}
		return time.Duration(seconds * float64(time.Second)), true
	}
	for _, layout := range dateLayouts {
		if date, err := time.Parse(layout, value); err == nil {
			return max(0, date.Sub(now)), true
		}
	}
	return 0, false
}
