package mcp

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// remote returns a transport to a server's URL and what releases its connections.
func remote(s Server, l Limits) (sdk.Transport, func()) {
	origin, _ := url.Parse(s.URL) // Validate saw to it
	client := &http.Client{}
	release := func() {}
	if s.HTTPClient != nil {
		*client = *s.HTTPClient
	} else {
		own := http.DefaultTransport.(*http.Transport).Clone()
		client.Transport, release = own, own.CloseIdleConnections
	}
	if client.Transport == nil {
		client.Transport = http.DefaultTransport
	}
	client.Transport = guarded{client.Transport, s.Header, origin, int64(l.Message)}
	client.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if r.URL.Scheme != origin.Scheme || r.URL.Host != origin.Host {
			return fmt.Errorf("mcp: the server redirects to another host, %s", r.URL.Host)
		}
		if len(via) > 5 {
			return errors.New("mcp: the server redirects without end")
		}
		return nil
	}
	return &sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: client, MaxEventSize: l.Message}, release
}

// guarded adds the headers and bounds answers.
type guarded struct {
	http.RoundTripper
	header http.Header
	origin *url.URL
	limit  int64
}

func (g guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if len(g.header) > 0 && r.URL.Scheme == g.origin.Scheme && r.URL.Host == g.origin.Host {
		r = r.Clone(r.Context())
		for name, values := range g.header {
			r.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	resp, err := g.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	// A stream goes on for as long as it likes; its events have a limit of their own.
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
		resp.Body = &bounded{resp.Body, g.limit}
	}
	return resp, nil
}

var errTooLong = errors.New("mcp: the server's answer is longer than Limits.Message")

// bounded fails once more was read than is left.
type bounded struct {
	io.ReadCloser
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errTooLong
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooLong
	}
	return n, err
}
