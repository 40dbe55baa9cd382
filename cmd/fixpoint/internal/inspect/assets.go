// Package inspect shows what happened in a run, in a browser: a page that draws a view of
// a recording, for a server on this machine or as one file that needs nothing else.
//
// The page is plain HTML, style sheets and modules without a build step; they are in the
// binary. A served page loads them from below assets/ and gets its view as server-sent
// events; [SingleFile] puts all of it, the view too, into one file.
package inspect

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

//go:embed page
var embedded embed.FS

// ServedPolicy is the Content-Security-Policy of a page that a server hands out: it runs
// the server's own modules, talks to this server only, and parses no markup.
const ServedPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Assets are the files of the page: index.html, to be served as / with [ServedPolicy], and
// the modules and style sheets, to be served below assets/. The page asks for its view at
// events, relative to its own address.
func Assets() fs.FS {
	sub, err := fs.Sub(embedded, "page")
	if err != nil {
		panic(err) // the folder is in the binary
	}
	return sub
}

var (
	styleLink = regexp.MustCompile(`(?m)^<link rel="stylesheet" href="assets/([a-z]+\.css)">\n`)
	mainLink  = regexp.MustCompile(`(?m)^<script type="module" src="assets/([a-z]+\.js)"></script>\n`)
	preload   = regexp.MustCompile(`(?m)^<link rel="modulepreload" href="assets/([a-z]+\.js)">\n`)
	viewPlace = regexp.MustCompile(`(?m)^<script type="application/json" id="view" data-events="[a-z]*"></script>\n`)
)

// SingleFile returns the page with a view in it, as one file that loads nothing: it can be
// opened from a disk, mailed, or attached to a report. The view is the JSON of a View; it
// must be valid, and nothing in it can end the element that it stands in.
func SingleFile(view []byte) ([]byte, error) {
	if !json.Valid(view) {
		return nil, errors.New("inspect: the view is no valid JSON")
	}
	files := Assets()
	page, err := fs.ReadFile(files, "index.html")
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	var styles strings.Builder
	for _, link := range styleLink.FindAllSubmatch(page, -1) {
		style, err := fs.ReadFile(files, string(link[1]))
		if err != nil {
			return nil, fmt.Errorf("inspect: %w", err)
		}
		styles.Write(style)
	}
	script, err := bundle(files, string(mainLink.FindSubmatch(page)[1]))
	if err != nil {
		return nil, err
	}
	policy := fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; base-uri 'none'; form-action 'none'; "+
		"require-trusted-types-for 'script'; trusted-types 'none'", sum(script), sum(styles.String()))
	page = styleLink.ReplaceAll(page, nil)
	page = mainLink.ReplaceAll(page, nil)
	page = preload.ReplaceAll(page, nil)
	head := `<meta http-equiv="Content-Security-Policy" content="` + policy + "\">\n<style>" + styles.String() + "</style>\n</head>\n"
	page = bytes.Replace(page, []byte("</head>\n"), []byte(head), 1)
	place := viewPlace.FindIndex(page)
	var out bytes.Buffer
	out.Grow(len(page) + len(view) + len(script) + 256)
	out.Write(page[:place[0]])
	out.WriteString(`<script type="application/json" id="view">`)
	escapeInto(&out, view)
	out.WriteString("</script>\n<script>")
	out.WriteString(script)
	out.WriteString("</script>\n")
	out.Write(page[place[1]:])
	return out.Bytes(), nil
}

// escapeInto writes JSON so that it can stand in a script element: no "<" is left, which
// could only be in strings.
func escapeInto(out *bytes.Buffer, view []byte) {
	for {
		before, after, found := bytes.Cut(view, []byte{'<'})
		out.Write(before)
		if !found {
			return
		}
		out.WriteString(`\u003c`)
		view = after
	}
}

func sum(text string) string {
	hash := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(hash[:])
}
