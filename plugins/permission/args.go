package permission

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/inference"
)

// member is an argument as it is written. An object may have several of one name, and
// tools written in Go take a name in any case.
type member struct {
	name  string
	value json.RawMessage
}

// membersOf returns the members of an object in order, or none.
func membersOf(args inference.JSON) (list []member) {
	dec := json.NewDecoder(strings.NewReader(string(args)))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	for dec.More() {
		name, err := dec.Token()
		var value json.RawMessage
		if err == nil {
			err = dec.Decode(&value)
		}
		text, ok := name.(string)
		if err != nil || !ok {
			return nil // the engine lets no such call through
		}
		list = append(list, member{text, value})
	}
	return list
}

// fitsArgs reports whether the arguments fit. A rule that allows is strict: every way to
// read an argument must fit. For the others one is enough.
func (r Rule) fitsArgs(given []member, root string, strict bool) bool {
	for name, pattern := range r.Args {
		members, texts, found, plain := 0, 0, 0, true
		for _, m := range given {
			if !strings.EqualFold(m.name, name) {
				continue
			}
			members++
			all, simple := textsOf(m.value)
			plain = plain && simple && m.name == name && members == 1
			for _, text := range all {
				texts++
				if fits(pattern, text, root, strict) {
					found++
				}
			}
		}
		if found == 0 || strict && (!plain || found < texts) {
			return false
		}
	}
	return true
}

// textsOf returns the texts in a value, and whether it is just a text or a list of them.
// Numbers, true, false and null are their JSON.
func textsOf(value json.RawMessage) (texts []string, simple bool) {
	simple = true
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	for {
		token, err := dec.Token()
		switch t := token.(type) {
		case json.Delim:
			simple = simple && t != '{'
		case string:
			texts = append(texts, t)
		case nil:
			if err != nil { // its end: it came from JSON
				return texts, simple
			}
			texts = append(texts, "null")
		default:
			texts = append(texts, fmt.Sprint(t))
		}
	}
}

func fits(pattern, text, root string, strict bool) bool {
	readings, sure := readingsOf(text, root, strict)
	if !sure {
		return !strict
	}
	pattern = path.Clean(pattern)
	for _, reading := range readings {
		ok := match(strings.Split(pattern, "/"), strings.Split(reading, "/"), strict)
		if !ok && !strict { // some file systems ignore case
			ok = match(strings.Split(fold(pattern), "/"), strings.Split(fold(reading), "/"), false)
		}
		if ok != strict {
			return ok
		}
	}
	return strict
}

func fold(text string) string { return strings.ToLower(strings.ToUpper(text)) }

// longestPath is more than any system takes.
const longestPath = 32 << 10

// readingsOf returns what a tool may take the text for, as paths with slashes. It is not
// sure when the file system does not tell where a path leads.
func readingsOf(text, root string, strict bool) (readings []string, sure bool) {
	spellings := []string{text}
	if trimmed := strings.TrimSpace(text); trimmed != text { // as some tools do
		spellings = append(spellings, trimmed)
	}
	if strings.Contains(text, `\`) { // a slash to some systems
		for _, s := range slices.Clone(spellings) {
			spellings = append(spellings, strings.ReplaceAll(s, `\`, "/"))
		}
	}
	for _, s := range spellings {
		clean := path.Clean(s)
		if root == "" || !strict {
			readings = append(readings, clean)
		}
		if !strict { // a tool may hold its own root for /
			readings = append(readings, s, strings.TrimLeft(clean, "/"), strings.TrimPrefix(path.Clean("/"+s), "/"))
		}
		if root != "" && len(s) > longestPath {
			return nil, false
		}
		if root != "" {
			more, err := below(root, s)
			if err != nil {
				return nil, false
			}
			readings = append(readings, more...)
		}
	}
	return readings, true
}

// below returns where a path leads, as it is written and with symbolic links resolved:
// relative to root if that is inside of it, else absolute.
func below(root, name string) ([]string, error) {
	root, raw := filepath.Clean(root), filepath.FromSlash(name)
	if !filepath.IsAbs(raw) {
		raw = root + string(filepath.Separator) + raw
	}
	clean := filepath.Clean(raw)
	base, err := follow(root)
	if err != nil {
		return nil, err
	}
	readings := []string{relative(root, clean)}
	for _, spelling := range []string{clean, raw} { // link/.. is not where link is
		target, err := follow(spelling)
		if err != nil {
			return nil, err
		}
		readings = append(readings, relative(base, target))
	}
	return readings, nil
}

func relative(root, full string) string {
	rel, err := filepath.Rel(root, full)
	if err != nil || !filepath.IsLocal(rel) {
		rel = full
	}
	return filepath.ToSlash(rel)
}

// follow resolves the symbolic links of what exists of an absolute path.
func follow(name string) (at string, err error) {
	volume := filepath.VolumeName(name)
	at = volume + string(filepath.Separator)
	gone := 0 // how many elements at the end of at are below nothing that exists
	for _, step := range strings.Split(name[len(volume):], string(filepath.Separator)) {
		switch step {
		case "", ".":
			continue
		case "..":
			at, gone = filepath.Dir(at), max(gone-1, 0)
			continue
		}
		if !os.IsPathSeparator(at[len(at)-1]) {
			at += string(filepath.Separator)
		}
		if at += step; gone > 0 {
			gone++
			continue
		}
		info, err := os.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrPermission):
			return "", err
		case err != nil:
			gone = 1
		case info.Mode().Type() == fs.ModeSymlink:
			if at, err = filepath.EvalSymlinks(at); err != nil { // it leads to nothing, or to itself
				return "", err
			}
		}
	}
	return at, nil
}

// match matches elements of paths; ** stands for any number of them. Strictly, wildcards
// stand for no "..", and at the start not for the root.
func match(pattern, elements []string, strict bool) bool {
	done := make([]bool, len(elements)+1) // the pattern so far matches that many elements
	done[0] = true
	for _, p := range pattern {
		next := make([]bool, len(done))
		next[0] = p == "**" && done[0]
		for i, e := range elements {
			switch {
			case p == "**":
				next[i+1] = done[i+1] || next[i] && wild(e, strict)
			case p == e:
				next[i+1] = done[i]
			default:
				ok, _ := path.Match(p, e) // Validate refused malformed patterns
				next[i+1] = ok && done[i] && wild(e, strict)
			}
		}
		done = next
	}
	return done[len(elements)]
}

func wild(element string, strict bool) bool { return !strict || element != "" && element != ".." }
