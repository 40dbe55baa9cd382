package activecontext

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// preface begins the message.
const preface = "What follows is context, not a request. It is as of now and replaces what earlier messages show of it."

// leftOut is how much of a message is kept for naming what has no room.
const leftOut = 240

// page is the message as it grows.
type page struct {
	left  int // bytes that it may still grow
	parts []string
	out   []string // what was left out
}

// add adds content under a title, cut to size bytes or to the room there is. What has no
// room is left out under its name.
func (p *page) add(title, name, content string, size int) {
	if p.parts == nil {
		p.left -= len(preface) + leftOut
		p.parts = []string{preface}
	}
	const frame = len("\n\n=== , cut to its beginning ===\n")
	room := p.left - frame - len(title)
	if room < min(len(content), size) && room < 128 {
		p.out = append(p.out, name)
		return
	}
	if cut := min(size, room); len(content) > cut {
		content, title = head(content, cut), title+", cut to its beginning"
	}
	part := fmt.Sprintf("\n\n=== %s ===\n%s", title, content)
	p.parts = append(p.parts, part)
	p.left -= len(part)
}

// line adds a title without content.
func (p *page) line(title, name string) { p.add(title, name, "", 0) }

// pinned adds a file, whether there is one or not.
func (p *page) pinned(fsys fs.FS, file string, s Settings) {
	name := quote(file)
	switch content, err := read(fsys, file, s.MaxFileBytes); {
	case errors.Is(err, errNotShown):
		p.line(name+" is not a text file", name)
	case errors.Is(err, fs.ErrNotExist):
		p.line(name+" does not exist", name)
	case err != nil:
		p.line(name+" cannot be read", name)
	default:
		p.add(name, name, content, s.MaxFileBytes)
	}
}

// touched adds a file if there is one, by its name only if known has its content, and
// reports whether there is.
func (p *page) touched(fsys fs.FS, file string, s Settings, known string) bool {
	name := quote(file)
	content, err := read(fsys, file, s.MaxFileBytes)
	switch {
	case errors.Is(err, errNotShown) || errors.Is(err, fs.ErrNotExist):
		return false
	case err != nil:
		p.line(name+" cannot be read", name)
	case content != "" && len(content) <= s.MaxFileBytes && strings.Contains(known, content):
		p.line(name+" is unchanged since the last call about it", name)
	default:
		p.add(name, name, content, s.MaxFileBytes)
	}
	return true
}

// text returns the message, "" when there is nothing in it.
func (p *page) text() string {
	text := strings.Join(p.parts, "")
	if len(p.out) == 0 {
		return text
	}
	list, more := "", 0
	for _, name := range p.out {
		if more > 0 || len(list)+len(name) > leftOut-64 {
			more++
			continue
		}
		list += ", " + name
	}
	list = strings.TrimPrefix(list, ", ")
	switch {
	case more > 0 && list != "":
		list = fmt.Sprintf("%s and %d more", list, more)
	case more > 0:
		list = fmt.Sprintf("%d parts", more)
	}
	return text + "\n\n=== left out for want of room: " + list + " ==="
}
