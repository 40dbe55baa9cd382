package allowlist

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/inference"
)

// Rule is a pattern of simple commands. In JSON it is an object, or the text of Run
// alone.
type Rule struct {
	// Run is the command and its first arguments. Each word is a pattern as path.Match
	// takes it, but the first, which is a name; a last * stands for any arguments.
	Run string `json:"run"`
	// Flags lists patterns of the arguments with a dash that may follow the words of Run.
	// If it is nil, all that are not known to be dangerous may where any argument may. One
	// without wildcards is allowed also if it is dangerous.
	Flags []string `json:"flags,omitempty"`
	// Wraps says that the command runs another one, which must be allowed itself.
	Wraps bool `json:"wraps,omitempty"`
}

// Rules returns a rule for each of the texts.
func Rules(runs ...string) []Rule {
	rules := make([]Rule, len(runs))
	for i, run := range runs {
		rules[i].Run = run
	}
	return rules
}

// UnmarshalJSON reads an object, strictly, or a text.
func (r *Rule) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(text, []byte(`"`)) {
		*r = Rule{}
		return json.Unmarshal(text, &r.Run)
	}
	type plain Rule
	var p plain
	if err := inference.JSON(text).Decode(&p); err != nil {
		return fmt.Errorf("allowlist: a rule is a text, or an object with run, flags and wraps: %w", err)
	}
	*r = Rule(p)
	return nil
}

func (r Rule) command() string {
	if words := strings.Fields(r.Run); len(words) > 0 {
		return words[0]
	}
	return ""
}

// fixed returns the words of the rule, and whether any arguments may follow.
func (r Rule) fixed() (words []string, more bool) {
	words = strings.Fields(r.Run)
	if last := len(words) - 1; last > 0 && words[last] == "*" {
		return words[:last], true
	}
	return words, false
}

func (r Rule) validate(allows bool) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("allowlist: the rule %q %s", r.Run, fmt.Sprintf(format, args...))
	}
	words, more := r.fixed()
	if len(words) == 0 || wild(words[0]) && words[0] != "[" {
		return bad("names no command; start it with one, without wildcards")
	}
	for _, pattern := range append(words[1:], r.Flags...) {
		if _, err := path.Match(pattern, ""); err != nil {
			return bad("has the malformed pattern %q", pattern)
		}
		if pattern == "*" {
			return bad("has a * that is not its last word; a part of a word is fine, such as ./*")
		}
	}
	for _, flag := range r.Flags {
		if !strings.HasPrefix(flag, "-") {
			return bad("lists the flag %q, which has no dash; arguments belong into run", flag)
		}
	}
	if !allows {
		if len(r.Flags) > 0 || r.Wraps {
			return bad("denies, so it has no flags and wraps nothing")
		}
		return nil
	}
	free := more || slices.ContainsFunc(append(words[1:], r.Flags...), wild)
	switch name := program(words[0]); {
	case never[name]:
		return bad("cannot be allowed: %s can run or change anything", name)
	case wrappers[name] && (!r.Wraps || len(words) > 1 || !more || len(r.Flags) > 0):
		return bad("is of a command that runs another one; write {\"run\": \"%s *\", \"wraps\": true}", words[0])
	case r.Wraps && !wrappers[name]:
		return bad("wraps nothing that is known; of these it is: env, nice, timeout, time, command, exec, sudo, xargs")
	case verbs[name] && free && verb(words) == "":
		return bad("must name what %s is to do, without wildcards, such as \"git log *\"", name)
	case exact[name] && (free || len(words) == 1) || exact[name+" "+verb(words)] && free:
		return bad("must have all its arguments, without wildcards: those of %s can be programs", name)
	}
	return nil
}

// verb returns the first operand of a rule, or "" if that is open.
func verb(words []string) string {
	for _, w := range words[1:] {
		if wild(w) {
			break
		}
		if !strings.HasPrefix(w, "-") {
			return w
		}
	}
	return ""
}

func wild(pattern string) bool { return strings.ContainsAny(pattern, `*?[\`) }

// allows reports whether the rule allows a command.
func (r Rule) allows(words []word) bool {
	fixed, more := r.fixed()
	if len(words) < len(fixed) {
		return false
	}
	for i, pattern := range fixed {
		same := words[i].text == pattern // a name has no wildcards, and [ is one
		if words[i].is != literal || !same && (i == 0 || !matches(pattern, words[i].text)) {
			return false
		}
	}
	name := fixed[0]
	for _, w := range words[len(fixed):] {
		switch {
		case w.is == unknown:
			if !more || r.Flags != nil || risky(name) {
				return false
			}
		case w.is == operand || len(w.text) < 2 || w.text[0] != '-':
			if !more || dangerous[program(name)].bare && (w.is == operand || dangerousFlag(name, w.text)) {
				return false
			}
		case slices.Contains(r.Flags, w.text) && !wild(w.text):
			// Somebody wrote just this.
		case dangerousFlag(name, w.text):
			return false
		case r.Flags == nil && more:
		case !slices.ContainsFunc(r.Flags, func(pattern string) bool { return matches(pattern, w.text) }):
			return false
		}
	}
	return true
}

// matches reports whether a word fits a pattern. What a wildcard stands for does not
// lead out of a folder, and makes no flag of what should be none.
func matches(pattern, text string) bool {
	if !wild(pattern) {
		return pattern == text
	}
	if slices.Contains(strings.Split(text, "/"), "..") || pattern[0] != '-' && strings.HasPrefix(text, "-") {
		return false
	}
	ok, _ := path.Match(pattern, text) // Validate refused malformed patterns
	return ok
}

var errInner = errors.New("what it wraps cannot be told")

// wrapped judges the command inside of another one.
func (w *walker) wrapped(words []word, r Rule) error {
	inner := words[1:]
	next := func() (string, bool) {
		if len(inner) == 0 || inner[0].is != literal {
			return "", false
		}
		return inner[0].text, true
	}
	switch program(words[0].text) {
	case "env":
		for {
			text, ok := next()
			name, _, assigns := strings.Cut(text, "=")
			if !ok || !assigns {
				break
			}
			if !slices.Contains(w.Variables, name) {
				return fmt.Errorf("it sets a variable that is not among %q", w.Variables)
			}
			inner = inner[1:]
		}
	case "nice":
		if text, _ := next(); text == "-n" && len(inner) > 1 && inner[1].is == literal && digits(inner[1].text) {
			inner = inner[2:]
		}
	case "timeout":
		if text, ok := next(); !ok || !digits(strings.TrimRight(text, "smhd")) {
			return errInner
		}
		inner = inner[1:]
	case "xargs": // adds what it reads
		inner = append(slices.Clone(inner), word{is: unknown})
	}
	// Options of the wrapper itself are not known here.
	if text, ok := next(); !ok || strings.HasPrefix(text, "-") || w.depth > 4 {
		return errInner
	}
	w.depth++
	defer func() { w.depth-- }()
	w.allowed(r)
	return w.command(inner)
}
