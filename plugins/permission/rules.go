package permission

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
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

	Abstain Verdict = "abstain" // no opinion: the call is left to other gates; for Rules.Default
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

// Rule fits calls of some tools, and of these those with some arguments. In JSON it is
// an object, or the text of Tool alone.
type Rule struct {
	// Tool is a tool's name or a pattern of names as path.Match takes it, or the same
	// for the tool's kind behind "kind:".
	Tool string `json:"tool"`
	// Args maps names of arguments to patterns of their values; all must fit. See the
	// package for how.
	Args map[string]string `json:"args,omitempty"`
}

// Tools returns a rule for each of the patterns, about calls with any arguments.
func Tools(patterns ...string) []Rule {
	rules := make([]Rule, len(patterns))
	for i, p := range patterns {
		rules[i].Tool = p
	}
	return rules
}

// UnmarshalJSON reads an object, strictly, or a text.
func (r *Rule) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(text, []byte(`"`)) {
		*r = Rule{}
		return json.Unmarshal(text, &r.Tool)
	}
	type plain Rule
	var p plain
	if err := inference.JSON(text).Decode(&p); err != nil {
		return fmt.Errorf("permission: a rule is a pattern of tools, or an object with tool and args: %w", err)
	}
	*r = Rule(p)
	return nil
}

// String returns the rule as it is written in a section.
func (r Rule) String() string {
	if len(r.Args) == 0 {
		return fmt.Sprintf("%q", r.Tool)
	}
	text, _ := inference.ToJSON(r) // texts can always be written
	return string(text)
}

const kindPrefix = "kind:"

func (r Rule) validate() error {
	bad := func(pattern string, err error) error {
		return fmt.Errorf("permission: %q is no pattern as path.Match takes it: %w", pattern, err)
	}
	if r.Tool == "" {
		return fmt.Errorf("permission: the rule %s names no tool; use \"*\" for all", r)
	}
	if _, err := path.Match(strings.TrimPrefix(r.Tool, kindPrefix), ""); err != nil {
		return bad(r.Tool, err)
	}
	for name, pattern := range r.Args {
		if name == "" || pattern == "" {
			return fmt.Errorf("permission: the rule %s has an argument without a name or a pattern; \"**\" fits any text", r)
		}
		for _, element := range strings.Split(pattern, "/") {
			if _, err := path.Match(element, ""); err != nil {
				return bad(pattern, err)
			}
		}
	}
	return nil
}

// fitsTool reports whether the rule is about the tool, whatever the arguments are.
func (r Rule) fitsTool(tool inference.ToolSpec) bool {
	pattern, of := r.Tool, tool.Name
	if kind, ok := strings.CutPrefix(pattern, kindPrefix); ok {
		pattern, of = kind, tool.Kind
	}
	ok, _ := path.Match(pattern, of) // Validate refused malformed patterns
	return ok
}

// Rules is the content of the section.
type Rules struct {
	Allow []Rule `json:"allow"`
	Ask   []Rule `json:"ask"`
	Deny  []Rule `json:"deny"`
	// Default is for calls that no rule fits; "" means Ask.
	Default Verdict `json:"default"`
	// Unattended is for questions that nobody can be asked; "" means UnattendedDeny.
	Unattended Unattended `json:"unattended"`
	// Root is the absolute path of the directory that the tools' relative paths start
	// from. If it is set, arguments are taken relative to it, with symbolic links
	// resolved.
	Root string `json:"root"`
}

// Section is the section that holds the rules.
var Section = engine.NewConfigKey(Name, engine.ConfigOptions[Rules]{Check: Rules.Validate})

// Validate returns what is wrong with the rules, or nil.
func (r Rules) Validate() error {
	if r.Default != "" && !slices.Contains([]Verdict{Allow, Ask, Deny, Abstain}, r.Default) {
		return fmt.Errorf("permission: default is %q; use allow, ask, deny or abstain", r.Default)
	}
	if r.Unattended != "" && !slices.Contains([]Unattended{UnattendedDeny, UnattendedApprove, UnattendedWait}, r.Unattended) {
		return fmt.Errorf("permission: unattended is %q; use deny, approve or wait", r.Unattended)
	}
	if r.Root != "" && !filepath.IsAbs(r.Root) {
		return fmt.Errorf("permission: root is %q; use an absolute path", r.Root)
	}
	var faults []error
	for _, rule := range slices.Concat(r.Allow, r.Ask, r.Deny) {
		faults = append(faults, rule.validate())
	}
	return errors.Join(faults...)
}

// Judge returns the verdict about a call of a tool without arguments, and the rule that
// it comes from in words.
func (r Rules) Judge(tool inference.ToolSpec) (Verdict, string) { return r.JudgeCall(tool, "") }

// JudgeCall returns the verdict about a call of a tool with these arguments, and the rule
// that it comes from in words. With a Root it looks at the file system.
func (r Rules) JudgeCall(tool inference.ToolSpec, args inference.JSON) (Verdict, string) {
	given := membersOf(args)
	for _, list := range []struct {
		verdict Verdict
		rules   []Rule
	}{{Deny, r.Deny}, {Ask, r.Ask}, {Allow, r.Allow}} {
		for _, rule := range list.rules {
			if rule.fitsTool(tool) && rule.fitsArgs(given, r.Root, list.verdict == Allow) {
				return list.verdict, fmt.Sprintf("the rule %s", rule)
			}
		}
	}
	if r.Default == "" {
		return Ask, "the default"
	}
	return r.Default, "the default"
}
