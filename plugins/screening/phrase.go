package screening

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// place is where something was found in a text.
type place struct{ from, to int }

// step is one word of a phrase of a rule: it may stand up to reach words after the step
// before.
type step struct{ rule, phrase, index, reach int }

// index finds the phrases of rules word by word, in one pass over a text whatever their
// number: it knows for each word the steps that the word can be.
type index struct {
	steps   map[string][]step // of one word the later steps of a phrase come first
	phrases []int             // number of steps of each phrase
}

// phrases is the index of the built-in rules.
var phrases = func() index {
	x := index{steps: map[string][]step{}}
	for i, r := range builtin {
		for _, p := range r.phrases {
			x.add(i, p)
		}
	}
	for _, steps := range x.steps {
		// So that one word is not taken for two steps in a row.
		slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(b.index, a.index) })
	}
	return x
}()

// add adds a phrase: alternatives for each word, separated by "|", and between words how
// many others may stand there.
func (x *index) add(rule int, phrase string) {
	n, reach := 0, 1
	for _, part := range strings.Fields(phrase) {
		if others, err := strconv.Atoi(part); err == nil {
			reach = others + 1
			continue
		}
		for _, word := range strings.Split(part, "|") {
			x.steps[word] = append(x.steps[word], step{rule: rule, phrase: len(x.phrases), index: n, reach: reach})
		}
		n, reach = n+1, 1
	}
	x.phrases = append(x.phrases, n)
}

// longest is more than the steps of any phrase.
const longest = 8

// progress is how far a text came with a phrase: for each step the latest word that was
// it, counted from 1, and where the phrase began then.
type progress [longest]struct{ word, from int }

// find returns the first place of each rule that the text has, by the rule's number.
func (x index) find(text string) map[int]place {
	found := map[int]place{}
	came := make([]progress, len(x.phrases))
	n := 0
	for from, to := range words(text) {
		n++
		word := strings.TrimSuffix(strings.Trim(text[from:to], "'"), "'s")
		steps := x.steps[word]
		if steps == nil && strings.IndexByte(word, '@') >= 0 {
			steps = x.steps["@"]
		}
		for _, s := range steps {
			p, begun := &came[s.phrase], from
			if s.index > 0 {
				before := p[s.index-1]
				if before.word == 0 || n-before.word > s.reach {
					continue
				}
				begun = before.from
			}
			if s.index+1 < x.phrases[s.phrase] {
				p[s.index] = struct{ word, from int }{n, begun}
			} else if _, ok := found[s.rule]; !ok {
				found[s.rule] = place{begun, to}
			}
		}
	}
	return found
}

// words yields where the words of a text begin and end: letters, digits, and what may
// be inside a word or an address.
func words(text string) func(yield func(from, to int) bool) {
	return func(yield func(from, to int) bool) {
		begun := -1
		for i := 0; i < len(text); {
			r, n := rune(text[i]), 1
			if r >= utf8.RuneSelf {
				r, n = utf8.DecodeRuneInString(text[i:])
			}
			inside := r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '\'' || r == '@' ||
				r >= utf8.RuneSelf && r != utf8.RuneError && unicode.In(r, unicode.L, unicode.N)
			switch {
			case inside && begun < 0:
				begun = i
			case !inside && begun >= 0:
				if !yield(begun, i) {
					return
				}
				begun = -1
			}
			i += n
		}
		if begun >= 0 {
			yield(begun, len(text))
		}
	}
}
