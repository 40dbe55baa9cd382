package gemini

import (
	"cmp"
	"context"
	"io"
	"net/http"

	"github.com/ddd26017/fixpoint/inference/resilient/remote"
)

// exchangeKey is the key of an exchange in its context.
type exchangeKey struct{}

func withExchange(x *exchange) context.Context { return context.WithValue(x.ctx, exchangeKey{}, x) }

// wired returns the client, which tells an exchange what the SDK keeps to itself: the answer's header, and why its body
// broke off.
func wired(client *http.Client, keyless bool) *http.Client {
	c := remote.Staying(client)
	c.Transport = wire{cmp.Or(c.Transport, http.DefaultTransport), keyless}
	return c
}

type wire struct {
	http.RoundTripper
	keyless bool
}

func (w wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.keyless {
		r = r.Clone(r.Context())
		r.Header.Del("X-Goog-Api-Key")
	}
	answer, err := w.RoundTripper.RoundTrip(r)
	if x, ok := r.Context().Value(exchangeKey{}).(*exchange); ok && err == nil {
		x.http = answer
		answer.Body = body{&marking{ReadCloser: answer.Body}, x}
	}
	return answer, err
}

// body ends where it breaks off, and tells the exchange why. The SDK would write that to the standard log.
type body struct {
	io.ReadCloser
	x *exchange
}

func (b body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		b.x.broken, err = err, io.EOF
	}
	return n, err
}
