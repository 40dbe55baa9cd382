package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// The tools' names.
const (
	ListTool   = "list_files"
	SearchTool = "search_text"
	ReadTool   = "read_file"
	WriteTool  = "write_file"
	EditTool   = "edit_file"
)

// ErrPath is the kind of every fault of a path that a tool was given.
var ErrPath = errors.New("files: unusable path")

// ErrOptions is the kind of a fault of Options.
var ErrOptions = errors.New("files: invalid options")

// Options adjust a Plugin. The zero value is useful.
type Options struct {
	// Exclude lists patterns, as path.Match takes them, of what the tools must not
	// see. One without a slash is compared with every element of a path, one with a
	// slash with the whole path. Nil means DefaultExclude.
	Exclude []string
	// Hide lists exact paths, with slashes and relative to the directory, that the
	// tools must not see either: the program's own output, say.
	Hide []string
	// Limits bound what the tools read and return.
	Limits Limits
	// OnSaved and OnPatched return what is to be scheduled when a file was written or
	// edited: actions of other plugins, which run in the same phase if they are for
	// AfterToolExecute. They must be free of side effects and safe for concurrent use.
	// Nil means nothing.
	OnSaved   func(Save) []phase.Action
	OnPatched func(Patch) []phase.Action
}

// Limits bound the work of one tool call. A zero field means the default named
// with it; a negative one is an error.
type Limits struct {
	Entries   int   // files that one walk looks at: 20000
	FileBytes int64 // size of a file to be searched or written: 1 MiB
	ReadBytes int   // text that read_file returns: 64 KiB
	Listed    int   // files that list_files returns: 500
	Matches   int   // lines that search_text returns: 100
}

// DefaultExclude returns the patterns that a nil Options.Exclude stands for:
// names that begin with a dot, and node_modules.
func DefaultExclude() []string { return []string{".*", "node_modules"} }

// Plugin has the tools for one directory. Make it with Open and release it with
// Close, or let Engine.Close do so. It may serve several engines until then.
type Plugin struct {
	root      *os.Root
	tree      *tree
	limits    Limits
	onSaved   func(Save) []phase.Action
	onPatched func(Patch) []phase.Action

	writing sync.Mutex // an edit must not undo what was written while it was under way
}

// Open returns the plugin for a directory, which must exist.
func Open(dir string, o Options) (*Plugin, error) {
	limits, err := o.Limits.withDefaults()
	if err != nil {
		return nil, err
	}
	exclude := slices.Clone(o.Exclude)
	if o.Exclude == nil {
		exclude = DefaultExclude()
	}
	for _, pattern := range exclude {
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, fmt.Errorf("%w: Exclude has %q, which is no pattern as path.Match takes it: %w", ErrOptions, pattern, err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("files: cannot open the directory: %w", err)
	}
	hide := map[string]bool{}
	for _, name := range o.Hide {
		hide[path.Clean(name)] = true
	}
	return &Plugin{root: root, tree: &tree{root: root, fsys: root.FS(), exclude: exclude, hide: hide}, limits: limits,
		onSaved: o.OnSaved, onPatched: o.OnPatched}, nil
}

func (l Limits) withDefaults() (Limits, error) {
	if l.Entries < 0 || l.FileBytes < 0 || l.ReadBytes < 0 || l.Listed < 0 || l.Matches < 0 {
		return l, fmt.Errorf("%w: a negative limit in %+v; leave it at 0 for the default", ErrOptions, l)
	}
	return Limits{
		Entries:   orDefault(l.Entries, 20_000),
		FileBytes: orDefault(l.FileBytes, 1<<20),
		ReadBytes: orDefault(l.ReadBytes, 64<<10),
		Listed:    orDefault(l.Listed, 500),
		Matches:   orDefault(l.Matches, 100),
	}, nil
}

func orDefault[N int | int64](n, def N) N {
	if n == 0 {
		return def
	}
	return n
}

// Name returns "files".
func (p *Plugin) Name() string { return "files" }

// Register registers the tools and the handlers of Saved and Patched.
func (p *Plugin) Register(r *engine.Registrar) error {
	r.Key(Changed)
	r.Action(Saved.Handle(p.saved), Patched.Handle(p.patched))
	r.Tool(
		reader{engine.NewTool(inference.ToolSpec{Name: ListTool, Kind: "read", Schema: listSchema,
			Description: "List the files below a folder, with their sizes."}, p.list)},
		reader{engine.NewTool(inference.ToolSpec{Name: SearchTool, Kind: "read", Schema: searchSchema,
			Description: "Find the lines of text files that match a regular expression or a literal text."}, p.search)},
		reader{engine.NewTool(inference.ToolSpec{Name: ReadTool, Kind: "read", Schema: readSchema,
			Description: "Read a text file, or some of its lines."}, p.read)},
		engine.NewTool(inference.ToolSpec{Name: WriteTool, Kind: "write", Schema: writeSchema,
			Description: "Write a text file, replacing it if it exists."}, p.write),
		engine.NewTool(inference.ToolSpec{Name: EditTool, Kind: "write", Schema: editSchema,
			Description: "Replace a text that is in a file exactly once by another one."}, p.edit),
	)
	return nil
}

// Close releases the directory. The tools and FS fail afterwards.
func (p *Plugin) Close(context.Context) error { return p.root.Close() }

// FS returns the directory as the tools see it: regular files and folders,
// without what is excluded. It is read-only and works until Close.
func (p *Plugin) FS() fs.FS { return p.tree }

// longestPath is the number of bytes that a path may have. Longer ones cannot be opened
// by most programs, though folders could be made for them one by one.
const longestPath = 4096

// clean turns what a model wrote into a path of the tree.
func clean(name string) (string, error) {
	c := path.Clean(strings.TrimSpace(name))
	if len(c) > longestPath {
		return "", fmt.Errorf("%w %q...: it is too long", ErrPath, cutText(c, longLine))
	}
	if _, err := filepath.Localize(c); err != nil { // with a backslash it would be several elements to Windows
		return "", fmt.Errorf("%w %q: use a path with slashes, relative to the directory and inside it", ErrPath, c)
	}
	return c, nil
}

// output pairs a text for the model with its data.
func output(content string, details any) (engine.Output, error) {
	raw, err := inference.ToJSON(details)
	if err != nil {
		return engine.Output{}, err
	}
	return engine.Output{Content: content, Details: raw}, nil
}
