package models

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/contrib/model/openai"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/internal/jsonpos"
)

// Service says where a provider's models are, and how they are asked.
type Service struct {
	// Protocol is the provider whose protocol the service speaks. Without it the service
	// has to be called as that provider.
	Protocol string `json:"protocol"`
	// Endpoint is its address; "" is the provider's own, or that of the environment.
	Endpoint string `json:"endpoint"`
	// KeyFrom is the environment variable that has the key. Without it an Endpoint gets none.
	KeyFrom string `json:"key_from"`
	// HeadersFrom holds, by header, the environment variable that has its value.
	HeadersFrom map[string]string `json:"headers_from"`
	// API is "responses" or "chat_completions", for services that speak as OpenAI does. The
	// default is the former, and the latter with an Endpoint.
	API string `json:"api"`
	// OldMaxTokens has the limit of an answer sent as max_tokens, for such services too.
	OldMaxTokens bool `json:"old_max_tokens"`
}

// Services are described by the section, by the name that ids of their models begin with.
type Services map[string]Service

// ServiceSection is the section that describes services.
var ServiceSection = engine.NewConfigKey("providers", engine.ConfigOptions[Services]{Check: Services.Validate})

var serviceName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)

// variableName is what a shell takes as one.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Validate returns what is wrong with the services, or nil.
func (all Services) Validate() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := all[name].validate(name); err != nil {
			errs = append(errs, fmt.Errorf("providers: %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

func (s Service) validate(name string) error {
	p, known := s.protocol(name)
	switch {
	case !serviceName.MatchString(name) || name == Script:
		return fmt.Errorf("the name needs to begin with a lower-case letter and to have letters, digits, \"-\" and \"_\", and %q is taken", Script)
	case !known && s.Protocol == "":
		return fmt.Errorf("say which protocol it speaks: %s", strings.Join(Names(), ", "))
	case !known:
		return fmt.Errorf("no protocol %q; %s", s.Protocol, hint(s.Protocol, Names()))
	case name != p.name && s.Endpoint == "":
		return errors.New("name its endpoint")
	case s.API != "" && len(p.apis) == 0:
		return fmt.Errorf("api is for the protocol %s", openai.Name)
	case s.API != "" && !slices.Contains(p.apis, s.API):
		return fmt.Errorf("no api %q; %s", s.API, hint(s.API, p.apis))
	case s.OldMaxTokens && len(p.apis) == 0:
		return fmt.Errorf("old_max_tokens is for the protocol %s", openai.Name)
	case s.KeyFrom != "" && !variableName.MatchString(s.KeyFrom):
		return errors.New("key_from is the name of the environment variable that has the key, and never the key itself")
	}
	if u, err := url.Parse(s.Endpoint); s.Endpoint != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "") {
		return errors.New("endpoint needs to be like https://host/v1")
	} else if err == nil && u.User != nil {
		return errors.New("endpoint must hold no password; use headers_from")
	}
	for _, header := range slices.Sorted(maps.Keys(s.HeadersFrom)) {
		if !variableName.MatchString(s.HeadersFrom[header]) {
			return fmt.Errorf("headers_from: %s needs the name of the environment variable that has its value, and never the value itself", header)
		}
	}
	return nil
}

// hint says which name was meant, or else which there are.
func hint(name string, known []string) string {
	if near := jsonpos.Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "known: " + strings.Join(known, ", ")
}

// connect returns what a model of the service is made with.
func (s Service) connect(name string, env func(string) string) (connection, error) {
	p, _ := s.protocol(name) // it was validated
	c := connection{endpoint: s.Endpoint, api: s.API, oldMaxTokens: s.OldMaxTokens}
	if s.Endpoint != "" && s.API == "" && len(p.apis) > 0 {
		c.api = string(openai.ChatCompletions)
	}
	switch {
	case s.KeyFrom != "":
		if c.key = env(s.KeyFrom); c.key == "" {
			return c, fmt.Errorf("the key of %s is missing: set the environment variable %s, which key_from names", name, s.KeyFrom)
		}
	case s.Endpoint == "":
		for _, variable := range p.keys {
			c.key = cmp.Or(c.key, env(variable))
		}
	}
	for _, header := range slices.Sorted(maps.Keys(s.HeadersFrom)) {
		value := strings.TrimSpace(env(s.HeadersFrom[header]))
		if value == "" {
			return c, fmt.Errorf("the header %s of %s is missing: set the environment variable %s, which headers_from names", header, name, s.HeadersFrom[header])
		}
		if c.header == nil {
			c.header = http.Header{}
		}
		c.header.Set(header, value)
	}
	if c.endpoint == "" {
		c.endpoint = env(p.endpoint)
		if c.key == "" && c.endpoint == "" && len(c.header) == 0 {
			return c, fmt.Errorf("there is no key for %s: set the environment variable %s, or name an endpoint in %s or in the section providers", name, p.keys[0], p.endpoint)
		}
	}
	return c, nil
}
