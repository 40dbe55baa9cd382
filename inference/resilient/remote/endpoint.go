package remote

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// Endpoint says where a service is, and with which key it is asked.
type Endpoint struct {
	// Provider is the adapter's package name, with which errors begin.
	Provider string
	// BaseURL and Key are what the caller of the adapter says, in fields Options.BaseURL and Options.Key.
	BaseURL, Key string
	// EnvBaseURL is the variable that has the endpoint otherwise, and EnvKeys are those of the key, the first first.
	EnvBaseURL string
	EnvKeys    []string
}

// Resolve returns the endpoint with what the environment says where the caller says nothing. Without a BaseURL then the
// service's own is meant, which wants a key. The key of the environment is for the endpoint of the environment: that of
// one service is not sent to another by accident. Errors say which option or variable is at fault, but not what it is.
func (e Endpoint) Resolve() (Endpoint, error) {
	source := "Options.BaseURL"
	if e.BaseURL == "" {
		source, e.BaseURL = e.EnvBaseURL, os.Getenv(e.EnvBaseURL)
		for _, name := range e.EnvKeys {
			e.Key = cmp.Or(e.Key, os.Getenv(name))
		}
	}
	if e.BaseURL == "" && e.Key == "" {
		return e, fmt.Errorf("%s: there is no key: set Options.Key or the variable %s, or name an endpoint that needs none in Options.BaseURL",
			e.Provider, strings.Join(e.EnvKeys, " or "))
	}
	if strings.ContainsFunc(e.Key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return e, errors.New(e.Provider + ": the key has a space, a line break or a letter that no key has; look how it was copied")
	}
	if e.BaseURL == "" {
		return e, nil
	}
	base, err := url.Parse(e.BaseURL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.RawQuery != "" {
		return e, fmt.Errorf("%s: %s is no endpoint; want one such as https://host or http://localhost:8000/v1", e.Provider, source)
	}
	return e, nil
}

// maxRedirects is as many as net/http follows.
const maxRedirects = 10

// Staying returns a copy of the client, nil being [http.DefaultClient], that follows no redirect to another host: that
// would get the headers that a service wants its keys in, of which net/http knows nothing. The redirect is the answer
// then. A client with a CheckRedirect of its own keeps that.
func Staying(client *http.Client) *http.Client {
	c := *cmp.Or(client, http.DefaultClient)
	if c.CheckRedirect == nil {
		c.CheckRedirect = func(r *http.Request, via []*http.Request) error {
			if from := via[0].URL; r.URL.Host != from.Host || r.URL.Scheme != from.Scheme || len(via) >= maxRedirects {
				return http.ErrUseLastResponse
			}
			return nil
		}
	}
	return &c
}
