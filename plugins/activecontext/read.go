package activecontext

import (
	"errors"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"unicode/utf8"
)

// errNotShown is the fault of a path that is no text file.
var errNotShown = errors.New("activecontext: not a text file")

// read returns the beginning of a text file: at most n bytes, or a few more when there
// are more.
func read(fsys fs.FS, name string, n int) (string, error) {
	// Before it is opened: opening a pipe would wait for a writer.
	if info, err := fs.Stat(fsys, name); err != nil {
		return "", err
	} else if !info.Mode().IsRegular() {
		return "", errNotShown
	}
	f, err := fsys.Open(name)
	if err != nil {
		return "", err
	}
	limit := n + 1 + utf8.UTFMax // so that more than n are left when the last character is cut
	data, err := io.ReadAll(io.LimitReader(f, int64(limit)))
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	text := string(data)
	if len(data) == limit {
		text = head(text, limit-1)
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return "", errNotShown
	}
	return text, nil
}

// head returns the first n bytes of s without the part of a character at the end.
func head(s string, n int) string {
	if n >= len(s) {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:max(n, 0)]
}

// quote returns a path so that it is one line and no more.
func quote(name string) string {
	if q := strconv.Quote(name); q != `"`+name+`"` {
		return q
	}
	return name
}
