package screening

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ddd26017/fixpoint/inference"
)

// Hit is one rule that a part of a result matched.
type Hit struct {
	Rule    string `json:"rule"`
	Field   string `json:"field"`   // "content" or "details"
	Excerpt string `json:"excerpt"` // the first place in plain form, cut to 80 bytes
}

const longestExcerpt = 80

// scanner finds what the settings want to be found in results of a tool.
type scanner struct {
	without []string
	own     []ownRule
}

type ownRule struct {
	name string
	expr *regexp.Regexp
}

// scanner returns the scanner for a tool.
func (s Settings) scanner(tool string) scanner {
	sc := scanner{without: s.Without}
	for _, p := range s.Patterns {
		if !p.covers(tool) {
			continue
		}
		if expr, err := regexp.Compile(p.Regexp); err == nil { // Validate refused others
			sc.own = append(sc.own, ownRule{p.Name, expr})
		}
	}
	return sc
}

// scan returns the rules that a text matches, in order of their names and then the own
// ones.
func (sc scanner) scan(field, text string) (hits []Hit) {
	if text == "" {
		return nil
	}
	note := func(rule, first string) {
		if slices.Contains(sc.without, rule) || slices.ContainsFunc(hits, func(h Hit) bool { return h.Rule == rule }) {
			return
		}
		first = first[:min(len(first), 8*longestExcerpt)]
		hits = append(hits, Hit{Rule: rule, Field: field, Excerpt: excerpt(plain(first, utf8.DecodeRuneInString))})
	}
	if found := hiddenText(text); found != "" {
		note(hidden, found)
	}
	plain := forms(text)
	for _, form := range plain {
		found := phrases.find(form)
		for i, r := range builtin {
			if at, ok := found[i]; ok {
				note(r.name, form[at.from:at.to])
			}
			for _, literal := range r.literals {
				if strings.Contains(form, literal) {
					note(r.name, literal)
				}
			}
		}
	}
	slices.SortFunc(hits, func(a, b Hit) int { return cmp.Compare(a.Rule, b.Rule) })
	for _, r := range sc.own {
		for _, form := range append([]string{text}, plain...) {
			if at := r.expr.FindStringIndex(form); at != nil {
				note(r.name, form[at[0]:at[1]])
			}
		}
	}
	return hits
}

func excerpt(s string) string {
	n := min(len(s), longestExcerpt)
	for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.ToValidUTF8(s[:n], "\uFFFD")
}

// texts returns the texts in a JSON text, names of members included, in order. What
// is no JSON is taken as a text.
func texts(details inference.JSON) string {
	d := json.NewDecoder(strings.NewReader(string(details)))
	d.UseNumber() // a number may be too large for any type
	var b strings.Builder
	for {
		switch token, err := d.Token(); {
		case errors.Is(err, io.EOF):
			return b.String()
		case err != nil:
			return string(details)
		default:
			if s, ok := token.(string); ok {
				b.WriteString(s)
				b.WriteByte('\n')
			}
		}
	}
}
