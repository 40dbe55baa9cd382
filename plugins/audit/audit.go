package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Name is the plugin's name.
const Name = "audit"

// DefaultPath is the file when the spec names none.
const DefaultPath = "audit.jsonl"

// Settings is the content of the section.
type Settings struct {
	// Path is the file, with slashes, below Options.Dir. Its folders are made as
	// needed.
	Path string `json:"path"`
}

// Section is the section that names the file.
var Section = engine.NewConfigKey(Name, engine.ConfigOptions[Settings]{Check: Settings.Validate})

// Validate returns what is wrong with the settings, or nil.
func (s Settings) Validate() error {
	if s.Path != "" && (!fs.ValidPath(s.Path) || s.Path == ".") {
		return fmt.Errorf("audit: path is %q; use the name of a file below the audit directory, with slashes", s.Path)
	}
	return nil
}

// file is the path that the active agent's spec names, for the effect's handler,
// which does not see the spec.
var file = state.NewCell("audit.path", state.Options[string]{})

// Options adjust a Plugin.
type Options struct {
	// Dir is the directory that files are written below; "" means the current one.
	// It must exist when the first entry is written.
	Dir string
	// DirOf finds the directory for an entry by the state of its thread, for an engine
	// whose threads work in several; "" or a nil DirOf means Dir. It must be safe for
	// concurrent use.
	DirOf func(*state.Snapshot) string
	// Sync has each entry on the disk before it counts as delivered.
	Sync bool
	// Now is the clock of the entries; nil means time.Now.
	Now func() time.Time
}

// Plugin writes audit files. It opens each when the first entry for it comes and
// appends to it. It is safe for concurrent use, also by several engines.
type Plugin struct {
	opts Options

	mu     sync.Mutex
	closed bool
	roots  map[string]*os.Root // by directory
	files  map[place]*os.File
}

// place is a file: a directory, and a name below it.
type place struct{ dir, name string }

// New returns the plugin.
func New(o Options) *Plugin {
	o.Dir = cmp.Or(o.Dir, ".")
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Plugin{opts: o, roots: map[string]*os.Root{}, files: map[place]*os.File{}}
}

// Name returns "audit".
func (p *Plugin) Name() string { return Name }

// Register registers the hooks and the handler of Record.
func (p *Plugin) Register(r *engine.Registrar) error {
	r.Key(file)
	r.Section(Section)
	r.Effect(Record.Handle(p.write))
	// What was done is audited even if the audit itself goes wrong.
	r.Hook(phase.AfterToolExecute, phase.HookFunc(toolEnded), engine.Writes(), engine.OnError(engine.Skip))
	r.Hook(phase.RunEnd, phase.HookFunc(runEnded), engine.Writes(), engine.OnError(engine.Skip))
	return nil
}

// OnActivate notes the file that the agent's spec names.
func (p *Plugin) OnActivate(spec engine.AgentSpec, b *engine.Batch) error {
	s, err := Section.From(spec)
	if err != nil {
		return err
	}
	b.Update(file.With(s.Path))
	return nil
}

// errClosed is the fault of an entry that came after Close.
var errClosed = errors.New("audit: the plugin was closed")

func (p *Plugin) write(ctx context.Context, snap *state.Snapshot, e Entry) error {
	l := line{Time: p.opts.Now().UTC(), Entry: e}
	if id, ok := effects.IDFrom(ctx); ok {
		l.ID = id.String()
	}
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	at := place{p.opts.Dir, cmp.Or(file.Get(snap), DefaultPath)}
	if p.opts.DirOf != nil {
		at.dir = cmp.Or(p.opts.DirOf(snap), at.dir)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	f, err := p.open(at)
	if err != nil {
		return err
	}
	// One write per line, so that lines of several processes do not mix.
	if _, err = f.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("audit: an entry was not written: %w", err)
	}
	if p.opts.Sync {
		if err := f.Sync(); err != nil {
			return fmt.Errorf("audit: an entry may not be on the disk: %w", err)
		}
	}
	return nil
}

// open returns the file of that place. The lock is held.
func (p *Plugin) open(at place) (*os.File, error) {
	if p.closed {
		return nil, errClosed
	}
	if f, ok := p.files[at]; ok {
		return f, nil
	}
	root, ok := p.roots[at.dir]
	if !ok {
		var err error
		if root, err = os.OpenRoot(at.dir); err != nil {
			return nil, fmt.Errorf("audit: cannot open the directory: %w", err)
		}
		p.roots[at.dir] = root
	}
	if err := root.MkdirAll(path.Dir(at.name), 0o777); err != nil {
		return nil, fmt.Errorf("audit: cannot make the folder of %s: %w", at.name, err)
	}
	f, err := root.OpenFile(at.name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("audit: cannot open the file: %w", err)
	}
	p.files[at] = f
	return f, nil
}

// Close closes the files. Entries that come later fail.
func (p *Plugin) Close(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	var errs []error
	for _, f := range p.files {
		errs = append(errs, f.Close())
	}
	for _, root := range p.roots {
		errs = append(errs, root.Close())
	}
	return errors.Join(errs...)
}
