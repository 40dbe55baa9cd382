package exechook

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxTimeout is the longest that a command may be given.
const maxTimeout = 24 * time.Hour

// ErrSettings is the kind of *SettingsError.
var ErrSettings = errors.New("exechook: invalid settings")

// SettingsError is a mistake in a settings file, and where. It matches ErrSettings.
type SettingsError struct {
	File         string // as given to Load or Parse; "" for a rule made in Go
	Line, Column int    // from 1, columns in characters; 0 when unknown
	Msg          string
}

func (e *SettingsError) Error() string {
	return "exechook: " + place(e.File, e.Line, e.Column) + ": " + e.Msg
}

// Is reports whether target is ErrSettings.
func (e *SettingsError) Is(target error) bool { return target == ErrSettings }

func place(file string, line, column int) string {
	file = cmp.Or(file, "settings")
	switch {
	case line == 0:
		return file
	case column == 0:
		return fmt.Sprintf("%s:%d", file, line)
	}
	return fmt.Sprintf("%s:%d:%d", file, line, column)
}

// Rule is one command and when to run it.
type Rule struct {
	Event   Event
	Matcher string // "" and "*" match everything; see the package comment
	// Command is run by the shell or, when Args is not nil, is a program that is run
	// with these arguments and no shell.
	Command string
	Args    []string
	Shell   string        // "" for Options.Shell, or the name of a shell that takes -c, such as "bash"
	Timeout time.Duration // 0 for Options.Timeout
	// FailOpen says what a command that failed to decide means, at PreToolUse,
	// UserPromptSubmit and PreCompact: nothing, or a no. Nil is a no at PreToolUse and
	// nothing at the others.
	FailOpen *bool
	// Async makes the command decide nothing: it is run, and that it failed is told.
	Async bool

	File string // where the rule is from, for messages; may be empty
	Line int
}

// failsOpen reports whether a failure of the command counts as no opinion.
func (r Rule) failsOpen() bool {
	if r.FailOpen != nil {
		return *r.FailOpen
	}
	return r.Event != PreToolUse
}

// lenient reports whether nothing that goes wrong with the command blocks anything.
func (r Rule) lenient() bool { return r.Async || r.failsOpen() }

// Validate returns what is wrong with the rule, or nil.
func (r Rule) Validate() error {
	bad := func(format string, args ...any) error {
		return &SettingsError{File: r.File, Line: r.Line, Msg: fmt.Sprintf(format, args...)}
	}
	t := events[r.Event]
	switch {
	case !t.fires:
		return bad("%q is no event that is fired; use one of %s", r.Event, eventNames())
	case strings.TrimSpace(r.Command) == "":
		return bad("a hook of %s has no command", r.Event)
	case strings.ContainsRune(r.Command+strings.Join(r.Args, ""), 0):
		return bad("the command has a NUL character")
	case r.Timeout < 0 || r.Timeout > maxTimeout:
		return bad("the timeout is %v; want more than 0 and at most %v", r.Timeout, maxTimeout)
	case r.FailOpen != nil && !t.decides:
		return bad("fail_open has no meaning at %s, where a failure never blocks", r.Event)
	case r.Args != nil && r.Shell != "":
		return bad("a command with args is run without a shell; leave shell out")
	case strings.ContainsAny(r.Shell, " \t\n"):
		return bad("the shell is %q; want the name of one program", r.Shell)
	}
	if _, err := newMatcher(r.Matcher); err != nil {
		return bad("%v", err)
	}
	return nil
}

// Settings are rules in the order in which they count.
type Settings struct {
	Rules []Rule
	// Warnings say what of a file has no effect, each with its place. The plugin
	// repeats them in every run.
	Warnings []string
}

// Validate returns what is wrong with the rules, all of it, or nil.
func (s Settings) Validate() error {
	var errs []error
	for _, r := range s.Rules {
		errs = append(errs, r.Validate())
	}
	return errors.Join(errs...)
}

// Merge returns the rules of several settings, such as those of a user, of a project
// and of the user for the project, one after the other.
func Merge(list ...Settings) (all Settings) {
	for _, s := range list {
		all.Rules = append(all.Rules, s.Rules...)
		all.Warnings = append(all.Warnings, s.Warnings...)
	}
	return all
}

// Load reads settings files and merges them in the order given. A file that is not
// there is an error that matches fs.ErrNotExist. The files say which programs run:
// load only what may do that.
func Load(paths ...string) (all Settings, err error) {
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return Settings{}, fmt.Errorf("exechook: %w", err)
		}
		s, err := Parse(path, data)
		if err != nil {
			return Settings{}, err
		}
		all = Merge(all, s)
	}
	return all, nil
}

// Parse reads the "hooks" of a settings file; what else is in the file is not looked
// at, but for "disableAllHooks". The name of the file is for messages only. It is
// strict: each mistake is a *SettingsError, all joined, and the settings are then
// zero.
func Parse(file string, data []byte) (Settings, error) {
	p := parser{source: source{file, data}}
	top, err := p.read()
	if err != nil {
		return Settings{}, err
	}
	if top.kind != "an object" {
		return Settings{}, p.errorf(top.offset, "the settings are %s; want an object", top.kind)
	}
	hooks, ok := top.get("hooks")
	if !ok {
		return Settings{}, nil
	}
	off, _ := top.get("disableAllHooks")
	if off.kind != "" && off.kind != "a bool" {
		p.fault(off.offset, "disableAllHooks is %s; want true or false", off.kind)
	}
	p.hooks(hooks)
	if len(p.errs) > 0 {
		return Settings{}, errors.Join(p.errs...)
	}
	if off.text == "true" && len(p.out.Rules) > 0 {
		p.warn(off.offset, "disableAllHooks switches off the hooks of this file, and of no other")
		p.out.Rules = nil
	}
	return p.out, nil
}

type parser struct {
	source
	out  Settings
	errs []error
}

func (p *parser) fault(offset int, format string, args ...any) {
	p.errs = append(p.errs, p.errorf(offset, format, args...))
}

func (p *parser) warn(offset int, format string, args ...any) {
	e := p.errorf(offset, format, args...)
	p.out.Warnings = append(p.out.Warnings, place(e.File, e.Line, e.Column)+": "+e.Msg)
}

// want reports whether n is of that kind, and says so when it is not.
func (p *parser) want(n node, kind, what string) bool {
	if n.kind != kind {
		p.fault(n.offset, "%s is %s; want %s", what, n.kind, kind)
	}
	return n.kind == kind
}

func (p *parser) hooks(n node) {
	if !p.want(n, "an object", "hooks") {
		return
	}
	for _, m := range n.members {
		t, known := events[Event(m.name)]
		switch {
		case !known:
			hint := ""
			for e := range events {
				if strings.EqualFold(string(e), m.name) {
					hint = fmt.Sprintf("; did you mean %s?", e)
				}
			}
			p.fault(m.offset, "there is no event %q%s; use one of %s", m.name, hint, eventNames())
		case !t.fires:
			p.warn(m.offset, "%s is never fired here: its hooks do not run", m.name)
		case p.want(m.value, "a list", m.name):
			for _, g := range m.value.items {
				p.group(Event(m.name), g)
			}
		}
	}
}

// group reads a matcher and the hooks behind it.
func (p *parser) group(e Event, n node) {
	if !p.want(n, "an object", "an entry of "+string(e)) {
		return
	}
	var pattern string
	var list node
	for _, m := range n.members {
		switch m.name {
		case "matcher":
			if p.want(m.value, "a string", "matcher") && p.matcher(e, m.value) {
				pattern = m.value.text
			}
		case "hooks":
			list = m.value
		case "description", "name", "id": // for people
		default:
			p.fault(m.offset, "an entry of %s has no member %q; use matcher and hooks", e, m.name)
		}
	}
	if list.kind == "" {
		p.fault(n.offset, "an entry of %s has no hooks", e)
		return
	}
	if p.want(list, "a list", "hooks") {
		for _, h := range list.items {
			p.hook(Rule{Event: e, Matcher: pattern, File: p.file}, h)
		}
	}
}

// matcher looks at a matcher and reports whether it is one.
func (p *parser) matcher(e Event, n node) bool {
	m, err := newMatcher(n.text)
	switch {
	case err != nil:
		p.fault(n.offset, "%v", err)
	case !events[e].matches && !m.all:
		p.warn(n.offset, "%s has nothing to match: the matcher %q is not looked at", e, n.text)
	case events[e].values != nil && !m.fits(events[e].values...):
		p.warn(n.offset, "the matcher %q of %s fits nothing that there is here: %s", n.text, e, strings.Join(events[e].values, ", "))
	case m.lonelyServer() != "":
		p.warn(n.offset, "%q names a server and no tool; for all of its tools write %q", m.lonelyServer(), m.lonelyServer()+"__.*")
	}
	return err == nil
}

// hook reads one command.
func (p *parser) hook(r Rule, n node) {
	if !p.want(n, "an object", "a hook of "+string(r.Event)) {
		return
	}
	found := len(p.errs)
	r.Line, _ = p.place(n.offset)
	typed := false
	for _, m := range n.members {
		v := m.value
		switch m.name {
		case "type":
			typed = true
			if p.want(v, "a string", m.name) && v.text != "command" {
				p.fault(v.offset, "hooks of type %q are not supported; only \"command\" is", v.text)
			}
		case "command":
			if p.want(v, "a string", m.name) {
				r.Command = v.text
			}
		case "args":
			if p.want(v, "a list", m.name) {
				r.Args = []string{}
				for _, a := range v.items {
					if p.want(a, "a string", "an argument") {
						r.Args = append(r.Args, a.text)
					}
				}
			}
		case "shell":
			if p.want(v, "a string", m.name) {
				r.Shell = v.text
			}
		case "timeout":
			if p.want(v, "a number", m.name) {
				r.Timeout = p.seconds(v)
			}
		case "fail_open":
			if p.want(v, "a bool", m.name) {
				open := v.text == "true"
				r.FailOpen = &open
			}
		case "async":
			if p.want(v, "a bool", m.name) && v.text == "true" {
				r.Async = true
				p.warn(m.offset, "an async hook is waited for like any other; what it says decides nothing")
			}
		case "once":
			if p.want(v, "a bool", m.name) && v.text == "true" {
				p.warn(m.offset, "once is not supported: the command runs every time")
			}
		case "statusMessage", "description", "name", "id": // for people
		case "if":
			// Without it the command would run for calls that it is not about, and may block them.
			p.fault(m.offset, "if is not supported; let the command look at tool_input")
		default:
			p.fault(m.offset, "a hook has no member %q; use type, command, args, shell, timeout, async and fail_open", m.name)
		}
	}
	if !typed {
		p.fault(n.offset, "a hook of %s has no type; want \"type\": \"command\"", r.Event)
	}
	if len(p.errs) > found {
		return
	}
	if err := r.Validate(); err != nil {
		var e *SettingsError
		if errors.As(err, &e) {
			p.fault(n.offset, "%s", e.Msg)
		}
		return
	}
	p.out.Rules = append(p.out.Rules, r)
}

// seconds reads a timeout.
func (p *parser) seconds(n node) time.Duration {
	s, err := strconv.ParseFloat(n.text, 64)
	if err != nil || !(s > 0) || s > maxTimeout.Seconds() {
		p.fault(n.offset, "the timeout is %s; want seconds, more than 0 and at most %v", n.text, maxTimeout.Seconds())
		return 0
	}
	return max(time.Duration(s*float64(time.Second)), 1)
}

// once returns the rules without those whose command another one runs already. Of
// those that are the same, the first stands for all, and is as strict as the
// strictest of them.
func once(rules []Rule) (out []Rule) {
	for _, r := range rules {
		i := slices.IndexFunc(out, func(o Rule) bool {
			return o.Command == r.Command && o.Shell == r.Shell && (o.Args == nil) == (r.Args == nil) && slices.Equal(o.Args, r.Args)
		})
		if i < 0 {
			out = append(out, r)
			continue
		}
		o := &out[i]
		open := o.lenient() && r.lenient()
		o.FailOpen, o.Async = &open, o.Async && r.Async
	}
	return out
}
