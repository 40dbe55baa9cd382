package exechook

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/compact"
	"github.com/ddd26017/fixpoint/state"
)

// Name is the plugin's name.
const Name = "exechook"

// Options say what a program lets hook programs do. Only Settings is needed.
type Options struct {
	Settings Settings
	// Tools are the names under which programs know tools and arguments, by the tool's
	// own name. Nil means DefaultTools; tools that are not in it keep their names.
	Tools map[string]ToolName
	// Dir is the working directory of the programs, "" for that of this process.
	Dir string
	// ProjectDir is what CLAUDE_PROJECT_DIR is set to, "" for the working directory.
	ProjectDir string
	// PassEnv names variables of this process that programs get besides DefaultEnv;
	// "*" means all.
	PassEnv []string
	// Env sets variables for the programs.
	Env map[string]string
	// Shell runs commands, which come as its last argument. Nil means sh -c, and
	// cmd /C on Windows.
	Shell []string
	// Timeout is for commands without one of their own. 0 means a minute.
	Timeout time.Duration
	// MaxOutput is how many bytes of each output of a program count. 0 means 64 KiB.
	MaxOutput int
	// Parallel is how many programs run at the same time, over all runs. 0 means 8.
	Parallel int
	// Compacts says that the engine has plugin compact, whose compactions the rules of
	// PreCompact are about. Without it they are a warning.
	Compacts bool
	// PermissionMode is what programs are told under that name. "" means "default".
	PermissionMode string
	// TranscriptPath returns where programs find a thread's conversation. Nil tells
	// them an empty path.
	TranscriptPath func(thread string) string
	// Unattended answers the question of a program that said "ask" when nobody can be
	// asked. The zero one waits.
	Unattended gate.Default
	// Notify gets what is for people. It may be called by several goroutines at once
	// and must not be slow. Without it a failure becomes that of the effect that
	// carries it, so that it is in the events and the log, and the rest is dropped.
	Notify func(context.Context, Notice)
}

// DefaultEnv returns the names of the variables that programs inherit if they are set,
// besides those that begin with LC_. The slice is the caller's.
func DefaultEnv() []string {
	return []string{"COMSPEC", "HOME", "LANG", "LOGNAME", "PATH", "PATHEXT", "SHELL", "SYSTEMROOT", "TEMP", "TERM", "TMP",
		"TMPDIR", "TZ", "USER", "USERNAME", "USERPROFILE"}
}

// NoticeKind says what a notice tells.
type NoticeKind string

// The kinds of notices.
const (
	MessageNotice  NoticeKind = "message"  // a program has something to tell
	FailureNotice  NoticeKind = "failure"  // a program failed to decide
	ConflictNotice NoticeKind = "conflict" // programs disagreed, and their order decided
)

// Notice is something for people to know.
type Notice struct {
	Kind    NoticeKind `json:"kind"`
	Event   Event      `json:"event"`
	Command string     `json:"command"`
	Place   string     `json:"place"` // of the rule
	Cause   Cause      `json:"cause,omitzero"`
	Text    string     `json:"text"`
	Thread  string     `json:"thread"`
	Run     string     `json:"run"`
	Call    string     `json:"call,omitzero"`
}

// Told carries notices to Options.Notify.
var Told = effects.NewSpec[Notice]("exechook.told")

// Plugin runs hook programs. It is made by New and is safe for concurrent use by any
// number of engines and runs.
type Plugin struct {
	o      Options
	rules  map[Event][]rule
	env    map[string]string
	slots  chan struct{}
	memo   memo
	asks   atomic.Bool // Resolver was called
	faulty error
}

type rule struct {
	Rule
	matcher matcher
}

var _ engine.Plugin = (*Plugin)(nil)

// New returns the plugin. What is wrong with the options is reported by engine.New.
func New(o Options) *Plugin {
	o.Timeout, o.MaxOutput, o.Parallel = cmp.Or(o.Timeout, time.Minute), cmp.Or(o.MaxOutput, 64<<10), cmp.Or(o.Parallel, 8)
	o.PermissionMode = cmp.Or(o.PermissionMode, "default")
	if o.Tools == nil {
		o.Tools = DefaultTools()
	}
	if o.Shell == nil {
		o.Shell = []string{"sh", "-c"}
		if runtime.GOOS == "windows" {
			o.Shell = []string{"cmd", "/C"}
		}
	}
	p := &Plugin{o: o, rules: map[Event][]rule{}, faulty: o.validate()}
	if p.faulty != nil {
		return p
	}
	for _, r := range o.Settings.Rules {
		m, err := newMatcher(r.Matcher)
		if p.faulty = err; err != nil {
			return p
		}
		r.Args = slices.Clone(r.Args)
		p.rules[r.Event] = append(p.rules[r.Event], rule{r, m})
	}
	p.slots = make(chan struct{}, o.Parallel)
	if p.o.Dir == "" {
		p.o.Dir, p.faulty = os.Getwd()
	}
	p.env = p.environment()
	return p
}

func (o Options) validate() error {
	errs := []error{o.Settings.Validate()}
	if o.Timeout < 0 || o.MaxOutput < 0 || o.Parallel < 0 {
		errs = append(errs, errors.New("exechook: Timeout, MaxOutput and Parallel must not be negative"))
	}
	if len(o.Shell) == 0 {
		errs = append(errs, errors.New("exechook: Shell is empty; leave it nil for the default"))
	}
	for _, tool := range slices.Sorted(maps.Keys(o.Tools)) {
		errs = append(errs, o.Tools[tool].validate(tool))
	}
	return errors.Join(errs...)
}

// environment returns what programs get to see, as it is when the plugin is made.
func (p *Plugin) environment() map[string]string {
	env := map[string]string{}
	pass := append(DefaultEnv(), p.o.PassEnv...)
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		if name != "" && (slices.Contains(pass, name) || slices.Contains(pass, "*") || strings.HasPrefix(name, "LC_")) {
			env[name] = value
		}
	}
	env["CLAUDE_PROJECT_DIR"] = cmp.Or(p.o.ProjectDir, p.o.Dir)
	maps.Copy(env, p.o.Env)
	return env
}

// Name returns the plugin's name.
func (p *Plugin) Name() string { return Name }

// Register registers what the rules need.
func (p *Plugin) Register(r *engine.Registrar) error {
	if p.faulty != nil {
		return p.faulty
	}
	r.Key(Sessions, StopBlocks)
	r.Effect(Told.Handle(p.tell))
	r.Action(atRunStart.Handle(p.fire), afterTool.Handle(p.fire), atStepEnd.Handle(p.fire), atRunEnd.Handle(p.fire))
	gates := p.has(PreToolUse, PermissionRequest, Notification)
	if gates {
		r.Gate(gate.Func(p.check))
	}
	if p.has(SessionStart, SubagentStart, UserPromptSubmit) {
		r.Hook(phase.RunStart, phase.HookFunc(p.runStart), engine.Writes(Sessions))
	}
	if p.has(PreCompact) && p.o.Compacts {
		r.ActionGate(gate.OnAction(compact.Compact, p.preCompact))
	}
	if len(p.o.Settings.Warnings) > 0 || p.has(PermissionRequest, Notification, PreCompact) {
		r.Hook(phase.RunStart, phase.HookFunc(p.warn), engine.Writes(), engine.OnError(engine.Skip))
	}
	if gates || p.has(PostToolUse, PostToolUseFailure) {
		r.Hook(phase.AfterToolExecute, phase.HookFunc(p.toolDone), engine.Writes())
	}
	if gates || p.has(Stop, SubagentStop, PreCompact) {
		r.Hook(phase.StepEnd, phase.HookFunc(p.stepEnd), engine.Writes())
	}
	if gates || p.has(SessionEnd, PreCompact) {
		r.Hook(phase.RunEnd, phase.HookFunc(p.runEnd), engine.Writes())
	}
	return nil
}

// has reports whether there is a rule for one of the events.
func (p *Plugin) has(list ...Event) bool {
	return slices.ContainsFunc(list, func(e Event) bool { return len(p.rules[e]) > 0 })
}

// match returns the rules of an event that are about a thing of one of these names,
// each command once.
func (p *Plugin) match(e Event, names ...string) []Rule {
	var found []Rule
	for _, r := range p.rules[e] {
		if r.matcher.fits(names...) {
			found = append(found, r.Rule)
		}
	}
	return once(found)
}

// outcome is what came of one rule's program: a reply or a failure.
type outcome struct {
	Rule
	reply   Reply
	failure *ProgramError
}

// runAll runs the programs of all rules at the same time and returns what came of
// them in the order of the rules.
func (p *Plugin) runAll(ctx context.Context, rules []Rule, stdin []byte) []outcome {
	out := make([]outcome, len(rules))
	var running sync.WaitGroup
	for i, r := range rules {
		running.Go(func() { out[i] = p.runOne(ctx, r, stdin) })
	}
	running.Wait()
	return out
}

// runOne runs the program of a rule and reads what it said.
func (p *Plugin) runOne(ctx context.Context, r Rule, stdin []byte) outcome {
	out := outcome{Rule: r}
	failed := func(c Cause, detail, stderr string) outcome {
		out.failure = &ProgramError{Event: r.Event, Command: r.Command, Place: r.place(), Cause: c, Detail: detail, Stderr: stderr}
		return out
	}
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return failed(Cancelled, context.Cause(ctx).Error(), "")
	}
	l := launch{dir: p.o.Dir, stdin: stdin, limit: p.o.MaxOutput, timeout: cmp.Or(r.Timeout, p.o.Timeout)}
	for _, name := range slices.Sorted(maps.Keys(p.env)) {
		l.env = append(l.env, name+"="+p.env[name])
	}
	var shell string
	var s script // looked for before the program can do anything about it
	switch {
	case r.Args != nil:
		l.argv = append([]string{r.Command}, r.Args...)
		s = findScript(l.argv, p.o.Dir)
	case r.Shell != "":
		l.argv, shell = []string{r.Shell, "-c", r.Command}, r.Shell
	default:
		l.argv, shell = append(slices.Clone(p.o.Shell), r.Command), p.o.Shell[0]
	}
	if r.Args == nil {
		s = findIn(r.Command, p.env, p.o.Dir)
	}
	e := l.run(ctx)
	stderr := e.stderr.text()
	if e.cause == "" && e.code == 2 {
		cause, detail, parse := s.blame(l, shell, stderr)
		if parse == nil || l.with(parse).refuses(ctx) {
			e.cause, e.detail = cause, detail
		}
	}
	switch {
	case e.cause != "":
		return failed(e.cause, e.detail, stderr)
	case e.code == 2:
		out.reply = Reply{Opinion: Deny, Reason: stderr}
	case e.stdout.cut() && (len(bytes.TrimSpace(e.stdout.kept)) == 0 || bytes.TrimSpace(e.stdout.kept)[0] == '{'):
		return failed(BadOutput, fmt.Sprintf("the output has %d bytes, of which %d count", e.stdout.total, p.o.MaxOutput), stderr)
	case e.stdout.cut():
		out.reply, _ = ParseReply(r.Event, []byte(e.stdout.text()))
	default:
		reply, err := ParseReply(r.Event, e.stdout.kept)
		if err != nil {
			return failed(BadOutput, err.Error(), stderr)
		}
		out.reply = reply
	}
	return out
}

func (r Rule) place() string { return place(r.File, r.Line, 0) }

// says returns the reason that a program gave for its no, or words that stand for it.
func (o outcome) says() string {
	return cmp.Or(o.reply.Reason, fmt.Sprintf("the %s hook %q (%s) said no and gave no reason", o.Event, o.Command, o.place()))
}

func (o outcome) notice(kind NoticeKind, text string) Notice {
	n := Notice{Kind: kind, Event: o.Event, Command: o.Command, Place: o.place(), Text: text}
	if o.failure != nil {
		n.Cause = o.failure.Cause
	}
	return n
}

// tell is the handler of Told.
func (p *Plugin) tell(ctx context.Context, _ *state.Snapshot, n Notice) error {
	if p.o.Notify != nil {
		p.o.Notify(ctx, n)
		return nil
	}
	if n.Kind == FailureNotice {
		return errors.New(n.Text)
	}
	return nil
}
