package permission

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
)

// Verdict is what a rule says about a call.
type Verdict string

// The verdicts.
const (
	Allow Verdict = "allow" // run it
	Ask   Verdict = "ask"   // run it if someone says yes
	Deny  Verdict = "deny"  // do not run it
)

// Unattended says what becomes of a question when nobody is there to answer.
type Unattended string

// The ways; the zero one denies.
const (
	UnattendedDeny    Unattended = "deny"
	UnattendedApprove Unattended = "approve"
	UnattendedWait    Unattended = "wait" // the run waits until it is resumed
)

func (u Unattended) standard() gate.Default {
	switch u {
	case UnattendedApprove:
		return gate.DefaultYes
	case UnattendedWait:
		return gate.NoDefault
	default:
		return gate.DefaultNo
	}
}

// Rules is the content of the section.
type Rules struct {
	Allow []string `json:"allow"`
	Ask   []string `json:"ask"`
	Deny  []string `json:"deny"`
	// Default is for calls that no rule fits; "" means Ask.
	Default Verdict `json:"default"`
	// Unattended is for questions that nobody can be asked; "" means UnattendedDeny.
	Unattended Unattended `json:"unattended"`
}

// Section is the section that holds the rules.
var Section = engine.NewConfigKey(Name, engine.ConfigOptions[Rules]{Check: Rules.Validate})

// Validate returns what is wrong with the rules, or nil.
func (r Rules) Validate() error {
	if r.Default != "" && !slices.Contains([]Verdict{Allow, Ask, Deny}, r.Default) {
		return fmt.Errorf("permission: default is %q; use allow, ask or deny", r.Default)
	}
	if r.Unattended != "" && !slices.Contains([]Unattended{UnattendedDeny, UnattendedApprove, UnattendedWait}, r.Unattended) {
		return fmt.Errorf("permission: unattended is %q; use deny, approve or wait", r.Unattended)
	}
	for _, pattern := range slices.Concat(r.Allow, r.Ask, r.Deny) {
		if _, err := path.Match(strings.TrimPrefix(pattern, kindPrefix), ""); err != nil {
			return fmt.Errorf("permission: %q is no pattern as path.Match takes it: %w", pattern, err)
		}
	}
	return nil
}

const kindPrefix = "kind:"

// Judge returns the verdict about a tool, and the rule that it comes from in
// words.
func (r Rules) Judge(tool inference.ToolSpec) (Verdict, string) {
	for _, list := range []struct {
		verdict  Verdict
		patterns []string
	}{{Deny, r.Deny}, {Ask, r.Ask}, {Allow, r.Allow}} {
		for _, pattern := range list.patterns {
			if fits(pattern, tool) {
				return list.verdict, fmt.Sprintf("the rule %q", pattern)
			}
		}
	}
	if r.Default == "" {
		return Ask, "the default"
	}
	return r.Default, "the default"
}

func fits(pattern string, tool inference.ToolSpec) bool {
	of := tool.Name
	if kind, ok := strings.CutPrefix(pattern, kindPrefix); ok {
		pattern, of = kind, tool.Kind
	}
	ok, _ := path.Match(pattern, of) // Validate refused malformed patterns
	return ok
}
