package models

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/ddd26017/fixpoint/contrib/model/anthropic"
	"github.com/ddd26017/fixpoint/contrib/model/gemini"
	"github.com/ddd26017/fixpoint/contrib/model/openai"
	"github.com/ddd26017/fixpoint/inference"
)

// provider is a service with models, and how to make one.
type provider struct {
	name string
	// keys and endpoint are the environment variables for the provider's own service. Of the
	// keys the first one counts.
	keys     []string
	endpoint string
	// apis are what Service.API may be, besides "".
	apis []string
	make func(c connection) (inference.Model, error)
}

// connection is what a model is made with. An empty endpoint is the provider's own.
type connection struct {
	endpoint, key string
	header        http.Header
	api           string
	oldMaxTokens  bool
}

// providers are all that there are, by name.
var providers = []provider{
	{
		name: openai.Name, keys: []string{openai.EnvKey}, endpoint: openai.EnvBaseURL,
		apis: []string{string(openai.Responses), string(openai.ChatCompletions)},
		make: func(c connection) (inference.Model, error) {
			return openai.New(openai.Options{
				BaseURL: c.endpoint, Key: c.key, Header: c.header, OldMaxTokens: c.oldMaxTokens, API: openai.API(c.api),
			})
		},
	},
	{
		name: anthropic.Name, keys: []string{anthropic.EnvKey}, endpoint: anthropic.EnvBaseURL,
		make: func(c connection) (inference.Model, error) {
			o := anthropic.Options{BaseURL: c.endpoint, Key: c.key, Header: c.header}
			if c.endpoint == "" {
				o.Cache = anthropic.CacheFiveMinutes // an agent sends the same beginning again and again
			}
			return anthropic.New(o)
		},
	},
	{
		name: gemini.Name, keys: []string{gemini.EnvKey, gemini.EnvOtherKey}, endpoint: gemini.EnvBaseURL,
		make: func(c connection) (inference.Model, error) {
			return gemini.New(gemini.Options{BaseURL: c.endpoint, Key: c.key, Header: c.header})
		},
	},
}

// Names lists the providers.
func Names() (names []string) {
	for _, p := range providers {
		names = append(names, p.name)
	}
	return names
}

func lookup(name string) (provider, bool) {
	i := slices.IndexFunc(providers, func(p provider) bool { return p.name == name })
	if i < 0 {
		return provider{}, false
	}
	return providers[i], true
}

// protocol returns the provider whose protocol a service speaks.
func (s Service) protocol(name string) (provider, bool) { return lookup(cmp.Or(s.Protocol, name)) }
