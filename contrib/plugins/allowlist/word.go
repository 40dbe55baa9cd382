package allowlist

import (
	"fmt"
	"reflect"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// certainty is how much of a word can be known before the shell expands it.
type certainty uint8

const (
	literal certainty = iota // the text, all of it
	operand                  // one or more words, none of which starts with a dash
	unknown                  // any words, or none
)

// word is one word of a simple command.
type word struct {
	text string // of a literal
	is   certainty
}

func (w word) String() string {
	if w.is == literal {
		return fmt.Sprintf("%q", w.text)
	}
	return "(expanded)"
}

// reader reads the parts of a word.
type reader struct {
	text   strings.Builder
	prefix bool // something that is no dash came before the first expansion
	is     certainty
}

// read returns what a word is known to be, or why it may do more than be a word.
func read(w *syntax.Word) (word, error) {
	if w == nil {
		return word{}, nil
	}
	switch lit := w.Lit(); lit {
	case "[", "]", "=": // of the command test: no patterns, and no path of a command
		return word{lit, literal}, nil
	}
	var r reader
	for i, part := range w.Parts {
		if err := r.part(part, i == 0, i == len(w.Parts)-1); err != nil {
			return word{is: unknown}, err
		}
	}
	return word{r.text.String(), r.is}, nil
}

func (r *reader) part(part syntax.WordPart, first, last bool) error {
	switch p := part.(type) {
	case *syntax.Lit:
		return r.bare(p.Value, first)
	case *syntax.SglQuoted:
		if p.Dollar {
			return fmt.Errorf("$'...' is quoting that not all shells have")
		}
		r.add(p.Value)
	case *syntax.DblQuoted:
		if p.Dollar {
			return fmt.Errorf(`$"..." is quoting that not all shells have`)
		}
		for i, inner := range p.Parts {
			switch q := inner.(type) {
			case *syntax.Lit:
				if err := r.quoted(q.Value, i == len(p.Parts)-1); err != nil {
					return err
				}
			case *syntax.ParamExp:
				if err := simple(q); err != nil {
					return err
				}
				if q.Param.Value == "@" { // many words
					r.expand(unknown)
				}
				r.expand(operand)
			default:
				return expansion(inner)
			}
		}
	case *syntax.ParamExp:
		if err := simple(p); err != nil {
			return err
		}
		r.expand(unknown)
	default:
		return expansion(part)
	}
	return nil
}

// add adds text that stands for itself.
func (r *reader) add(text string) {
	if r.text.Len() == 0 && text != "" && r.is == literal {
		r.prefix = text[0] != '-'
	}
	r.text.WriteString(text)
}

// expand notes an expansion. Behind a prefix its first word cannot be a flag.
func (r *reader) expand(to certainty) {
	if !r.prefix {
		to = unknown
	}
	r.is = max(r.is, to)
}

// bare reads text outside of quotes.
func (r *reader) bare(text string, first bool) error {
	for i := 0; i < len(text); i++ {
		c := text[i]
		before := byte(0)
		if i > 0 {
			before = text[i-1]
		}
		switch {
		case c == '\\' && i+1 == len(text):
			return fmt.Errorf("a backslash stands before nothing")
		case c == '\\' && strings.IndexByte("*?[", text[i+1]) >= 0: // not every shell leaves it alone
			i++
			r.expand(operand)
			r.text.WriteByte(text[i])
		case c == '\\':
			i++
			r.add(text[i : i+1])
		case strings.IndexByte("$`()<>|&;\"'", c) >= 0:
			return fmt.Errorf("%q may mean more than itself", c)
		case c == '!' && (text != "!" || !first):
			return fmt.Errorf("! may recall an earlier command")
		case c == '~' && first && i == 0: // the home of somebody, which is a path
			r.prefix = true
			r.expand(operand)
			r.text.WriteByte(c)
		case strings.IndexByte("*?[]{}^#", c) >= 0 || c == '~' && (before == '=' || before == ':') || c == '=' && first && i == 0:
			r.expand(operand)
			r.text.WriteByte(c)
		default:
			r.add(text[i : i+1])
		}
	}
	return nil
}

// quoted reads text inside of double quotes.
func (r *reader) quoted(text string, last bool) error {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && strings.IndexByte("$`\"\\", text[i+1]) >= 0:
			i++
			r.add(text[i : i+1])
		case c == '`' || c == '$' && (i+1 < len(text) || !last):
			return fmt.Errorf("%q may mean more than itself", c)
		case c == '!':
			return fmt.Errorf("! may recall an earlier command")
		default:
			r.add(text[i : i+1])
		}
	}
	return nil
}

// simple returns nil for $name and ${name}. Others can assign, or evaluate what the
// variable holds.
func simple(p *syntax.ParamExp) error {
	plain := syntax.ParamExp{Dollar: p.Dollar, Rbrace: p.Rbrace, Short: p.Short, Param: p.Param}
	if p.Param == nil || !reflect.DeepEqual(*p, plain) {
		return fmt.Errorf("of expansions of variables only $name and ${name} are known to be harmless")
	}
	return nil
}

func expansion(part syntax.WordPart) error {
	switch part.(type) {
	case *syntax.CmdSubst:
		return fmt.Errorf("it has a command substitution")
	case *syntax.ProcSubst:
		return fmt.Errorf("it has a process substitution")
	case *syntax.ArithmExp:
		return fmt.Errorf("it has arithmetic, which can run commands")
	default:
		return fmt.Errorf("it has an expansion that not all shells have")
	}
}
