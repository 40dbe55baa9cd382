package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/inference/resilient"
	"github.com/ddd26017/fixpoint/inference/resilient/remote"
)

func TestEndpoint(t *testing.T) {
	const endpoint, key, other = "REMOTE_TEST_URL", "REMOTE_TEST_KEY", "REMOTE_TEST_OTHER_KEY"
	of := func(base, k string) remote.Endpoint {
		return remote.Endpoint{Provider: "acme", BaseURL: base, Key: k, EnvBaseURL: endpoint, EnvKeys: []string{key, other}}
	}
	for _, c := range []struct {
		name                          string
		base, key                     string // of the options
		envBase, envKey, envOther     string
		wantBase, wantKey, wantErrors string
	}{
		{name: "nothing", wantErrors: "acme: there is no key: set Options.Key or the variable REMOTE_TEST_KEY or REMOTE_TEST_OTHER_KEY, or name an endpoint"},
		{name: "a key", key: "k", wantKey: "k"},
		{name: "the first key", envKey: "a", envOther: "b", wantKey: "a"},
		{name: "the other key", envOther: "b", wantKey: "b"},
		{name: "an endpoint without a key", base: "http://h", wantBase: "http://h"},
		{name: "another endpoint gets no key", base: "http://h", envBase: "http://e", envKey: "a", wantBase: "http://h"},
		{name: "all of the environment", envBase: "https://e/v1/", envKey: "a", wantBase: "https://e/v1/", wantKey: "a"},
		{name: "a key of the options at the environment's endpoint", key: "k", envBase: "http://e", envKey: "a", wantBase: "http://e", wantKey: "k"},
		{name: "a key with a line break", key: "hunter2\n", wantErrors: "acme: the key has"},
		{name: "a key with a letter", envKey: "hunter\u00e9", wantErrors: "acme: the key has"},
		{name: "no scheme", base: "localhost:8000", wantErrors: "acme: Options.BaseURL is no endpoint"},
		{name: "another scheme", base: "ftp://h", wantErrors: "Options.BaseURL"},
		{name: "no host", base: "http:///v1", wantErrors: "Options.BaseURL"},
		{name: "a query", base: "http://h?key=hunter2", wantErrors: "Options.BaseURL"},
		{name: "a bad one of the environment", envBase: "http://hunter2\x7f", wantErrors: "acme: REMOTE_TEST_URL is no endpoint"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(endpoint, c.envBase)
			t.Setenv(key, c.envKey)
			t.Setenv(other, c.envOther)
			got, err := of(c.base, c.key).Resolve()
			if c.wantErrors != "" {
				require.ErrorContains(t, err, c.wantErrors)
				require.NotContains(t, err.Error(), "hunter")
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.wantBase, got.BaseURL)
			require.Equal(t, c.wantKey, got.Key)
		})
	}
}

// A client stays at its host, however often that sends it on; other clients are left as they are.
func TestStaying(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "elsewhere") }))
	defer elsewhere.Close()
	hops := 0
	here := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/away":
			http.Redirect(w, r, elsewhere.URL, http.StatusFound)
		case r.URL.Path == "/secure":
			http.Redirect(w, r, "https://"+r.Host+"/there", http.StatusFound)
		case r.URL.Path == "/round":
			hops++
			http.Redirect(w, r, "/round", http.StatusFound)
		case r.URL.Path == "/near":
			http.Redirect(w, r, "/there", http.StatusFound)
		default:
			_, _ = io.WriteString(w, "here")
		}
	}))
	defer here.Close()
	for _, client := range []*http.Client{nil, {}, {Transport: &http.Transport{DisableKeepAlives: true}}} {
		staying := remote.Staying(client)
		for path, status := range map[string]int{"/away": 302, "/secure": 302, "/round": 302, "/near": 200} {
			resp, err := staying.Get(here.URL + path)
			require.NoError(t, err, path)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, status, resp.StatusCode, path)
		}
	}
	require.Equal(t, 30, hops)
	require.Nil(t, http.DefaultClient.CheckRedirect)

	own := errors.New("own")
	_, err := remote.Staying(&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return own }}).Get(here.URL + "/near")
	require.ErrorIs(t, err, own)
}

func TestSecrets(t *testing.T) {
	s := remote.SecretsOf("the-key-itself", http.Header{
		"X-Api-Key": {"the-key-itself-and-more"}, "Authorization": {"Bearer abcdefgh"}, "Cookie": {"short"}, "Accept": {"application/json"},
	})
	plain := errors.New("short application/json")
	require.Same(t, plain, s.Hide(plain))
	require.EqualError(t, s.Hide(errors.New("no: the-key-itself-and-more, the-key-itself and Bearer abcdefgh")), "no: [key], [key] and [key]")
	long := s.Hide(errors.New(strings.Repeat("\u00e9", 5000))).Error()
	require.Len(t, long, 4<<10+3)
	require.EqualError(t, remote.SecretsOf("", nil).Hide(errors.New("x")), "x")
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		seconds, ms string
		want        time.Duration
	}{
		{"", "", 0}, {"7", "", 7 * time.Second}, {"8", "7500", 7500 * time.Millisecond}, {"", "0.5", time.Millisecond / 2},
		{"8", "0", 8 * time.Second}, {"8", "-1", 8 * time.Second}, {"8", "NaN", 8 * time.Second}, {"8", "+Inf", 8 * time.Second}, {"8", "1e300", 8 * time.Second},
		{"-8", "", 0}, {"Wed, 02 Jan 2030 03:05:05 GMT", "", time.Minute}, {"Wed, 02 Jan 2030 03:03:05 GMT", "", 0}, {"soon", "soon", 0},
	} {
		h := http.Header{}
		h.Set("Retry-After", c.seconds)
		h.Set("Retry-After-Ms", c.ms)
		require.Equal(t, c.want, remote.RetryAfter(h, now), "%q and %q", c.seconds, c.ms)
	}
}

// What an exchange ended with is told in the order in which it counts: the caller's context, what was not sent, what
// the service says, and the way to it.
func TestFailure(t *testing.T) {
	said := func(c remote.Complaint) func(int) (remote.Complaint, bool) {
		return func(int) (remote.Complaint, bool) { return c, true }
	}
	silent := func(int) (remote.Complaint, bool) { return remote.Complaint{}, false }
	mute := func(int) (remote.Complaint, bool) { panic("is not asked") }
	status := func(code int, header ...string) *http.Response {
		r := &http.Response{StatusCode: code, Header: http.Header{}}
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return r
	}
	cause := errors.New("went home")
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	late, stop := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer stop()
	for _, c := range []struct {
		name     string
		ctx      context.Context
		response *http.Response
		err      error
		read     func(int) (remote.Complaint, bool)
		want     resilient.Failure // without its Err
		text     string
	}{
		{"cancelled", cancelled, status(500), io.EOF, mute, resilient.Failure{Class: resilient.Cancelled}, "context canceled: went home"},
		{"too late", late, nil, remote.Unsent(io.EOF), mute, resilient.Failure{Class: resilient.Transient}, "context deadline exceeded"},
		{"unsent", nil, nil, fmt.Errorf("sdk: %w", remote.Unsent(cause)), mute, resilient.Failure{Class: resilient.BadRequest}, "went home"},
		{"complaint", nil, status(429, "Retry-After", "7"), io.EOF, said(remote.Complaint{Class: resilient.RateLimited, Code: "slow", Message: "no: hunter2hunter2", Wait: time.Second}),
			resilient.Failure{Class: resilient.RateLimited, Code: "slow", Status: 429, RetryAfter: 7 * time.Second}, "no: [key]"},
		{"the longer wait", nil, status(429, "Retry-After", "7"), io.EOF, said(remote.Complaint{Class: resilient.RateLimited, Wait: 8 * time.Second}),
			resilient.Failure{Class: resilient.RateLimited, Status: 429, RetryAfter: 8 * time.Second}, "Too Many Requests"},
		{"no wait for what stays wrong", nil, status(400, "Retry-After", "7"), io.EOF, said(remote.Complaint{Class: resilient.BadRequest, Wait: time.Second}),
			resilient.Failure{Class: resilient.BadRequest, Status: 400}, "Bad Request"},
		{"in mid stream", nil, status(200), io.EOF, said(remote.Complaint{Class: resilient.Overloaded}), resilient.Failure{Class: resilient.Overloaded}, "the service says no more"},
		{"no answer", nil, nil, io.EOF, silent, resilient.Failure{Class: resilient.Transient}, "EOF"},
		{"no sense", nil, status(200), cause, silent, resilient.Failure{Class: resilient.Transient}, "went home"},
		{"no way", nil, nil, errors.New("hunter2hunter2"), silent, resilient.Failure{Class: resilient.Unknown}, "[key]"},
		{"moved", nil, status(307), cause, silent, resilient.Failure{Class: resilient.Transient, Status: 307}, "went home"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := c.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			x := remote.Exchange{Provider: "acme", Model: "m", Response: c.response, Partial: true, Secrets: remote.SecretsOf("hunter2hunter2", nil)}
			got := *x.Failure(ctx, c.err, c.read)
			require.EqualError(t, got.Err, c.text)
			got.Err = nil
			c.want.Provider, c.want.Model, c.want.Partial = "acme", "m", true
			require.Equal(t, c.want, got)
		})
	}
	require.ErrorIs(t, (remote.Exchange{}).Failure(cancelled, io.EOF, mute), cause)
	require.ErrorIs(t, remote.Unsent(cause), cause)
}
