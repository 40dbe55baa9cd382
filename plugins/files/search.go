package files

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

const searchSchema inference.JSON = `{"type":"object","properties":{` +
	`"pattern":{"type":"string","description":"regular expression (RE2), or a literal text"},` +
	`"literal":{"type":"boolean","description":"take the pattern literally"},` +
	`"ignore_case":{"type":"boolean"},` +
	`"path":{"type":"string","description":"file or folder to search; default: the whole directory"},` +
	`"glob":{"type":"string","description":"glob that the file's name must match, such as *.md"},` +
	`"limit":{"type":"integer","description":"how many lines to return"}},"required":["pattern"],"additionalProperties":false}`

type searchArgs struct {
	Pattern    string `json:"pattern"`
	Literal    bool   `json:"literal"`
	IgnoreCase bool   `json:"ignore_case"`
	Path       string `json:"path"`
	Glob       string `json:"glob"`
	Limit      int    `json:"limit"`
}

// Found is the data of a search_text result.
type Found struct {
	Pattern   string  `json:"pattern"`
	Matches   []Match `json:"matches"`   // the first of them, by path and line
	Total     int     `json:"total"`     // lines that match
	Files     int     `json:"files"`     // that hold them
	Searched  int     `json:"searched"`  // text files looked at
	Skipped   int     `json:"skipped"`   // files that are binary, too large or unreadable
	Truncated bool    `json:"truncated"` // the directory has more files than were looked at
}

// Match is a line of a file, counted from 1, cut if it is long.
type Match struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// longLine is the number of bytes of a matching line that are returned.
const longLine = 200

func (p *Plugin) search(ctx context.Context, _ *phase.Context, in searchArgs) (engine.Output, error) {
	start, err := clean(in.Path)
	if err != nil {
		return engine.Output{}, err
	}
	re, err := in.compile()
	if err != nil {
		return engine.Output{}, err
	}
	if _, err := path.Match(in.Glob, ""); err != nil {
		return engine.Output{}, fmt.Errorf("files: glob %q: %w", in.Glob, err)
	}
	limit := within(in.Limit, p.limits.Matches)
	f := Found{Pattern: in.Pattern, Matches: []Match{}}
	f.Truncated, err = p.walk(ctx, start, func(name string, info fs.FileInfo) error {
		if info == nil {
			return nil
		}
		if ok, _ := path.Match(in.Glob, path.Base(name)); !ok && in.Glob != "" {
			return nil
		}
		text, ok := p.text(name, info.Size())
		if !ok {
			f.Skipped++
			return nil
		}
		f.Searched++
		f.scan(name, text, re, limit)
		return nil
	})
	if err != nil {
		return engine.Output{}, err
	}
	return output(f.text(), f)
}

func (in searchArgs) compile() (*regexp.Regexp, error) {
	if in.Pattern == "" {
		return nil, fmt.Errorf("files: an empty pattern matches every line; say what to look for")
	}
	expr := in.Pattern
	if in.Literal {
		expr = regexp.QuoteMeta(expr)
	}
	if in.IgnoreCase {
		expr = "(?i)" + expr
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, fmt.Errorf("files: pattern %q is no regular expression: %w; set literal to look for it as it is", in.Pattern, err)
	}
	return re, nil
}

// text returns the content of a text file that is not too large.
func (p *Plugin) text(name string, size int64) ([]byte, bool) {
	if size > p.limits.FileBytes {
		return nil, false
	}
	file, err := p.tree.Open(name)
	if err != nil {
		return nil, false
	}
	// The file may grow while it is read.
	text, err := io.ReadAll(io.LimitReader(file, p.limits.FileBytes+1))
	if err != nil || file.Close() != nil || int64(len(text)) > p.limits.FileBytes || binary(text) {
		return nil, false
	}
	return text, true
}

// binary reports whether a file that begins so is not text.
func binary(head []byte) bool {
	const enough = 8 << 10
	cut := head[:min(len(head), enough)]
	if bytes.IndexByte(cut, 0) >= 0 {
		return true
	}
	for len(cut) > 0 {
		r, n := utf8.DecodeRune(cut)
		if r == utf8.RuneError && n == 1 {
			return utf8.FullRune(cut) // an incomplete rune at the end was cut off here
		}
		cut = cut[n:]
	}
	return false
}

// scan adds the matching lines of one file.
func (f *Found) scan(name string, text []byte, re *regexp.Regexp, limit int) {
	hit := false
	number := 0
	for line := range bytes.Lines(text) {
		number++
		line = bytes.TrimRight(line, "\r\n")
		if !re.Match(line) {
			continue
		}
		if !hit {
			hit = true
			f.Files++
		}
		if f.Total++; len(f.Matches) < limit {
			f.Matches = append(f.Matches, Match{name, number, cutText(strings.TrimSpace(string(line)), longLine)})
		}
	}
}

// cutText shortens s to at most n bytes, at the end of a rune.
func cutText(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func (f Found) text() string {
	var b strings.Builder
	if f.Total == 0 {
		fmt.Fprintf(&b, "no line matches, in %s\n", count(f.Searched, "file"))
	} else {
		fmt.Fprintf(&b, "%s in %d of %s\n", count(f.Total, "line"), f.Files, count(f.Searched, "file"))
	}
	for _, m := range f.Matches {
		fmt.Fprintf(&b, "%s:%d: %s\n", m.Path, m.Line, m.Text)
	}
	if n := f.Total - len(f.Matches); n > 0 {
		fmt.Fprintf(&b, "and %d more\n", n)
	}
	if f.Truncated {
		b.WriteString("There are more files than could be looked at; search a folder.\n")
	}
	return b.String()
}
