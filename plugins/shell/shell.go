package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Name is the plugin's name, Tool that of its tool.
const (
	Name = "shell"
	Tool = "shell"
)

// ErrOptions is the kind of a fault of Options.
var ErrOptions = errors.New("shell: invalid options")

// Options adjust the plugin. The zero value is useful.
type Options struct {
	// Cwd is the key that holds the working directory of a thread, a path with slashes
	// that begins at the plugin's directory: the Dir of plugins/cwd. With the zero key
	// every line begins in the plugin's directory.
	Cwd state.Cell[string]
	// Env names the variables of this process that lines get. Nil means DefaultEnv.
	Env []string
	// Set adds variables, each as "NAME=value"; they win over Env.
	Set []string
	// Timeout is for lines whose call names none, MaxTimeout bounds what a call may
	// name. Zero means 2 minutes and 10 minutes, or Timeout if that is longer.
	Timeout, MaxTimeout time.Duration
	// OutputBytes is how much of a line's output is kept, half of it from the beginning
	// and half from the end. Zero means 32 KiB.
	OutputBytes int
}

// DefaultEnv returns the names that a nil Options.Env stands for.
func DefaultEnv() []string {
	return []string{"HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER"}
}

// New returns the plugin for a directory, which must exist. It holds nothing open and
// is safe for concurrent use. It fails if there is no sh.
func New(dir string, o Options) (engine.Plugin, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	root, err := filepath.Abs(dir)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return nil, fmt.Errorf("shell: cannot use the directory: %w", err)
	}
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("shell: %s is no directory", dir)
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		return nil, fmt.Errorf("shell: cannot find the shell: %w", err)
	}
	return plugin{root: root, sh: sh, opts: o}, nil
}

func (o Options) withDefaults() (Options, error) {
	if o.Timeout < 0 || o.MaxTimeout < 0 || o.OutputBytes < 0 {
		return o, fmt.Errorf("%w: a negative limit; leave it at 0 for the default", ErrOptions)
	}
	for _, v := range o.Set {
		if name, _, ok := strings.Cut(v, "="); !ok || name == "" || strings.ContainsRune(v, 0) {
			return o, fmt.Errorf("%w: Set has %q; want NAME=value", ErrOptions, v)
		}
	}
	if o.Env == nil {
		o.Env = DefaultEnv()
	}
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Minute
		if o.MaxTimeout != 0 {
			o.Timeout = min(o.Timeout, o.MaxTimeout)
		}
	}
	if o.MaxTimeout == 0 {
		o.MaxTimeout = max(o.Timeout, 10*time.Minute)
	}
	if o.MaxTimeout < o.Timeout {
		return o, fmt.Errorf("%w: Timeout is %s, more than MaxTimeout, which is %s", ErrOptions, o.Timeout, o.MaxTimeout)
	}
	if o.OutputBytes == 0 {
		o.OutputBytes = 32 << 10
	}
	return o, nil
}

type plugin struct {
	root string // absolute, without symbolic links
	sh   string
	opts Options
}

func (p plugin) Name() string { return Name }

func (p plugin) Register(r *engine.Registrar) error {
	r.Tool(engine.NewTool(inference.ToolSpec{Name: Tool, Kind: "exec", Schema: schema, Description: fmt.Sprintf(
		"Run a command line with sh. It is stopped after %s unless timeout_seconds says otherwise, which may be up to %d.",
		p.opts.Timeout, p.most())}, p.call))
	return nil
}

const schema inference.JSON = `{"type":"object","properties":{` +
	`"command":{"type":"string"},` +
	`"timeout_seconds":{"type":"integer","description":"when to stop it; default: as the tool says"}},"required":["command"],"additionalProperties":false}`

type args struct {
	Command        string `json:"command"`
	TimeoutSeconds int64  `json:"timeout_seconds"`
}

// Done is the data of a result; the content has the output.
type Done struct {
	Dir      string `json:"dir"`             // where the line began, from the plugin's directory on
	Moved    string `json:"moved,omitempty"` // where it ended, if that is elsewhere below the plugin's directory
	ExitCode int    `json:"exit_code"`       // -1 when it was killed
	TimedOut bool   `json:"timed_out,omitzero"`
	Bytes    int64  `json:"bytes"`        // of output in all
	Cut      int64  `json:"cut,omitzero"` // of these, left out of the content
}

func (p plugin) call(ctx context.Context, pc *phase.Context, in args) (engine.Output, error) {
	if strings.TrimSpace(in.Command) == "" || strings.ContainsRune(in.Command, 0) {
		return engine.Output{}, errors.New("shell: command must be a command line")
	}
	limit, err := p.limit(in.TimeoutSeconds)
	if err != nil {
		return engine.Output{}, err
	}
	moves := pc.Snapshot().Has(p.opts.Cwd)
	dir := "."
	if moves {
		dir = p.opts.Cwd.Get(pc.Snapshot())
	}
	at, err := p.enter(dir)
	if err != nil {
		return engine.Output{}, err
	}
	l := line{sh: p.sh, text: in.Command, dir: at, env: p.env(), keep: p.opts.OutputBytes, report: moves}
	o, err := l.run(ctx, limit)
	if err != nil {
		return engine.Output{}, err
	}
	return p.result(dir, limit, o)
}

// limit returns how long a line may take.
func (p plugin) limit(seconds int64) (time.Duration, error) {
	switch {
	case seconds == 0:
		return p.opts.Timeout, nil
	case seconds < 0 || seconds > p.most():
		return 0, fmt.Errorf("shell: timeout_seconds is %d; want 1 to %d", seconds, p.most())
	default:
		return min(time.Duration(seconds)*time.Second, p.opts.MaxTimeout), nil
	}
}

// most returns MaxTimeout in whole seconds, rounded up.
func (p plugin) most() int64 { return int64((p.opts.MaxTimeout + time.Second - 1) / time.Second) }

// env returns the environment of a line.
func (p plugin) env() []string {
	env := make([]string, 0, len(p.opts.Env)+len(p.opts.Set))
	for _, name := range p.opts.Env {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return append(env, p.opts.Set...)
}

// result tells what became of a line.
func (p plugin) result(dir string, limit time.Duration, o outcome) (out engine.Output, err error) {
	text, cut := o.output.text()
	done := Done{Dir: dir, ExitCode: o.code, TimedOut: o.killed, Bytes: o.output.total, Cut: cut}
	var notes []string
	switch {
	case o.killed:
		done.ExitCode = -1
		notes = append(notes, fmt.Sprintf("[stopped after %s]", limit))
	case o.code < 0:
		notes = append(notes, fmt.Sprintf("[ended by %s]", o.how))
	case o.code > 0:
		notes = append(notes, fmt.Sprintf("[exit code %d]", o.code))
	}
	if o.place != "" {
		switch to, inside := p.below(o.place); {
		case !inside:
			notes = append(notes, fmt.Sprintf("[it ended outside of the root; the working directory is still %s]", dir))
		case to != dir:
			done.Moved = to
			out.Command.Update(p.opts.Cwd.With(to))
		}
	}
	switch {
	case text == "" && len(notes) == 0:
		notes = append(notes, "[no output]")
	case text != "" && len(notes) > 0 && !strings.HasSuffix(text, "\n"):
		text += "\n"
	}
	out.Content, out.IsError = text+strings.Join(notes, "\n"), done.ExitCode != 0
	out.Details, err = inference.ToJSON(done)
	return out, err
}
