package allowlist

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
)

// Verdict is what the rules say about a command line.
type Verdict string

// The verdicts.
const (
	Approved Verdict = "approved" // all that it runs is allowed
	Unsure   Verdict = "unsure"   // it may run something else: no opinion
	Denied   Verdict = "denied"   // it runs what is denied
)

// Shell is a tool that runs command lines.
type Shell struct {
	Tool     string `json:"tool"`     // its name
	Argument string `json:"argument"` // of its arguments the one with the line
	// Others lists arguments besides that a call may have and be approved: such that do
	// not change what the line does.
	Others []string `json:"others"`
}

// Settings is the content of the section.
type Settings struct {
	Allow []Rule `json:"allow"`
	// Deny lists commands that are blocked wherever they are seen. Whatever follows the
	// words of a rule, and flags between them, count as denied too.
	Deny []Rule `json:"deny"`
	// Tools are the shells; the default is the argument "command" of "shell", beside which
	// "timeout", "timeout_seconds" and "description" may be.
	Tools []Shell `json:"tools"`
	// Variables are the names that a line may set, in loops and by assignment; the default
	// is i, f, file, dir, name, line and item.
	Variables []string `json:"variables"`
}

// Section is the section that holds the settings.
var Section = engine.NewConfigKey(Name, engine.ConfigOptions[Settings]{Default: defaults, Check: Settings.Validate})

func defaults() Settings {
	return Settings{Variables: []string{"i", "f", "file", "dir", "name", "line", "item"}}
}

// shells returns the tools. Their default is no default of the section, since what an entry
// left out would be filled in from it.
func (s Settings) shells() []Shell {
	if s.Tools == nil {
		return []Shell{{Tool: "shell", Argument: "command", Others: []string{"timeout", "timeout_seconds", "description"}}}
	}
	return s.Tools
}

// Validate returns what is wrong with the settings, or nil.
func (s Settings) Validate() error {
	var faults []error
	for _, r := range s.Allow {
		faults = append(faults, r.validate(true))
	}
	for _, r := range s.Deny {
		faults = append(faults, r.validate(false))
	}
	for _, t := range s.Tools {
		if t.Tool == "" || t.Argument == "" {
			faults = append(faults, errors.New("allowlist: an entry of tools has no tool or no argument"))
		}
	}
	for _, name := range s.Variables {
		if fateful(name) {
			faults = append(faults, fmt.Errorf("allowlist: the variable %q decides what commands mean; a line must not set it", name))
		}
	}
	return errors.Join(faults...)
}

// fateful reports whether a variable decides what runs. The list cannot be complete.
func fateful(name string) bool {
	for _, pattern := range []string{
		"", "*PATH", "IFS", "ENV", "BASH_*", "SHELLOPTS", "BASHOPTS", "PS?", "PROMPT_COMMAND", "LD_*", "DYLD_*", "GIT_*", "*_OPTIONS", "*FLAGS",
		"PAGER", "*_PAGER", "EDITOR", "VISUAL", "BROWSER", "SHELL", "HOME", "ZDOTDIR", "LESSOPEN", "LESSCLOSE", "*STARTUP", "RUBYOPT", "PERL5*", "HISTFILE",
		"ALIASES", "GALIASES", "SALIASES", "FUNCTIONS", "COMMANDS", "OPTIONS", "*PROMPT*", "PRECMD", "PREEXEC", "CHPWD", "*_PROXY",
	} {
		if ok, _ := path.Match(pattern, strings.ToUpper(name)); ok { // some are lower case in zsh
			return true
		}
	}
	return false
}
