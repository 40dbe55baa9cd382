package autocommit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
)

// DefaultMessage is the template of the message when the section has none.
const DefaultMessage = "Change {{.Subject}}\n\nBy agent {{.Agent}} in run {{.Run}}.\n"

// Settings is the content of the section.
type Settings struct {
	// Enabled has the agent's changes committed.
	Enabled bool `json:"enabled"`
	// Message is a template, as text/template takes it, of the commit message; see Words.
	// The default is DefaultMessage.
	Message string `json:"message"`
	// Name and Email are those of the author; what is empty is from Options, and then
	// from the settings of git.
	Name  string `json:"name"`
	Email string `json:"email"`
	// Hooks runs the hooks that the repository has for commits.
	Hooks bool `json:"hooks"`
	// Reasons lists the ends of a run after which there is a commit. The default is
	// "natural".
	Reasons []phase.Reason `json:"reasons"`
}

// Words are what a message template can use.
type Words struct {
	Agent, Run, Thread string
	Subject            string   // the files in short, on one line: "a.go", "a.go and b.go" or "3 files"
	Paths              []string // of all files, as they are: a name may have line breaks in it
	Task               string   // the first line of what the user said last, shortened
	Text               string   // the model's last text
}

// Section is the section that holds the settings.
var Section = engine.NewConfigKey(Name, engine.ConfigOptions[Settings]{
	Default: func() Settings {
		return Settings{Message: DefaultMessage, Reasons: []phase.Reason{phase.ReasonNatural}}
	},
	Check: Settings.Validate,
})

// Validate returns what is wrong with the settings, or nil.
func (s Settings) Validate() error {
	var errs []error
	if _, err := s.write(Words{Agent: "a", Run: "r", Thread: "t", Subject: "a.go", Paths: []string{"a.go"}, Task: "a task", Text: "a text"}); err != nil {
		errs = append(errs, err)
	}
	if strings.ContainsAny(s.Name+s.Email, "<>\n\x00") {
		errs = append(errs, fmt.Errorf("autocommit: name %q and email %q cannot have angle brackets or line breaks", s.Name, s.Email))
	}
	if slices.Contains(s.Reasons, "") {
		errs = append(errs, errors.New("autocommit: reasons has an empty one; name ends such as natural or max_rounds"))
	}
	return errors.Join(errs...)
}

// longestMessage bounds a message, in bytes.
const longestMessage = 16 << 10

// write returns the message.
func (s Settings) write(w Words) (string, error) {
	t, err := template.New("message").Parse(s.Message)
	if err != nil {
		return "", fmt.Errorf("autocommit: message is no template as text/template takes it: %w", err)
	}
	var b strings.Builder
	if err := t.Execute(&b, w); err != nil {
		return "", fmt.Errorf("autocommit: message cannot be written: %w", err)
	}
	text := strings.ReplaceAll(strings.ToValidUTF8(b.String(), "\uFFFD"), "\x00", "\uFFFD")
	if len(text) > longestMessage {
		text = strings.ToValidUTF8(text[:longestMessage], "")
	}
	text = strings.TrimSpace(text)
	if text == "" {
		return "", errors.New("autocommit: message is empty; want a template that says what was done")
	}
	return text + "\n", nil
}

// Options adjust a plugin.
type Options struct {
	// Dir is the workspace, in a git work tree; "" means the current directory.
	Dir string
	// Name and Email are those of the author and committer, where the section has none.
	// What is empty here too is from the settings of git.
	Name, Email string
	// Now is the clock of the commits; nil means time.Now.
	Now func() time.Time
	// OnDone is told what came of each run that was to be committed; nil means nobody
	// is. It is called as the handler of an effect, again if it returns an error and the
	// journal has an outbox. It must be safe for concurrent use.
	OnDone func(context.Context, Result) error
}
