package files

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

const listSchema inference.JSON = `{"type":"object","properties":{` +
	`"path":{"type":"string","description":"folder to list; default: the whole directory"},` +
	`"pattern":{"type":"string","description":"glob that the file's name must match, such as *.go"},` +
	`"sort":{"enum":["path","size"],"description":"by path, or the largest first"},` +
	`"limit":{"type":"integer","description":"how many files to return"}},"additionalProperties":false}`

type listArgs struct {
	Path    string `json:"path"`
	Pattern string `json:"pattern"`
	Sort    string `json:"sort"`
	Limit   int    `json:"limit"`
}

// Listing is the data of a list_files result.
type Listing struct {
	Path      string `json:"path"`
	Files     []File `json:"files"`     // the first of them
	Total     int    `json:"total"`     // files there are
	Bytes     int64  `json:"bytes"`     // in all of them
	Folders   int    `json:"folders"`   // below the path, itself not counted
	Kinds     []Kind `json:"kinds"`     // by extension, the most files first
	Truncated bool   `json:"truncated"` // the directory has more files than were looked at
}

// File is a file and its size in bytes.
type File struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

// Kind counts the files with one extension.
type Kind struct {
	Ext   string `json:"ext"` // with its dot; the whole name when it has none
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
}

func (p *Plugin) list(ctx context.Context, _ *phase.Context, in listArgs) (engine.Output, error) {
	start, err := clean(in.Path)
	if err != nil {
		return engine.Output{}, err
	}
	if _, err := path.Match(in.Pattern, ""); err != nil {
		return engine.Output{}, fmt.Errorf("files: pattern %q: %w", in.Pattern, err)
	}
	if in.Sort != "" && in.Sort != "path" && in.Sort != "size" {
		return engine.Output{}, fmt.Errorf("files: cannot sort by %q; use path or size", in.Sort)
	}
	l := Listing{Path: start, Files: []File{}, Kinds: []Kind{}}
	kinds := map[string]*Kind{}
	l.Truncated, err = p.walk(ctx, start, func(name string, info fs.FileInfo) error {
		if info == nil {
			if name != start {
				l.Folders++
			}
			return nil
		}
		if ok, _ := path.Match(in.Pattern, path.Base(name)); !ok && in.Pattern != "" {
			return nil
		}
		l.Total++
		l.Bytes += info.Size()
		l.Files = append(l.Files, File{name, info.Size()})
		ext := extension(name)
		if kinds[ext] == nil {
			kinds[ext] = &Kind{Ext: ext}
		}
		kinds[ext].Files++
		kinds[ext].Bytes += info.Size()
		return nil
	})
	if err != nil {
		return engine.Output{}, err
	}
	for _, k := range kinds {
		l.Kinds = append(l.Kinds, *k)
	}
	slices.SortFunc(l.Kinds, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(b.Files, a.Files), cmp.Compare(a.Ext, b.Ext))
	})
	if in.Sort == "size" {
		slices.SortFunc(l.Files, func(a, b File) int {
			return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(a.Path, b.Path))
		})
	}
	l.Files = l.Files[:min(len(l.Files), within(in.Limit, p.limits.Listed))]
	return output(l.text(), l)
}

func extension(name string) string {
	base := path.Base(name)
	if ext := path.Ext(base); ext != "" && ext != base {
		return ext
	}
	return base
}

// within returns what was asked for, but no more than the limit.
func within(asked, limit int) int {
	if asked <= 0 {
		return limit
	}
	return min(asked, limit)
}

func (l Listing) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s in %s\n", count(l.Total, "file"), size(l.Bytes), count(l.Folders, "folder"))
	for _, f := range l.Files {
		fmt.Fprintf(&b, "%8s  %s\n", size(f.Size), f.Path)
	}
	if n := l.Total - len(l.Files); n > 0 {
		fmt.Fprintf(&b, "and %d more\n", n)
	}
	if l.Truncated {
		b.WriteString("There are more files than could be looked at; list a folder.\n")
	}
	return b.String()
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func size(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	default:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
}
