package allowlist

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// denied looks for a command that a rule denies anywhere in the files: also in
// substitutions, functions and behind wrappers, as far as it can be seen.
func (s Settings) denied(files []*syntax.File, depth int) (rule string, found bool) {
	if len(s.Deny) == 0 {
		return "", false
	}
	for _, f := range files {
		syntax.Walk(f, func(n syntax.Node) bool {
			if c, ok := n.(*syntax.CallExpr); ok && !found {
				rule, found = s.denies(c, depth)
			}
			return !found
		})
	}
	return rule, found
}

func (s Settings) denies(c *syntax.CallExpr, depth int) (string, bool) {
	var words []string // "" where it is not known
	for _, arg := range c.Args {
		w, err := read(arg)
		if err != nil || w.is != literal {
			w.text = ""
		}
		words = append(words, w.text)
	}
	if len(words) == 0 {
		return "", false
	}
	commands := words[:1]
	if runs(program(words[0])) {
		commands = words
	}
	for _, r := range s.Deny {
		if fixed, _ := r.fixed(); begins(fixed, commands, words) {
			return r.Run, true
		}
	}
	for _, w := range commands[1:] { // sh -c, eval
		if f, err := syntax.NewParser().Parse(strings.NewReader(w), ""); err == nil && depth < 3 {
			if rule, ok := s.denied([]*syntax.File{f}, depth+1); ok {
				return rule, true
			}
		}
	}
	return "", false
}

// runs reports whether a command is known to run what is among its arguments.
func runs(name string) bool {
	return wrappers[name] || never[name] || exact[name] || name == "find" || name == "fd"
}

// begins reports whether words begin with the pattern's at one of the commands, which
// are the first of them; flags and their values aside.
func begins(pattern, commands, words []string) bool {
	at := make([]bool, len(words)+2) // where the next word of the pattern may be
	for i, w := range commands {
		at[i+1] = fits(pattern[0], path.Base(w))
	}
	for _, p := range pattern[1:] {
		next := make([]bool, len(at))
		for i, w := range words {
			if !at[i] {
				continue
			}
			next[i+1] = fits(p, w)
			if strings.HasPrefix(w, "-") && !strings.HasPrefix(p, "-") {
				at[i+1], at[i+2] = true, true
			}
		}
		at = next
	}
	return slices.Contains(at, true)
}

func fits(pattern, word string) bool {
	ok, _ := path.Match(pattern, word) // Validate refused malformed patterns
	return ok || pattern == word
}
