package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ddd26017/fixpoint/engine"
)

// ErrOptions is the kind of every fault that Connect finds in its Options.
var ErrOptions = errors.New("mcp: invalid options")

// Options say which servers to connect to.
type Options struct {
	Servers []Server
	Limits  Limits
	// Schemas checks arguments against a tool's schema before the gates are asked. Nil
	// leaves that to the server. A *jsonschema.Checker of contrib/jsonschema is one.
	Schemas engine.SchemaChecker
	// Notify is told what happens to servers. It may be called concurrently and must
	// not block.
	Notify func(Notice)
	// Progress is told what servers say of calls under way, under the same terms.
	Progress func(Progress)
	// Logger gets notices as warnings, and what servers write to standard error line by
	// line for debugging. Nil logs nothing.
	Logger *slog.Logger
}

// Server is a server and how it is used: one of Command, URL and Dial says where it is.
type Server struct {
	// Name begins the names of its tools. It has up to 24 lower-case letters, digits,
	// "-" and single "_" inside.
	Name string

	// Command is a program that speaks the protocol on its standard input and output.
	Command string
	Args    []string
	// Env is added to the variables of DefaultEnv, which are all that it inherits.
	Env map[string]string
	Dir string

	// URL is where a server speaks streamable HTTP.
	URL string
	// Header is sent with every request to the URL's host, and to no other.
	Header http.Header
	// HTTPClient is used instead of one of the package's own; its redirect policy is not.
	HTTPClient *http.Client

	// Dial connects in another way. It is called again when the connection was lost.
	Dial func(ctx context.Context) (sdk.Transport, error)

	// Allow and Deny are patterns, as path.Match takes them, over the names that the
	// server gives its tools. No Allow means all.
	Allow, Deny []string
	// TrustHints lets what the server says of a tool decide its kind.
	TrustHints bool
	// Elicit lets the server ask the user, by tickets. The calls of such a server run one
	// after another if its protocol is of the kind that asks while a call runs.
	Elicit bool
	// Resources adds the tools list_resources and read_resource if the server has any.
	Resources bool
	// Media shows images and sounds of results to the model, as a message of the user.
	Media bool
	// Optional makes a server that cannot be reached a notice instead of an error.
	Optional bool
	// Timeout bounds a call, without the time that a question waits; 0 means 2 minutes.
	Timeout time.Duration
	// ConnectTimeout bounds start, handshake and listing; 0 means 30 seconds.
	ConnectTimeout time.Duration
}

// Limits bound what a server may use. A zero field means the default named with it; a
// negative one is an error.
type Limits struct {
	Tools       int           // tools of one server: 256
	Pages       int           // pages of one list: 64
	Description int           // bytes of a description: 4 KiB
	Schema      int           // bytes of a schema: 64 KiB
	Message     int           // bytes of one message of the protocol: 16 MiB
	Content     int           // bytes of a result's text: 64 KiB
	Details     int           // bytes of a result's structured content and media together: 1 MiB
	Parked      time.Duration // that a call waits for the answer to its server's question: 10 min
	Close       time.Duration // for a process to end after its input was closed: 2 s
}

func (l Limits) filled() Limits {
	return Limits{
		Tools: cmp.Or(l.Tools, 256), Pages: cmp.Or(l.Pages, 64), Description: cmp.Or(l.Description, 4<<10),
		Schema: cmp.Or(l.Schema, 64<<10), Message: cmp.Or(l.Message, 16<<20), Content: cmp.Or(l.Content, 64<<10),
		Details: cmp.Or(l.Details, 1<<20), Parked: cmp.Or(l.Parked, 10*time.Minute), Close: cmp.Or(l.Close, 2*time.Second),
	}
}

func (l Limits) validate() error {
	for _, n := range []int64{int64(l.Tools), int64(l.Pages), int64(l.Description), int64(l.Schema), int64(l.Message),
		int64(l.Content), int64(l.Details), int64(l.Parked), int64(l.Close)} {
		if n < 0 {
			return fmt.Errorf("%w: a limit is negative", ErrOptions)
		}
	}
	return nil
}

// NoticeKind says what a Notice is about.
type NoticeKind string

// The kinds.
const (
	ToolRefused    NoticeKind = "tool_refused"    // a tool of a list cannot be offered
	ListCut        NoticeKind = "list_cut"        // a list is longer than the limits
	ToolsChanged   NoticeKind = "tools_changed"   // the list is not what it was when the engine was built
	ServerEnded    NoticeKind = "server_ended"    // a connection was lost
	ServerBack     NoticeKind = "server_back"     // and is there again
	ServerMissing  NoticeKind = "server_missing"  // a connection could not be made
	RequestRefused NoticeKind = "request_refused" // the server wanted what it may not
)

// Notice tells of something that happened to a server outside of any result.
type Notice struct {
	Server string
	Kind   NoticeKind
	Text   string
}

// Progress is what a server says of a call under way. It may come just after the result.
type Progress struct {
	Server, Tool      string
	Thread, Run, Call string
	Done, Total       float64 // Total is 0 when it is not known
	Message           string
}

func (o *Options) notify(server string, kind NoticeKind, format string, args ...any) {
	n := Notice{Server: server, Kind: kind, Text: plain(fmt.Sprintf(format, args...), 1<<10)}
	if o.Logger != nil {
		o.Logger.Warn("mcp: "+n.Text, "server", server, "kind", kind)
	}
	if o.Notify != nil {
		o.Notify(n)
	}
}

// Validate returns what is wrong with the server's settings, or nil.
func (s Server) Validate() error {
	fault := func(format string, args ...any) error {
		return fmt.Errorf("%w: server %q: %s", ErrOptions, s.Name, fmt.Sprintf(format, args...))
	}
	ways := 0
	for _, set := range []bool{s.Command != "", s.URL != "", s.Dial != nil} {
		if set {
			ways++
		}
	}
	switch {
	case !serverName(s.Name):
		return fault("its name must have 1 to %d lower-case letters, digits, \"-\" and single \"_\" inside", maxServerName)
	case ways != 1:
		return fault("give it one of a command and a URL")
	case s.Command == "" && (len(s.Args) > 0 || len(s.Env) > 0 || s.Dir != ""):
		return fault("args, env and dir are for a command")
	case s.URL == "" && len(s.Header) > 0:
		return fault("headers are for a URL")
	case s.Timeout < 0 || s.ConnectTimeout < 0:
		return fault("a timeout is negative")
	}
	if s.URL != "" {
		u, err := url.Parse(s.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fault("its URL must begin with http:// or https:// and name a host")
		}
		if u.User != nil {
			return fault("its URL must not hold a password; use a header")
		}
	}
	for name := range s.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return fault("%q is no name of a variable", name)
		}
	}
	for _, pattern := range slices.Concat(s.Allow, s.Deny) {
		if _, err := path.Match(pattern, ""); err != nil {
			return fault("%q is no pattern as path.Match takes it", pattern)
		}
	}
	return nil
}

func (s Server) timeout() time.Duration { return cmp.Or(s.Timeout, 2*time.Minute) }

func (s Server) connectTimeout() time.Duration { return cmp.Or(s.ConnectTimeout, 30*time.Second) }

// permits reports whether the server's own tool may be offered at all.
func (s Server) permits(tool string) bool {
	return (len(s.Allow) == 0 || matches(s.Allow, tool)) && !matches(s.Deny, tool)
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, _ := path.Match(pattern, name) // malformed ones were refused
		return ok
	})
}
