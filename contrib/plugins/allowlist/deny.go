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
	for i, w := range words {
		if i > 0 && !runs(program(words[0])) {
			break // only the first word is a command
		}
		for _, r := range s.Deny {
			if fixed, _ := r.fixed(); fits(fixed[0], path.Base(w)) && begins(fixed[1:], words[i+1:]) {
				return r.Run, true
			}
		}
		if i > 0 && depth < 3 { // sh -c, eval
			if f, err := syntax.NewParser().Parse(strings.NewReader(w), ""); err == nil {
				if rule, ok := s.denied([]*syntax.File{f}, depth+1); ok {
					return rule, true
				}
			}
		}
	}
	return "", false
}

// runs reports whether a command is known to run what is among its arguments.
func runs(name string) bool {
	return wrappers[name] || never[name] || exact[name] || name == "find" || name == "fd"
}

// begins reports whether words begin with the pattern's, flags and their values aside.
func begins(pattern, words []string) bool {
	at := make([]bool, len(words)+2) // where the next word of the pattern may be
	at[0] = true
	for _, p := range pattern {
		next := make([]bool, len(at))
		for i, w := range words {
			if !at[i] {
				continue
			}
			next[i+1] = next[i+1] || fits(p, w)
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
