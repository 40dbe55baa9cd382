//go:build browser

package inspect_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/inspect"
)

// hostile are texts that a recording may have, since a model, a tool or a file wrote them.
var hostile = []string{
	`<img src=x onerror="window.ran=1">`, `</script><script>window.ran=1</script>`, `<!--<script>`, `"><svg onload=window.ran=1>`,
	"\u202egnp.exe\u202c \u2066abc", "javascript:window.ran=1", "`${window.ran=1}`", "__proto__", "constructor", "\x00\x1b[31m\u2028\u2029",
	"\U0001F468\u200d\U0001F469\u200d\U0001F467 \u0939\u093f\u0928\u094d\u0926\u0940 \u05e2\u05d1\u05e8\u05d9\u05ea \u4e2d\u6587", strings.Repeat("Z\u0351\u036b", 400), strings.Repeat("wide ", 2000), strings.Repeat("x", 5000),
}

// spoil puts such a text in front of every string of a view but those that are words of
// its own, and keeps that ids agree.
func spoil(v any, key string, next *int) any {
	switch v := v.(type) {
	case map[string]any:
		for k, child := range v {
			v[k] = spoil(child, k, next)
		}
	case []any:
		for i, child := range v {
			v[i] = spoil(child, key, next)
		}
	case string:
		switch key {
		case "kind", "zero":
			return v
		case "id", "parent", "run", "span", "phase_span", "key", "entry", "plugin", "hook", "call":
			// The same wherever it stands, so that one thing still names another.
			return hostile[len(v)%10] + v
		case "status", "outcome", "decision":
			*next++
			if *next%3 > 0 {
				return v
			}
		}
		*next++
		return hostile[*next%len(hostile)] + v
	}
	return v
}

// No text of a recording runs, moves what is beside it, or breaks the page.
func TestHostileTexts(t *testing.T) {
	var v map[string]any
	require.NoError(t, json.Unmarshal(marshal(t, richView()), &v))
	next := 0
	spoil(v, "", &next)
	megabyte := strings.Repeat("<b>\u202e1 MB</b> ", 1<<20/16)
	v["notes"], v["dropped"] = []any{megabyte}, 3
	run := v["runs"].([]any)[0].(map[string]any)
	run["input"], run["agent"] = megabyte, megabyte
	for _, s := range v["spans"].([]any)[:40] {
		s.(map[string]any)["text"] = megabyte
	}
	call := v["calls"].([]any)[0].(map[string]any)
	call["result"], call["args"] = megabyte, map[string]any{megabyte: megabyte}

	s := serve(t, v)
	html, err := inspect.SingleFile(marshal(t, v))
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "hostile.html")
	require.NoError(t, os.WriteFile(file, html, 0o600))
	for _, url := range []string{s.URL, "file://" + filepath.ToSlash(file)} {
		p := newTab(t, url)
		p.size(1440, 900)
		p.open(url)
		visitEverything(p)
		require.Nil(t, value[any](p, `window.ran ?? null`), "a text ran")
		require.Zero(t, value[int](p, `document.querySelectorAll('img, svg [onload], [onerror], body script:not([type]):not([src]) ~ script').length`))
		require.False(t, value[bool](p, `document.documentElement.scrollWidth > innerWidth`), "the page has its width")
		p.shot("hostile")
	}
}

// visitEverything selects each thing of each run, shows each tab and each revision, and
// looks whether the layout holds.
func visitEverything(p *tab) {
	p.t.Helper()
	require.Empty(p.t, value[string](p, `(async () => {
		const { app, timeline, slider, find } = inspector;
		const frame = () => new Promise(requestAnimationFrame);
		// What sticks out of its part of the page, unless something in between cuts it.
		const wide = () => {
			for (const part of document.querySelectorAll('.panel:not([hidden]), #runs, .top, .foot, .find')) {
				const edge = part.getBoundingClientRect().right + 1;
				for (const node of part.querySelectorAll('*')) {
					if (node.getBoundingClientRect().right <= edge) continue;
					let cut = false;
					for (let n = node.parentElement; n !== part; n = n.parentElement) cut ||= getComputedStyle(n).overflowX !== 'visible';
					if (!cut) return node.tagName + '.' + node.className + ' sticks out of ' + (part.id || part.className);
				}
			}
			return '';
		};
		for (const run of app.model.runs.keys()) {
			app.showRun(run);
			for (const tab of ['details', 'state', 'calls', 'effects', 'notes']) {
				app.showTab(tab);
				await frame(); await frame();
				if (wide()) return tab + ': ' + wide();
			}
			for (const rev of app.model.revisions(run)) {
				app.showTab('state');
				app.setRevision(rev);
				await frame(); await frame();
				for (const d of document.querySelectorAll('#panel-state details')) d.open = true;
				await frame();
				if (wide()) return 'state at ' + rev + ': ' + wide();
			}
		}
		app.showTab('details');
		for (const [kind, map] of [['span', app.model.spans], ['commit', app.model.commits], ['call', app.model.calls], ['effect', app.model.effects]]) {
			for (const id of map.keys()) {
				app.select({kind, id});
				if (wide()) return kind + ': ' + wide();
			}
			await frame();
		}
		for (const row of timeline.rows) for (const item of row.items) if (!app.thing(item)) return 'an item names nothing';
		find.input.value = 'window.ran';
		find.update();
		for (let i = 0; i < 30; i++) find.jump(1);
		return '';
	})()`))
}
