package resilient_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/inference/resilient"
)

func TestClassesSayWhatHelps(t *testing.T) {
	for _, c := range []struct {
		class            resilient.Class
		again, elsewhere bool
	}{
		{resilient.Unknown, false, true},
		{resilient.Transient, true, true},
		{resilient.RateLimited, true, true},
		{resilient.Overloaded, true, true},
		{resilient.ContextOverflow, false, true},
		{resilient.ContentFiltered, false, false},
		{resilient.BadRequest, false, false},
		{resilient.Auth, false, true},
		{resilient.Quota, false, true},
		{resilient.NotFound, false, true},
		{resilient.Cancelled, false, false},
	} {
		require.Equal(t, c.again, c.class.Again(), "%v", c.class)
		require.Equal(t, c.elsewhere, c.class.Elsewhere(), "%v", c.class)
		require.Equal(t, "resilient: "+c.class.String(), c.class.Error())
	}
	require.Equal(t, "unknown failure", resilient.Class(200).String())
}

func TestClassOf(t *testing.T) {
	refused := &url.Error{Op: "Post", URL: "http://localhost", Err: &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}}
	for name, c := range map[string]struct {
		err  error
		want resilient.Class
	}{
		"nothing":           {nil, resilient.Unknown},
		"anything":          {errors.New("odd"), resilient.Unknown},
		"failure":           {fmt.Errorf("x: %w", failure(resilient.Quota)), resilient.Quota},
		"failure over ctx":  {&resilient.Failure{Class: resilient.Transient, Err: context.Canceled}, resilient.Transient},
		"class":             {fmt.Errorf("x: %w", resilient.Auth), resilient.Auth},
		"cancelled":         {&url.Error{Err: context.Canceled}, resilient.Cancelled},
		"deadline":          {context.DeadlineExceeded, resilient.Transient},
		"deadline in url":   {&url.Error{Err: context.DeadlineExceeded}, resilient.Transient},
		"refused":           {refused, resilient.Transient},
		"broken body":       {fmt.Errorf("read: %w", io.ErrUnexpectedEOF), resilient.Transient},
		"no such host":      {&net.DNSError{IsNotFound: true}, resilient.Unknown},
		"resolver down":     {&net.DNSError{IsTemporary: true}, resilient.Transient},
		"bad address":       {&url.Error{Err: errors.New("unsupported protocol scheme")}, resilient.Unknown},
		"joined":            {errors.Join(errors.New("a"), failure(resilient.Overloaded)), resilient.Overloaded},
		"no such host, url": {&url.Error{Err: &net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}}}, resilient.Unknown},
	} {
		require.Equal(t, c.want, resilient.ClassOf(c.err), name)
	}
}

func TestClassOfStatus(t *testing.T) {
	want := map[int]resilient.Class{
		0: resilient.Unknown, 200: resilient.Unknown, 302: resilient.Unknown, 600: resilient.Unknown,
		400: resilient.BadRequest, 405: resilient.BadRequest, 422: resilient.BadRequest, 501: resilient.BadRequest,
		401: resilient.Auth, 403: resilient.Auth, 402: resilient.Quota, 404: resilient.NotFound,
		408: resilient.Transient, 409: resilient.Transient, 500: resilient.Transient, 502: resilient.Transient, 504: resilient.Transient,
		413: resilient.ContextOverflow, 429: resilient.RateLimited, 503: resilient.Overloaded, 529: resilient.Overloaded,
	}
	for status, class := range want {
		require.Equal(t, class, resilient.ClassOfStatus(status), "%d", status)
	}
}

func TestFailure(t *testing.T) {
	cause := io.ErrUnexpectedEOF
	f := &resilient.Failure{
		Class: resilient.RateLimited, Provider: "openai", Model: "gpt", Status: 429, Code: "rate_limit_exceeded",
		RetryAfter: 2 * time.Second, Partial: true, Err: cause,
	}
	err := fmt.Errorf("engine: the model failed: %w", f)
	require.ErrorIs(t, err, resilient.RateLimited)
	require.NotErrorIs(t, err, resilient.Overloaded)
	require.ErrorIs(t, err, cause)
	var got *resilient.Failure
	require.ErrorAs(t, err, &got)
	require.Same(t, f, got)
	require.Equal(t, "openai: model gpt: rate limited (status 429, code rate_limit_exceeded, retry after 2s, in mid answer): unexpected EOF", f.Error())
	require.Equal(t, "resilient: unknown failure", (&resilient.Failure{}).Error())
}
