package reminders

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
)

// Rule is one reminder of the section.
type Rule struct {
	// Name identifies the rule within the section.
	Name string `json:"name"`
	// Text is what the model is told.
	Text string `json:"text"`
	// When says when it is due.
	When When `json:"when"`
	// Times is how often it comes in a run at most; 0 means as often as it is due.
	Times int `json:"times"`
	// Note says how long the model is shown it: "" for good, or "one_shot".
	Note engine.ContextMode `json:"note"`
}

// When is a condition. Exactly one of Every, AfterTool, Unused and Message is set; Steps
// belongs to Unused, and From to Message.
type When struct {
	Every     int    `json:"every,omitzero"`      // steps
	AfterTool string `json:"after_tool,omitzero"` // pattern, as path.Match takes it
	Unused    string `json:"unused,omitzero"`     // pattern
	Steps     int    `json:"steps,omitzero"`
	Message   string `json:"message,omitzero"` // regular expression
	From      From   `json:"from,omitzero"`
}

// From says whose messages a condition is about.
type From string

// Whose; the zero one is the user's.
const (
	FromUser      From = "user"
	FromAssistant From = "assistant"
	FromTool      From = "tool"
	FromAny       From = "any" // of these three
)

// UnmarshalJSON reads a condition strictly and refuses one that Validate refuses, so
// that the error has its place in the spec.
func (w *When) UnmarshalJSON(text []byte) error {
	type plain When
	var p plain
	if err := inference.JSON(text).Decode(&p); err != nil {
		var bad *inference.JSONError
		if errors.As(err, &bad) {
			err = bad.Err // without its offset in a text that the user never saw
		}
		return fmt.Errorf("reminders: %w", err)
	}
	*w = When(p)
	return w.Validate()
}

// Validate returns what is wrong with the condition, or nil.
func (w When) Validate() error {
	var set []string
	for name, is := range w.kinds() {
		if is {
			set = append(set, name)
		}
	}
	if len(set) != 1 {
		return fmt.Errorf("reminders: when has %d conditions (%s); want exactly one of every, after_tool, unused and message",
			len(set), strings.Join(set, ", "))
	}
	if w.Every < 0 {
		return fmt.Errorf("reminders: every is %d; want a number of steps, 1 or more", w.Every)
	}
	if w.Unused != "" && w.Steps < 1 || w.Unused == "" && w.Steps != 0 {
		return fmt.Errorf("reminders: steps is %d; want 1 or more with unused, and none without", w.Steps)
	}
	for _, pattern := range []string{w.AfterTool, w.Unused} {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("reminders: %q is no pattern as path.Match takes it: %w", pattern, err)
		}
	}
	if _, err := regexp.Compile(w.Message); err != nil {
		return fmt.Errorf("reminders: message is no regular expression: %w", err)
	}
	switch w.From {
	case "":
	case FromUser, FromAssistant, FromTool, FromAny:
		if w.Message == "" {
			return fmt.Errorf("reminders: from is %q; it belongs to message", w.From)
		}
	default:
		return fmt.Errorf("reminders: from is %q; use user, assistant, tool or any", w.From)
	}
	return nil
}

// kinds yields the conditions in a fixed order, and whether each is set.
func (w When) kinds() func(yield func(string, bool) bool) {
	return func(yield func(string, bool) bool) {
		_ = yield("every", w.Every != 0) && yield("after_tool", w.AfterTool != "") &&
			yield("unused", w.Unused != "") && yield("message", w.Message != "")
	}
}

// about reports whether the condition depends on the use of the tool.
func (w When) about(tool string) bool {
	for _, pattern := range []string{w.AfterTool, w.Unused} {
		if ok, _ := path.Match(pattern, tool); ok && pattern != "" { // Validate refused malformed patterns
			return true
		}
	}
	return false
}

// from reports whether messages of that role are looked at.
func (w When) from(role inference.Role) bool {
	switch w.From {
	case FromAny:
		return role != inference.RoleSystem
	case "":
		return role == inference.RoleUser
	default:
		return string(role) == string(w.From)
	}
}

// matches reports whether one of the messages matches.
func (w When) matches(messages []inference.Message) bool {
	re, err := regexp.Compile(w.Message)
	if err != nil {
		return false // Validate refused it
	}
	for _, m := range messages {
		if w.from(m.Role) && re.MatchString(m.Text) {
			return true
		}
	}
	return false
}

// Settings is the content of the section.
type Settings struct {
	Rules []Rule `json:"rules"`
}

// Section is the section that holds the rules.
var Section = engine.NewConfigKey(Name, engine.ConfigOptions[Settings]{Check: Settings.Validate})

// Validate returns what is wrong with the settings, all of it, or nil.
func (s Settings) Validate() error {
	var errs []error
	names := map[string]bool{}
	for i, r := range s.Rules {
		bad := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("reminders: rules[%d]%w", i, fmt.Errorf(format, args...)))
		}
		switch {
		case r.Name == "":
			bad(" has no name; give it one, unlike those of the others")
		case names[r.Name]:
			bad(": there is a rule %q before it; names are unique", r.Name)
		}
		names[r.Name] = true
		if strings.TrimSpace(r.Text) == "" || len(r.Text) > MaxText {
			bad(".text has %d bytes; want something to say, in at most %d", len(r.Text), MaxText)
		}
		if r.Times < 0 {
			bad(".times is %d; want 0 for no limit, or more", r.Times)
		}
		if r.Note != engine.Persistent && r.Note != engine.OneShot {
			bad(".note is %q; use %q, or leave it out", r.Note, engine.OneShot)
		}
		if err := r.When.Validate(); err != nil {
			bad(": %w", err)
		}
	}
	return errors.Join(errs...)
}
