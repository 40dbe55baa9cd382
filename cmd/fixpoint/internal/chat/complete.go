package chat

import (
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/ddd26017/fixpoint/plugins/slash"
)

// completion returns what completes lines as things stand. It may work for longer than
// the line is read.
func (s *Session) completion() func(line string) (int, []string) {
	commands := s.commands
	return func(line string) (int, []string) { return s.complete(commands, line) }
}

// complete completes the names of commands and their arguments, and paths below the
// directory elsewhere.
func (s *Session) complete(commands slash.Set, line string) (from int, candidates []string) {
	word := strings.LastIndexFunc(line, unicode.IsSpace) + 1
	name, _, command := slash.Split(line)
	switch {
	case strings.HasPrefix(line, "/") && word == 0:
		return 0, names(commands, line)
	case command && strings.HasPrefix(line, "/"):
		if c, err := commands.Lookup(name); err == nil {
			return s.argument(c, line, word)
		}
		return word, nil
	default:
		return word, s.paths(line[word:])
	}
}

// names lists the commands that begin so.
func names(commands slash.Set, start string) (all []string) {
	for c := range commands.All() {
		if name := "/" + c.Name(); strings.HasPrefix(name, start) {
			all = append(all, name)
		}
	}
	return all
}

// argument completes the last word of a command.
func (s *Session) argument(c slash.Command, line string, word int) (int, []string) {
	text := line[word:]
	own := c.Plugin() == Name
	switch {
	case own && c.Name() == "switch":
		return word, starting(s.threadIDs(), text)
	case own && c.Name() == "agent":
		var ids []string
		for _, a := range s.o.Agents {
			ids = append(ids, a.ID)
		}
		return word, starting(ids, text)
	case own:
		return word, nil
	}
	if _, value, is := strings.Cut(text, "="); is {
		return len(line) - len(value), s.paths(value)
	}
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal([]byte(c.Schema()), &schema) // one of another form has no names to offer
	var names []string
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		names = append(names, name+"=")
	}
	if names = starting(names, text); len(names) > 0 {
		return word, names
	}
	return word, s.paths(text)
}

// threadIDs lists the threads of the store. One that cannot be read offers none.
func (s *Session) threadIDs() []string {
	all, err := s.o.Store.Threads(context.Background())
	if err != nil {
		return nil
	}
	ids := make([]string, len(all))
	for i, t := range all {
		ids[i] = t.ID
	}
	return ids
}

func starting(all []string, with string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(text string) bool { return !strings.HasPrefix(text, with) })
}

// paths lists the paths that begin so, folders with a slash behind them. Those with a dot
// in front are for whoever types it.
func (s *Session) paths(start string) []string {
	if s.o.Dir == nil || start == "" {
		return nil
	}
	dir, base := path.Split(start)
	folder := path.Clean("./" + dir)
	if !fs.ValidPath(folder) || strings.HasPrefix(dir, "/") {
		return nil
	}
	entries, err := fs.ReadDir(s.o.Dir, folder)
	if err != nil {
		return nil
	}
	var all []string
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, base) || strings.HasPrefix(name, ".") && !strings.HasPrefix(base, ".") {
			continue
		}
		if e.IsDir() {
			name += "/"
		}
		all = append(all, dir+name)
	}
	return all
}
