package mcp

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ddd26017/fixpoint/engine"
)

// Settings is the content of the section.
type Settings struct {
	// Servers are those that the agent needs, by name, for FromSpecs.
	Servers map[string]ServerSettings `json:"servers"`
	// Use lists the servers whose tools the agent may use. Without it these are the ones
	// in Servers, or all if there are none.
	Use []string `json:"use"`
	// Allow and Deny are patterns, as path.Match takes them, over the names of tools of
	// this plugin. No Allow means all; Deny goes first.
	Allow []string `json:"allow"`
	Deny  []string `json:"deny"`
	// Context is added to a thread when its first run starts.
	Context []ContextItem `json:"context"`
}

// ContextItem is a resource or a prompt of a server.
type ContextItem struct {
	Server    string            `json:"server"`
	Resource  string            `json:"resource"` // its URI
	Prompt    string            `json:"prompt"`   // its name
	Arguments map[string]string `json:"arguments"`
}

// ServerSettings is a server in a spec. Secrets are never in it, only the names of
// environment variables that hold them.
type ServerSettings struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	// EnvFrom holds, by variable of the server, the variable of this process that has its
	// value.
	EnvFrom map[string]string `json:"env_from"`
	Dir     string            `json:"dir"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	// HeadersFrom holds, by header, the environment variable that has its value.
	HeadersFrom map[string]string `json:"headers_from"`
	Allow       []string          `json:"allow"`
	Deny        []string          `json:"deny"`
	TrustHints  bool              `json:"trust_hints"`
	Elicit      bool              `json:"elicit"`
	Resources   bool              `json:"resources"`
	Media       bool              `json:"media"`
	Optional    bool              `json:"optional"`
	Timeout     string            `json:"timeout"` // as time.ParseDuration reads it
}

// Section is the section that holds the settings.
var Section = engine.NewConfigKey(Name, engine.ConfigOptions[Settings]{Check: Settings.Validate})

// Validate returns what is wrong with the settings, or nil.
func (s Settings) Validate() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.Servers)) {
		_, err := s.Servers[name].server(name, func(string) (string, bool) { return "", true })
		errs = append(errs, err)
	}
	for _, pattern := range slices.Concat(s.Allow, s.Deny) {
		if _, err := path.Match(pattern, ""); err != nil {
			errs = append(errs, fmt.Errorf("mcp: %q is no pattern as path.Match takes it: %w", pattern, err))
		}
	}
	for i, c := range s.Context {
		if c.Server == "" || (c.Resource == "") == (c.Prompt == "") {
			errs = append(errs, fmt.Errorf("mcp: context[%d] needs a server and one of resource and prompt", i))
		}
	}
	return errors.Join(errs...)
}

// secretName matches variables and headers whose values are likely to be secrets.
var secretName = regexp.MustCompile(`(?i)(token|secret|passw(or)?d|passphrase|credentials?|api[-_]?key|access[-_]?key|private[-_]?key|authorization|cookie)$`)

// server turns the settings into a server, with secrets from lookup.
func (s ServerSettings) server(name string, lookup func(string) (string, bool)) (Server, error) {
	out := Server{
		Name: name, Command: s.Command, Args: slices.Clone(s.Args), Dir: s.Dir, URL: s.URL,
		Env: maps.Clone(s.Env), Allow: slices.Clone(s.Allow), Deny: slices.Clone(s.Deny),
		TrustHints: s.TrustHints, Elicit: s.Elicit, Resources: s.Resources, Media: s.Media, Optional: s.Optional,
	}
	fault := func(format string, args ...any) error {
		return fmt.Errorf("mcp: server %q: %s", name, fmt.Sprintf(format, args...))
	}
	if s.Timeout != "" {
		d, err := time.ParseDuration(s.Timeout)
		if err != nil || d <= 0 {
			return out, fault("timeout is %q; use a positive duration such as \"30s\"", s.Timeout)
		}
		out.Timeout = d
	}
	for _, key := range slices.Sorted(maps.Keys(s.Env)) {
		if secretName.MatchString(key) {
			return out, fault("env holds %s, which looks like a secret; name the variable that has it in env_from", key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.EnvFrom)) {
		value, ok := lookup(s.EnvFrom[key])
		if !ok {
			return out, fault("env_from: the environment variable %s is not set", s.EnvFrom[key])
		}
		if out.Env == nil {
			out.Env = map[string]string{}
		}
		out.Env[key] = value
	}
	for _, key := range slices.Sorted(maps.Keys(s.Headers)) {
		if secretName.MatchString(key) {
			return out, fault("headers hold %s, which looks like a secret; name the variable that has it in headers_from", key)
		}
		out.setHeader(key, s.Headers[key])
	}
	for _, key := range slices.Sorted(maps.Keys(s.HeadersFrom)) {
		value, ok := lookup(s.HeadersFrom[key])
		if !ok {
			return out, fault("headers_from: the environment variable %s is not set", s.HeadersFrom[key])
		}
		out.setHeader(key, strings.TrimSpace(value))
	}
	return out, out.Validate()
}

func (s *Server) setHeader(name, value string) {
	if s.Header == nil {
		s.Header = http.Header{}
	}
	s.Header.Set(name, value)
}

// FromSpecs returns the servers that the specs name in their sections, by name, with
// secrets that lookup has: os.LookupEnv, usually. Two specs may name the same server if
// they say the same of it.
//
// A spec with a command is a program that somebody else wrote, and it runs with all the
// rights of this one: whether a spec is trusted so far is for the caller to decide.
func FromSpecs(lookup func(name string) (string, bool), specs ...engine.AgentSpec) ([]Server, error) {
	all := map[string]ServerSettings{}
	var errs []error
	for _, spec := range specs {
		settings, err := Section.From(spec)
		errs = append(errs, err)
		for name, s := range settings.Servers {
			if other, ok := all[name]; ok && !reflect.DeepEqual(other, s) {
				errs = append(errs, fmt.Errorf("mcp: agents say different things of the server %q", name))
			}
			all[name] = s
		}
	}
	var servers []Server
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s, err := all[name].server(name, lookup)
		errs = append(errs, err)
		servers = append(servers, s)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return servers, nil
}

// uses reports whether the agent may use tools of the server.
func (s Settings) uses(server string) bool {
	if len(s.Use) > 0 {
		return slices.Contains(s.Use, server)
	}
	_, ok := s.Servers[server]
	return ok || len(s.Servers) == 0
}

// permits reports whether the agent may use the tool.
func (s Settings) permits(server, tool string) bool {
	return s.uses(server) && (len(s.Allow) == 0 || matches(s.Allow, tool)) && !matches(s.Deny, tool)
}
