package exechook

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// An interpreter that cannot open its script exits with 2, as Python and dash do, and
// so does a shell that cannot parse it: the very code that means no. What follows
// tells these from a no, on evidence that a program which ran does not leave: the
// command names an interpreter and a file that was not there when it started, and all
// that the error output has is a complaint that names it; or the error output has a
// shell's complaint about the syntax of the script or command, and the shell, asked to
// parse it and no more, complains too. An error output alone proves nothing: a program
// may well repeat there what the model wrote.

var interpreter = regexp.MustCompile(`^(sh|bash|dash|zsh|ksh|ash|python[0-9.]*|pypy[0-9.]*|node|nodejs|bun|tsx|ruby|perl|php|lua|Rscript|uv|deno)$`)

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// script is the file that a command has an interpreter run, or the folder that it
// should be in. The zero script is none that was found.
type script struct {
	word    string // as in the command, with variables expanded
	path    string // where it is
	by      string // the interpreter in the command, if there is one
	missing bool   // it could not be opened
}

// findIn looks for the script in a command line, which may change the folder first.
func findIn(line string, env map[string]string, dir string) script {
	words, rest := splitWords(line, env)
	if next, ok := strings.CutPrefix(rest, "&&"); ok && len(words) == 2 && words[0] == "cd" {
		if dir = within(dir, words[1]); !readable(dir) {
			return script{word: words[1], missing: true}
		}
		words, _ = splitWords(next, env)
	}
	return findScript(words, dir)
}

func within(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// findScript looks for the script in a simple command at the start of a shell's
// command line.
func findScript(words []string, dir string) script {
	for len(words) > 0 && (assignment.MatchString(words[0]) || words[0] == "exec" || words[0] == "env" || filepath.Base(words[0]) == "env") {
		words = words[1:]
	}
	switch {
	case len(words) == 0:
		return script{}
	case !interpreter.MatchString(filepath.Base(words[0])):
		return script{word: words[0], path: within(dir, words[0])} // the shell has a code of its own for one that is missing
	}
	for _, w := range words[1:] {
		switch {
		case w == "-c" || w == "-e" || w == "-m" || w == "--eval":
			return script{} // the program is in the command line itself
		case strings.HasPrefix(w, "-") || !strings.ContainsAny(w, "/."):
			continue // an option, or the value of one
		}
		return script{word: w, path: within(dir, w), by: words[0], missing: !readable(within(dir, w))}
	}
	return script{}
}

func readable(path string) bool {
	// Not opened when it is no plain file: opening a pipe would take part in it.
	info, err := os.Stat(path)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission)
	}
	if !info.Mode().IsRegular() {
		return true
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	_ = f.Close() // only read
	return true
}

// blame returns the cause when a program that exited with 2 may not have said no. It is
// to be believed only if parse, the arguments of a shell that parses what is blamed, fails.
func (s script) blame(l launch, shell, stderr string) (cause Cause, detail string, parse []string) {
	if s.missing && !strings.Contains(stderr, "\n") && strings.Contains(stderr, filepath.Base(s.word)) && noFile.MatchString(stderr) {
		return NoScript, s.word + " could not be opened", nil
	}
	for line := range strings.Lines(stderr) {
		for _, name := range []string{shell, filepath.Base(shell), s.word} {
			rest, ok := strings.CutPrefix(line, name+": ")
			switch {
			case !ok || name != s.word && shell == "" || !syntaxError.MatchString(rest):
			case name != s.word:
				return BadScript, "the shell could not parse the command", []string{shell, "-n", "-c", l.argv[len(l.argv)-1]}
			case s.shell() != "":
				return BadScript, "the shell could not parse " + name, []string{s.shell(), "-n", s.path}
			}
		}
	}
	return "", "", nil
}

// noFile is how interpreters that exit with 2 tell that they could not open a script, and
// a shell that there is no folder.
var noFile = regexp.MustCompile(`can't open |cannot open |can't cd to |Can't open `)

var shells = regexp.MustCompile(`^(sh|bash|dash|zsh|ksh|ash)$`)

// shell returns the shell that runs the script, "" if that is none.
func (s script) shell() string {
	words := []string{s.by}
	if s.by == "" {
		head := make([]byte, 256)
		info, err := os.Stat(s.path)
		if err != nil || !info.Mode().IsRegular() { // opening a pipe would take part in it
			return ""
		}
		if f, err := os.Open(s.path); err == nil {
			n, _ := io.ReadFull(f, head) // a short one is no error
			_ = f.Close()                // only read
			line, _, _ := strings.Cut(string(head[:n]), "\n")
			rest, _ := strings.CutPrefix(line, "#!")
			words = strings.Fields(rest)
		}
	}
	for _, w := range words {
		if shells.MatchString(filepath.Base(w)) {
			return w
		}
	}
	return ""
}

// syntaxError is how dash and bash go on after the name of what they could not parse.
var syntaxError = regexp.MustCompile(`^(-c: )?(line )?[0-9]+: [Ss]yntax error`)

// splitWords splits the start of a shell command line into words, up to the first
// operator, and returns the line from there on. It expands variables from env and
// returns nothing when there is something that it cannot expand.
func splitWords(line string, env map[string]string) (words []string, rest string) {
	var word strings.Builder
	open := false // a word is being read
	end := func() {
		if open {
			words = append(words, word.String())
			word.Reset()
		}
		open = false
	}
	for i := 0; i < len(line); i++ {
		switch c := line[i]; c {
		case ' ', '\t':
			end()
		case '\n', ';', '&', '|', '<', '>', '(', ')':
			end()
			return words, line[i:]
		case '\'':
			n := strings.IndexByte(line[i+1:], '\'')
			if n < 0 {
				return nil, ""
			}
			word.WriteString(line[i+1 : i+1+n])
			open, i = true, i+1+n
		case '"':
			n := strings.IndexByte(line[i+1:], '"')
			if n < 0 {
				return nil, ""
			}
			text, ok := expand(line[i+1:i+1+n], env)
			if !ok {
				return nil, ""
			}
			word.WriteString(text)
			open, i = true, i+1+n
		case '\\', '`', '*', '?', '[', '#':
			return nil, ""
		case '~':
			if open || i+1 < len(line) && line[i+1] != '/' {
				return nil, ""
			}
			word.WriteString(env["HOME"])
			open = true
		case '$':
			n := len(variable.FindString(line[i:]))
			if n == 0 {
				return nil, ""
			}
			text, _ := expand(line[i:i+n], env)
			word.WriteString(text)
			open, i = true, i+n-1
		default:
			word.WriteByte(c)
			open = true
		}
	}
	end()
	return words, ""
}

var variable = regexp.MustCompile(`^\$([A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\})`)

func expand(text string, env map[string]string) (string, bool) {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\', '`':
			return "", false
		case '$':
			found := variable.FindString(text[i:])
			if found == "" {
				return "", false
			}
			out.WriteString(env[strings.Trim(found, "${}")])
			i += len(found) - 1
		default:
			out.WriteByte(text[i])
		}
	}
	return out.String(), true
}
