package agentsmd

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"
)

// guide is one file that the model is told about.
type guide struct {
	path string
	text string
	cut  bool // the file is longer than what is told
}

// find returns the guide of a folder, if it has one.
func find(fsys fs.FS, dir string, s Settings) (g guide, ok bool, err error) {
	for _, name := range s.Names {
		g.path = path.Join(dir, name)
		text, err := head(fsys, g.path, s.MaxBytes+1)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return g, false, fmt.Errorf("agentsmd: cannot read %s: %w", g.path, err)
		}
		if g.cut = len(text) > s.MaxBytes; g.cut {
			text = text[:s.MaxBytes]
			for len(text) > 0 && !utf8.ValidString(text[len(text)-1:]) && !utf8.ValidString(text) {
				text = text[:len(text)-1]
			}
		}
		g.text = strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
		return g, g.text != "", nil
	}
	return guide{}, false, nil
}

// head returns the beginning of a regular file.
func head(fsys fs.FS, name string, n int) (string, error) {
	// Before it is opened: opening a pipe would wait for a writer.
	if info, err := fs.Stat(fsys, name); err != nil {
		return "", err
	} else if !info.Mode().IsRegular() {
		return "", fs.ErrNotExist
	}
	f, err := fsys.Open(name)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(f, int64(n)))
	return string(text), errors.Join(err, f.Close())
}

// mark is the element of Told for the guide.
func (g guide) mark() string { return g.path + "@" + g.hash() }

func (g guide) hash() string {
	sum := sha256.Sum256([]byte(g.text))
	return hex.EncodeToString(sum[:6])
}

func (g guide) message() string {
	if g.cut {
		return fmt.Sprintf("%s says, cut to its beginning:\n\n%s", g.path, g.text)
	}
	return fmt.Sprintf("%s says:\n\n%s", g.path, g.text)
}
