package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/models"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/terminal"
	"github.com/ddd26017/fixpoint/contrib/mcp"
	"github.com/ddd26017/fixpoint/contrib/plugins/exechook"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/plugins"
	"github.com/ddd26017/fixpoint/plugins/files"
)

// setup is what an engine of the command is made from, besides its configuration.
type setup struct {
	workspace workspace
	agent     agentFile
	keep      bool             // its runs are kept in a store
	runs      bool             // it is not only looked at
	hooks     *exechook.Plugin // nil for none
	view      *terminal.View   // nil to tell nobody
	state     string           // the folder outside of the directory; "" for none
	now       func() time.Time // nil for the usual clock
}

// drawingName is the file that the plugin trace draws to, in outputDir.
const drawingName = "trace.json"

func drawingFile(w workspace) string { return filepath.Join(w.dir, outputDir, drawingName) }

// engine returns an engine with the usual plugins, those that the agents name, those of
// the configuration and what keeps a run in a store, and a function that closes it. The
// configuration's other parts are the caller's.
func (s setup) engine(ctx context.Context, c engine.Config) (*engine.Engine, func() error, error) {
	tree, err := files.Open(s.workspace.dir, files.Options{Hide: s.workspace.hidden})
	if err != nil {
		return nil, nil, err
	}
	made := supplies{setup: s, tree: tree, wanted: s.agent.named()}
	if s.hooks != nil {
		made.wanted[exechook.Name] = true
	}
	for _, spec := range s.agent.Specs {
		if _, has := spec.Sections[mcp.Name]; has {
			made.wanted[mcp.Name] = true
		}
	}
	if made.wanted[mcp.Name] {
		if made.servers, err = s.connect(ctx); err != nil {
			return nil, nil, errors.Join(err, tree.Close(context.Background()))
		}
	}
	drawing := &drawnFile{dir: s.workspace.dir}
	if s.runs {
		made.drawing = drawing
	}
	loaded, reg, err := made.load(context.WithoutCancel(ctx)) // a cancelled run has an end, too
	if err != nil {
		return nil, nil, errors.Join(err, plugins.CloseAll(context.Background(), append(loaded, made.servers)), tree.Close(context.Background()))
	}
	for _, p := range loaded {
		if o, ok := p.(engine.Observer); ok {
			c.Observers = append(c.Observers, o)
		}
	}
	c.Plugins = append(slices.Clone(loaded), c.Plugins...)
	if s.keep {
		c.Plugins = append(c.Plugins, kept.Plugin())
	}
	if models.Wanted(s.agent.Specs...) {
		c.Plugins = append(c.Plugins, models.Plugin())
	}
	c.Agents, c.Models, c.Now, c.Stream = s.agent.Specs, maps.Clone(s.agent.models), s.now, true
	if s.view != nil {
		s.agent.notes.view.Store(s.view)
		for id, m := range c.Models {
			c.Models[id] = s.view.Watch(m)
		}
	}
	eng, err := engine.New(c)
	if err != nil {
		s.agent.suggest(err, reg, loaded)
		return nil, nil, specFault(errors.Join(err, plugins.CloseAll(context.Background(), loaded)))
	}
	return eng, func() error { return errors.Join(eng.Close(context.Background()), drawing.Close()) }, nil
}

// load makes the usual plugins and those wanted.
func (s supplies) load(ctx context.Context) ([]engine.Plugin, *plugins.Registry, error) {
	reg, err := s.registry()
	if err != nil {
		return nil, nil, err
	}
	var names []string
	for _, e := range s.usual() {
		names = append(names, e.Name)
	}
	for _, e := range s.others() {
		if s.wanted[e.Name] {
			names = append(names, e.Name)
		}
	}
	loaded, err := reg.Load(ctx, plugins.Selection{Names: names})
	for i, p := range loaded {
		// The manifest knows better than that a plugin is built in: its package.
		if l, ok := p.(interface {
			Source() string
			Unwrap() engine.Plugin
		}); ok && l.Source() == plugins.BuiltIn {
			loaded[i] = l.Unwrap()
		}
	}
	return loaded, reg, err
}

// named are the plugins that the agents name.
func (a agentFile) named() map[string]bool {
	names := map[string]bool{}
	for _, spec := range a.Specs {
		for _, name := range slices.Concat(spec.PluginIDs, spec.ActiveHookFilter) {
			names[name] = true
		}
	}
	return names
}

// with returns the agents with one more plugin that is active for each of them.
func (a agentFile) with(plugin string) agentFile {
	specs := make([]engine.AgentSpec, len(a.Specs))
	for i, spec := range a.Specs {
		spec = spec.Clone()
		for _, list := range []*[]string{&spec.PluginIDs, &spec.ActiveHookFilter} {
			if len(*list) > 0 && !slices.Contains(*list, plugin) {
				*list = append(*list, plugin)
			}
		}
		specs[i] = spec
	}
	a.Specs = specs
	return a
}

// inList is the place of a name in a list of plugins, and inSections that of a section.
var (
	inList     = regexp.MustCompile(`^(?:plugin_ids|active_hook_filter)\[(\d+)\]$`)
	inSections = regexp.MustCompile(`^sections\.([a-z]+)$`)
)

// suggest completes what an engine says about names that it does not know: plugins that
// nobody named are known as well.
func (a agentFile) suggest(err error, reg *plugins.Registry, loaded []engine.Plugin) {
	var fault *engine.SpecError
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range many.Unwrap() {
			a.suggest(one, reg, loaded)
		}
		return
	}
	if !errors.As(err, &fault) {
		return
	}
	have := map[string]bool{}
	for e := range reg.Entries() {
		have[e.Name] = true
	}
	if m := inSections.FindStringSubmatch(fault.Path); m != nil && have[m[1]] && !slices.ContainsFunc(loaded, func(p engine.Plugin) bool { return p.Name() == m[1] }) {
		fault.Msg, fault.Nearest = "the section of a plugin that no agent names; list it in plugin_ids or active_hook_filter", ""
	}
	if m := inList.FindStringSubmatch(fault.Path); m != nil {
		name := a.nameAt(fault, m[1])
		var unknown *plugins.EntryError
		if _, err := reg.Load(context.Background(), plugins.Selection{Names: []string{name}}); !have[name] && errors.As(err, &unknown) && unknown.Nearest != "" {
			fault.Msg, _, _ = strings.Cut(fault.Msg, "; known: ")
			fault.Nearest = unknown.Nearest
		}
	}
}

// nameAt returns the name that a fault is about, which is in a list at that index.
func (a agentFile) nameAt(fault *engine.SpecError, index string) string {
	i, _ := strconv.Atoi(index) // it is made of digits
	for _, spec := range a.Specs {
		list := spec.ActiveHookFilter
		if strings.HasPrefix(fault.Path, "plugin_ids") {
			list = spec.PluginIDs
		}
		if spec.ID == fault.Agent && i < len(list) {
			return list[i]
		}
	}
	return ""
}

// drawnFile is the file that trace draws to, made with the first Write.
type drawnFile struct {
	dir  string
	file *os.File
}

// Write writes to the file.
func (d *drawnFile) Write(p []byte) (n int, err error) {
	if d.file == nil {
		root, err := os.OpenRoot(d.dir) // no link leads out of it
		if err != nil {
			return 0, err
		}
		d.file, err = root.Create(path.Join(outputDir, drawingName))
		if err := errors.Join(err, root.Close()); err != nil {
			return 0, err
		}
	}
	return d.file.Write(p)
}

// Close closes the file if there is one.
func (d *drawnFile) Close() error {
	if d.file == nil {
		return nil
	}
	return d.file.Close()
}

// stateFolder returns the folder for what is kept of a directory outside of it, where
// neither its tools nor who shares it can change what was approved; "" if the
// environment says no place.
func (s IO) stateFolder(w workspace) string {
	base := s.env("FIXPOINT_STATE")
	for _, place := range []struct{ variable, below string }{
		{"XDG_STATE_HOME", "fixpoint"}, {"LocalAppData", "fixpoint"}, {"HOME", ".local/state/fixpoint"},
	} {
		if root := s.env(place.variable); base == "" && filepath.IsAbs(root) && (place.variable == "LocalAppData") == (runtime.GOOS == "windows") {
			base = filepath.Join(root, filepath.FromSlash(place.below))
		}
	}
	if !filepath.IsAbs(base) {
		return ""
	}
	if _, inside := w.inside(base); inside {
		return ""
	}
	sum := sha256.Sum256([]byte(w.dir))
	return filepath.Join(base, filepath.Base(w.dir)+"-"+hex.EncodeToString(sum[:6]))
}
