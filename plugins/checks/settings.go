package checks

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ddd26017/fixpoint/engine"
)

// When says after which steps the checks run.
type When string

// After the step that would be the last, or after each that has changed something.
const (
	AtEnd    When = "end"
	EachStep When = "step"
)

// Command is a check: a program that succeeds when all is well.
type Command struct {
	// Name is what the model is told; "" means the program and its arguments.
	Name string `json:"name"`
	// Args are the program and its arguments. There is no shell.
	Args []string `json:"args"`
	// Dir is where it runs, with slashes, below Options.Dir.
	Dir string `json:"dir"`
	// Seconds is how long it may take; 0 means 120.
	Seconds float64 `json:"seconds"`
}

func (c Command) title() string { return cmp.Or(c.Name, strings.Join(c.Args, " ")) }

// longest is the most that Command.Seconds may be: a day.
const longest = 86400

func (c Command) limit() time.Duration {
	return time.Duration(cmp.Or(c.Seconds, 120) * float64(time.Second))
}

// Settings is the content of the section.
type Settings struct {
	// Commands are run one after the other, all of them. Without any there are no checks.
	Commands []Command `json:"commands"`
	// At says after which steps they run. The default is AtEnd.
	At When `json:"at"`
	// Attempts is how often a run is told of failures. The default is 3; with 0 the
	// model is told of none.
	Attempts int `json:"attempts"`
	// MaxBytes is how much of the output of all commands together is told, at least 256
	// bytes of each. The default is 8 KiB.
	MaxBytes int `json:"max_bytes"`
	// Env names variables that the commands get besides the usual ones.
	Env []string `json:"env"`
	// Kinds lists the kinds of tools whose calls count as changes where there is no
	// repository. The default is "write" and "exec".
	Kinds []string `json:"kinds"`
}

// Section is the section that holds the settings.
var Section = engine.NewConfigKey(Name, engine.ConfigOptions[Settings]{
	Default: func() Settings {
		return Settings{At: AtEnd, Attempts: 3, MaxBytes: 8 << 10, Kinds: []string{"write", "exec"}}
	},
	Check: Settings.Validate,
})

// Validate returns what is wrong with the settings, or nil.
func (s Settings) Validate() error {
	var errs []error
	for i, c := range s.Commands {
		if len(c.Args) == 0 || c.Args[0] == "" {
			errs = append(errs, fmt.Errorf(`checks: commands[%d] has no program; want args such as ["go", "test", "./..."]`, i))
		}
		if c.Dir != "" && (!fs.ValidPath(c.Dir) || !filepath.IsLocal(filepath.FromSlash(c.Dir))) {
			errs = append(errs, fmt.Errorf("checks: commands[%d] has dir %q; want a folder below the workspace, with slashes", i, c.Dir))
		}
		if !(c.Seconds >= 0 && c.Seconds <= longest) {
			errs = append(errs, fmt.Errorf("checks: commands[%d] has seconds %v; want 0 for the default, or up to %d", i, c.Seconds, longest))
		}
	}
	if s.At != AtEnd && s.At != EachStep {
		errs = append(errs, fmt.Errorf(`checks: at is %q; want "end" or "step"`, s.At))
	}
	if s.Attempts < 0 {
		errs = append(errs, fmt.Errorf("checks: attempts is %d; want 0 or more", s.Attempts))
	}
	if s.MaxBytes < 1 {
		errs = append(errs, fmt.Errorf("checks: max_bytes is %d; want 1 or more", s.MaxBytes))
	}
	if slices.Contains(s.Kinds, "") || slices.Contains(s.Env, "") {
		errs = append(errs, errors.New("checks: kinds and env cannot have empty names"))
	}
	return errors.Join(errs...)
}

// Options adjust the plugin.
type Options struct {
	// Dir is the workspace, where the commands run; "" means the current directory.
	Dir string
}
