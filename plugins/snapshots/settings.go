package snapshots

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ddd26017/fixpoint/engine"
)

// When says which tool calls have a snapshot taken before them.
type When string

// Before the first call of a step that may change something, or before each.
const (
	EachStep When = "step"
	EachCall When = "call"
)

// Settings is the content of the section.
type Settings struct {
	// Take says before which tool calls a snapshot is taken. The default is EachStep.
	Take When `json:"take"`
	// Kinds lists the kinds of the tools that may change something. The default is
	// "write" and "exec".
	Kinds []string `json:"kinds"`
	// Keep is how many snapshots a thread has at most; older ones are forgotten. The
	// default is 50.
	Keep int `json:"keep"`
	// Required ends the run, with ReasonFailed, when a snapshot could not be taken, so
	// that the tool does not run. Otherwise the fault is reported and the run goes on.
	Required bool `json:"required"`
}

// Section is the section that holds the settings.
var Section = engine.NewConfigKey(Name, engine.ConfigOptions[Settings]{
	Default: func() Settings { return Settings{Take: EachStep, Kinds: []string{"write", "exec"}, Keep: 50} },
	Check:   Settings.Validate,
})

// Validate returns what is wrong with the settings, or nil.
func (s Settings) Validate() error {
	var errs []error
	if s.Take != EachStep && s.Take != EachCall {
		errs = append(errs, fmt.Errorf(`snapshots: take is %q; want "step" or "call"`, s.Take))
	}
	if slices.Contains(s.Kinds, "") {
		errs = append(errs, errors.New("snapshots: kinds has an empty kind; name the kinds of tools that change files"))
	}
	if s.Keep < 1 {
		errs = append(errs, fmt.Errorf("snapshots: keep is %d; want 1 or more", s.Keep))
	}
	return errors.Join(errs...)
}

// Options adjust a Plugin.
type Options struct {
	// Dir is the directory that snapshots are of; "" means the current one.
	Dir string
	// Store is a directory for the copies of files, outside Dir, for when Dir is in no
	// git work tree. It is made as needed. With "" there are no snapshots then.
	Store string
	// Exclude lists patterns, as path.Match takes them, of what snapshots leave alone
	// besides what git ignores. One without a slash is compared with every element of a
	// path, one with a slash with the whole path and the folders on the way to it. Nil
	// means DefaultExclude. What is named .git is always left alone.
	Exclude []string
	// Limits bound what a snapshot may hold.
	Limits Limits
	// Now is the clock of the snapshots; nil means time.Now.
	Now func() time.Time
}

// Limits bound a snapshot. A workspace with more has none taken: half of one would be
// of no use. A zero field means the default named with it; a negative one is an error.
type Limits struct {
	Files int   // 20000
	Bytes int64 // of all files together: 256 MiB
}

// DefaultExclude returns the patterns that a nil Options.Exclude stands for.
func DefaultExclude() []string { return []string{"node_modules"} }

// complete fills in the defaults and returns what is wrong.
func (o Options) complete() (Options, error) {
	var errs []error
	if o.Limits.Files < 0 || o.Limits.Bytes < 0 {
		errs = append(errs, fmt.Errorf("snapshots: a negative limit in %+v; leave it at 0 for the default", o.Limits))
	}
	if o.Limits.Files == 0 {
		o.Limits.Files = 20_000
	}
	if o.Limits.Bytes == 0 {
		o.Limits.Bytes = 256 << 20
	}
	o.Exclude = slices.Clone(o.Exclude)
	if o.Exclude == nil {
		o.Exclude = DefaultExclude()
	}
	for _, pattern := range o.Exclude {
		if _, err := path.Match(pattern, ""); err != nil {
			errs = append(errs, fmt.Errorf("snapshots: Exclude has %q, which is no pattern as path.Match takes it: %w", pattern, err))
		}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	var err error
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		errs = append(errs, fmt.Errorf("snapshots: cannot tell where Dir is: %w", err))
	}
	if o.Store != "" {
		if o.Store, err = filepath.Abs(o.Store); err != nil {
			errs = append(errs, fmt.Errorf("snapshots: cannot tell where Store is: %w", err))
		} else if inside(o.Store, o.Dir) {
			errs = append(errs, fmt.Errorf("snapshots: Store %s is in Dir %s; keep the copies outside of what is copied", o.Store, o.Dir))
		}
	}
	return o, errors.Join(errs...)
}

// real returns where dir is, whatever links lead there.
func real(dir string) string {
	if to, err := filepath.EvalSymlinks(dir); err == nil {
		return to
	}
	return dir
}

// inside reports whether name is dir or below it, whatever links lead there.
func inside(name, dir string) bool {
	dir = real(dir)
	rest := ""
	for at := name; ; at = filepath.Dir(at) { // the nearest folder that there is may be a link
		if to, err := filepath.EvalSymlinks(at); err == nil {
			name = filepath.Join(to, rest)
			break
		}
		if at == filepath.Dir(at) {
			break
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
	rel, err := filepath.Rel(dir, name)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
