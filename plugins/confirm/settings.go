package confirm

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
)

// Unattended says what becomes of a question that nobody answers.
type Unattended string

// The ways; the zero one denies.
const (
	UnattendedDeny  Unattended = "deny"
	UnattendedAllow Unattended = "allow"
	UnattendedWait  Unattended = "wait" // the run waits; at the end of a lifetime the call is called off
)

func (u Unattended) standard() gate.Default {
	switch u {
	case UnattendedAllow:
		return gate.DefaultYes
	case UnattendedWait:
		return gate.NoDefault
	default:
		return gate.DefaultNo
	}
}

// Forever is an Auto without an end.
const Forever = -1

// Settings is the content of the section. Patterns are those of permission rules: of a
// tool's name as path.Match takes it, or behind "kind:" of its kind.
type Settings struct {
	// Ask lists patterns of the tools that are asked about; the default is all.
	Ask []string `json:"ask"`
	// Except lists patterns of tools that are not; the default is "kind:read".
	Except []string `json:"except"`
	// NoEdit lists patterns of tools whose arguments nobody may edit.
	NoEdit []string `json:"no_edit"`
	// Auto is how many calls of each run need no question; Forever for all.
	Auto int64 `json:"auto"`
	// Unattended is for questions that nobody answers; "" means UnattendedDeny.
	Unattended Unattended `json:"unattended"`
	// Lifetime is how long a question stands, as time.ParseDuration reads it; "" for ever.
	Lifetime string `json:"lifetime"`
}

// Section is the section that holds the settings.
var Section = engine.NewConfigKey(Name, engine.ConfigOptions[Settings]{
	Default: func() Settings { return Settings{Ask: []string{"*"}, Except: []string{"kind:read"}} },
	Check:   Settings.Validate,
})

// Validate returns what is wrong with the settings, or nil.
func (s Settings) Validate() error {
	for _, pattern := range slices.Concat(s.Ask, s.Except, s.NoEdit) {
		if _, err := path.Match(strings.TrimPrefix(pattern, "kind:"), ""); err != nil {
			return fmt.Errorf("confirm: %q is no pattern as path.Match takes it: %w", pattern, err)
		}
	}
	if s.Auto < Forever {
		return fmt.Errorf("confirm: auto is %d; use a number of calls, or %d for all", s.Auto, Forever)
	}
	if !slices.Contains([]Unattended{"", UnattendedDeny, UnattendedAllow, UnattendedWait}, s.Unattended) {
		return fmt.Errorf("confirm: unattended is %q; use deny, allow or wait", s.Unattended)
	}
	if d, err := time.ParseDuration(s.Lifetime); s.Lifetime != "" && (err != nil || d <= 0) {
		return fmt.Errorf("confirm: lifetime is %q; use a positive duration such as \"10m\"", s.Lifetime)
	}
	return nil
}

func (s Settings) asks(tool inference.ToolSpec) bool {
	return anyOf(s.Ask, tool) && !anyOf(s.Except, tool)
}

func anyOf(patterns []string, tool inference.ToolSpec) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		kind, byKind := strings.CutPrefix(pattern, "kind:")
		ok, _ := path.Match(pattern, tool.Name) // Validate refused malformed patterns
		if byKind {
			ok, _ = path.Match(kind, tool.Kind)
		}
		return ok
	})
}
