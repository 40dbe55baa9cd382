package inspect_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/inspect"
)

var viewElement = regexp.MustCompile(`(?s)<script type="application/json" id="view">(.*?)</script>`)

// Capability B4. One file has everything: nothing in it leads elsewhere.
func TestSingleFileIsSelfContained(t *testing.T) {
	html, err := inspect.SingleFile([]byte(`{"version":1,"runs":[]}`))
	require.NoError(t, err)
	text := string(html)
	for _, part := range []string{"assets/", "data-events", "<link rel=\"stylesheet", "modulepreload", "type=\"module\"", "\nimport ", "\nexport "} {
		require.NotContains(t, text, part)
	}
	require.Equal(t, 1, strings.Count(text, "http-equiv=\"Content-Security-Policy\""))
	require.Contains(t, text, "default-src 'none'; script-src 'sha256-")
	require.Equal(t, `{"version":1,"runs":[]}`, viewElement.FindStringSubmatch(text)[1])
}

// A view can hold any text; none ends the element that it stands in, and none is changed.
func TestSingleFileKeepsTheView(t *testing.T) {
	want := map[string]any{"source": "</script><script>alert(1)</script><!-- <SCRIPT>", "notes": []any{"a < b", "\u2028", "<\\u003c"}}
	view, err := json.Marshal(want)
	require.NoError(t, err)
	var loose bytes.Buffer
	encoder := json.NewEncoder(&loose)
	encoder.SetEscapeHTML(false)
	require.NoError(t, encoder.Encode(want))
	for _, view := range [][]byte{view, loose.Bytes()} {
		html, err := inspect.SingleFile(view)
		require.NoError(t, err)
		var got map[string]any
		found := viewElement.FindAllSubmatch(html, -1)
		require.Len(t, found, 1)
		require.NoError(t, json.Unmarshal(found[0][1], &got))
		require.Equal(t, want, got)
	}
	_, err = inspect.SingleFile([]byte(`{"version":`))
	require.ErrorContains(t, err, "inspect: the view is no valid JSON")
}

// markup are the ways in which a script makes a program or elements out of text.
var markup = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|\beval\(|new Function|srcdoc|setHTML|javascript:|XMLHttpRequest|WebSocket|sendBeacon`)

// The page's modules make no markup of texts and talk to nobody but the server,
// and each is of one concept. A script could not be put into the file if it had an end of a
// script in it.
func TestModules(t *testing.T) {
	files := inspect.Assets()
	index, err := fs.ReadFile(files, "index.html")
	require.NoError(t, err)
	require.NoError(t, fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(files, name)
		require.NoError(t, err)
		text := string(raw)
		require.LessOrEqual(t, strings.Count(text, "\n"), 400, name)
		switch path.Ext(name) {
		case ".js":
			require.Empty(t, markup.FindString(text), name)
			require.Equal(t, name == "source.js", strings.Contains(text, "fetch("), "%s talks to the server", name)
			require.NotContains(t, strings.ToLower(text), "</script", name)
			require.NotContains(t, text, "<!--", name)
			require.True(t, strings.HasPrefix(text, "// "), "%s says what it is", name)
			require.True(t, strings.Contains(string(index), `="assets/`+name+`"`), "%s is loaded early", name)
		case ".css":
			require.NotContains(t, text, "url(", name)
			require.NotContains(t, text, "@import", name)
			require.NotContains(t, strings.ToLower(text), "</style", name)
			require.True(t, strings.Contains(string(index), `="assets/`+name+`"`), "%s is loaded", name)
		}
		return nil
	}))
}

// Modules are joined in the order in which they need each other, and what cannot be joined
// is refused.
func TestBundle(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	script, err := inspect.Bundle(fstest.MapFS{
		"main.js": file("import { one, two } from './a.js';\nimport { three } from './b.js';\none(two, three);\n"),
		"a.js":    file("import { three } from './b.js';\nexport function one() {}\nexport const two = three;\n"),
		"b.js":    file("export const three = 3;\n"),
	}, "main.js")
	require.NoError(t, err)
	require.Equal(t, `'use strict';
const module_b = (() => {
const three = 3;
return { three };
})();
const module_a = (() => {
const { three } = module_b;
function one() {}
const two = three;
return { one, two };
})();
const module_main = (() => {
const { one, two } = module_a;
const { three } = module_b;
one(two, three);
return {  };
})();
`, script)
	for text, want := range map[string]string{
		"import x from './a.js';\n":               "cannot be joined",
		"import { a as b } from './a.js';\n":      "cannot be joined",
		"export default 3;\n":                     "cannot be joined",
		"export let x = 3;\n":                     "cannot be joined",
		"const x = await import('./a.js');\n":     "cannot be joined",
		"import { a } from './missing.js';\n":     "missing.js",
		"import { main } from './main.js';\n":     "modules import each other: main.js, main.js",
		"import { a } from 'https://x.y/z.js';\n": "cannot be joined",
	} {
		_, err := inspect.Bundle(fstest.MapFS{"main.js": file(text), "a.js": file("export const a = 1;\n")}, "main.js")
		require.ErrorContains(t, err, want, text)
	}
}
