package allowlist

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// LongestLine is the number of bytes of the longest line that is judged.
const LongestLine = 8 << 10

// dialects are the languages that a line is read in. Which shell the tool runs is not
// known, so the line must be harmless in each.
var dialects = []syntax.LangVariant{syntax.LangPOSIX, syntax.LangBash, syntax.LangMirBSDKorn, syntax.LangZsh}

// Judge returns the verdict about a command line and, in words, why.
func (s Settings) Judge(line string) (Verdict, string) {
	if err := clean(line); err != nil {
		return Unsure, err.Error()
	}
	var files []*syntax.File
	var unsure error
	for _, dialect := range dialects {
		f, err := syntax.NewParser(syntax.Variant(dialect)).Parse(strings.NewReader(line), "")
		if err != nil {
			unsure = fmt.Errorf("it cannot be read as %s: %w", dialect, err)
			continue
		}
		files = append(files, f)
	}
	if rule, ok := s.denied(files, 0); ok {
		return Denied, fmt.Sprintf("it runs what the rule %q denies", rule)
	}
	if unsure != nil {
		return Unsure, unsure.Error()
	}
	w := walker{Settings: s}
	for _, f := range files {
		if err := w.stmts(f.Stmts); err != nil {
			return Unsure, err.Error()
		}
	}
	if len(w.by) == 0 {
		return Unsure, "there is no command in it"
	}
	return Approved, "allowed by " + strings.Join(w.by, ", ")
}

// clean refuses text that people, this package and a shell may see differently.
func clean(line string) error {
	switch {
	case len(line) > LongestLine:
		return fmt.Errorf("it is longer than %d bytes", LongestLine)
	case !utf8.ValidString(line):
		return fmt.Errorf("it is not UTF-8")
	case strings.Contains(line, "\\\n"):
		return fmt.Errorf("it goes on after a backslash at the end of a line")
	}
	for _, r := range line {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) || r == '\u2800' {
			return fmt.Errorf("it has the character %U, which does not show", r)
		}
		if r == utf8.RuneError {
			return fmt.Errorf("it has the character %U, which stands for what could not be read", r)
		}
	}
	return nil
}

// walker judges the parts of a line; an error is why it is not approved.
type walker struct {
	Settings
	by    []string // the rules that allowed commands, in order, each once
	depth int      // of wrapped commands
}

func (w *walker) stmts(lists ...[]*syntax.Stmt) error {
	for _, list := range lists {
		for _, s := range list {
			if err := w.stmt(s); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *walker) stmt(s *syntax.Stmt) error {
	if s.Background || s.Coprocess || s.Disown {
		return fmt.Errorf("it runs a command in the background")
	}
	for _, r := range s.Redirs {
		if err := redirect(r); err != nil {
			return err
		}
	}
	if call, ok := s.Cmd.(*syntax.CallExpr); len(s.Redirs) > 0 && (s.Cmd == nil || ok && len(call.Args) == 0) {
		return fmt.Errorf("it redirects without a command, for which some shells run one of their own")
	}
	switch c := s.Cmd.(type) {
	case nil:
		return nil
	case *syntax.CallExpr:
		return w.simple(c)
	case *syntax.BinaryCmd:
		if c.Op != syntax.AndStmt && c.Op != syntax.OrStmt && c.Op != syntax.Pipe {
			return fmt.Errorf("%s is no operator of all shells", c.Op)
		}
		return w.stmts([]*syntax.Stmt{c.X, c.Y})
	case *syntax.Block:
		return w.stmts(c.Stmts)
	case *syntax.Subshell:
		return w.stmts(c.Stmts)
	case *syntax.IfClause:
		for i := c; i != nil; i = i.Else {
			if err := w.stmts(i.Cond, i.Then); err != nil {
				return err
			}
		}
		return nil
	case *syntax.WhileClause:
		return w.stmts(c.Cond, c.Do)
	case *syntax.ForClause:
		return w.loop(c)
	case *syntax.CaseClause:
		return w.choice(c)
	case *syntax.TimeClause:
		if c.Stmt == nil {
			return nil
		}
		return w.stmt(c.Stmt)
	case *syntax.FuncDecl:
		return fmt.Errorf("it makes a function, which may take the name of an allowed command")
	default:
		return fmt.Errorf("it has a command of a kind that not all shells have, or that evaluates expressions")
	}
}

func (w *walker) loop(c *syntax.ForClause) error {
	words, ok := c.Loop.(*syntax.WordIter)
	if !ok || c.Select || c.Braces {
		return fmt.Errorf("it has a loop of a kind that not all shells have")
	}
	if err := w.variable(words.Name); err != nil {
		return err
	}
	if err := readable(words.Items); err != nil {
		return err
	}
	return w.stmts(c.Do)
}

func (w *walker) choice(c *syntax.CaseClause) error {
	if c.Braces {
		return fmt.Errorf("it has a case of a kind that not all shells have")
	}
	if err := readable([]*syntax.Word{c.Word}); err != nil {
		return err
	}
	for _, item := range c.Items {
		if err := readable(item.Patterns); err != nil {
			return err
		}
		if err := w.stmts(item.Stmts); err != nil {
			return err
		}
	}
	return nil
}

func readable(words []*syntax.Word) error {
	for _, one := range words {
		if _, err := read(one); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) variable(name *syntax.Lit) error {
	if name == nil || !slices.Contains(w.Variables, name.Value) {
		return fmt.Errorf("it sets a variable that is not among %q", w.Variables)
	}
	return nil
}

// redirect allows what cannot write a file, and reads none: /dev/null, copies of
// descriptors and texts in the line itself.
func redirect(r *syntax.Redirect) error {
	if r.N != nil && !standard(r.N.Value) {
		return fmt.Errorf("it redirects a descriptor that is not of standard input or output")
	}
	to, err := read(r.Word)
	if err != nil {
		return err
	}
	switch r.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrIn, syntax.RdrAll, syntax.AppAll:
		if to.is != literal || to.text != "/dev/null" {
			return fmt.Errorf("it redirects to or from a file")
		}
	case syntax.DplIn, syntax.DplOut:
		if to.is != literal || to.text != "-" && !standard(to.text) {
			return fmt.Errorf("it redirects to or from a file, or what the shell may have open besides")
		}
	case syntax.Hdoc, syntax.DashHdoc:
		if to.is != literal || strings.Trim(to.text, letters) != "" || to.text == "" {
			return fmt.Errorf("its here-document ends with more than a name")
		}
		for _, part := range parts(r.Hdoc) {
			if _, ok := part.(*syntax.Lit); !ok {
				return fmt.Errorf("its here-document has expansions")
			}
		}
	default:
		return fmt.Errorf("it has a redirection that not all shells have, or that writes")
	}
	return nil
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"

func parts(w *syntax.Word) []syntax.WordPart {
	if w == nil {
		return nil
	}
	return w.Parts
}

// standard reports whether a descriptor is that of input, output or errors.
func standard(text string) bool { return text == "0" || text == "1" || text == "2" }

func digits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

func (w *walker) simple(c *syntax.CallExpr) error {
	for _, a := range c.Assigns {
		if err := w.variable(a.Name); err != nil {
			return err
		}
		value, err := read(a.Value)
		if err != nil {
			return err
		}
		if a.Append || a.Naked || a.Index != nil || a.Array != nil || value.is != literal {
			return fmt.Errorf("it sets %s to more than a text", a.Name.Value)
		}
	}
	if len(c.Args) == 0 {
		return nil
	}
	words := make([]word, len(c.Args))
	for i, arg := range c.Args {
		var err error
		if words[i], err = read(arg); err != nil {
			return err
		}
	}
	return w.command(words)
}

// command judges a simple command, and the one inside if it wraps one.
func (w *walker) command(words []word) error {
	name := words[0]
	if name.is != literal {
		return fmt.Errorf("which command it runs is known only when it runs")
	}
	if never[name.text] {
		return fmt.Errorf("%s can run anything", name.text)
	}
	for _, r := range w.Allow {
		if r.Wraps && r.command() == name.text {
			return w.wrapped(words, r)
		}
	}
	for _, r := range w.Allow {
		if !r.Wraps && r.allows(words) {
			w.allowed(r)
			return nil
		}
	}
	return fmt.Errorf("no rule allows %s with these arguments", name.text)
}

func (w *walker) allowed(r Rule) {
	if text := fmt.Sprintf("%q", r.Run); !slices.Contains(w.by, text) {
		w.by = append(w.by, text)
	}
}
