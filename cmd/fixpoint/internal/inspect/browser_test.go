//go:build browser

package inspect_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/inspect"
)

// openRich opens the rich recording in a tab of the usual size.
func openRich(t *testing.T) *tab {
	t.Helper()
	s := serve(t, richView())
	p := newTab(t, s.URL)
	p.size(1440, 900)
	p.open(s.URL)
	return p
}

// box is where an element is on the page.
type box struct{ Left, Right, Top, Bottom, Width float64 }

const boxOf = `(node => { const b = node.getBoundingClientRect(); return {Left: b.left, Right: b.right, Top: b.top, Bottom: b.bottom, Width: b.width}; })`

// bars are the bars of a lane of a card, by the words of its label.
func bars(p *tab, phase, label string) []box {
	return value[[]box](p, `(() => {
		const card = [...document.querySelectorAll('.card')].find(c => c.querySelector('.cardhead strong').textContent === '`+phase+`');
		const lane = [...card.querySelectorAll('.lane')].find(l => l.querySelector('.who').textContent === '`+label+`').getBoundingClientRect();
		return [...card.querySelectorAll('.field .bar')].map(`+boxOf+`).filter(b => b.Top > lane.top && b.Bottom < lane.bottom);
	})()`)
}

func mark(p *tab, rev string) box {
	return value[box](p, boxOf+`(document.querySelector('.commit[data-rev="`+rev+`"]'))`)
}

// Capability B4. Hooks of a phase are lanes whose bars overlap, since they ran at once; the
// commit of what they wrote is a line behind all of them.
func TestParallelHooksAreLanes(t *testing.T) {
	p := openRich(t)
	first := bars(p, "Before inference", "planner · decide")
	require.Len(t, first, 1)
	line := mark(p, "5")
	for _, label := range []string{"critic · revise", "budget · count", "memory · recall", "cost · estimate", "style · hint", "files · scan"} {
		bar := bars(p, "Before inference", label)[0]
		require.Greater(t, first[0].Right, bar.Left, "%s overlaps the first hook", label)
		require.Less(t, first[0].Left, bar.Right, "%s overlaps the first hook", label)
		require.LessOrEqual(t, bar.Right, line.Right, "%s ended before the commit", label)
		require.NotEqual(t, first[0].Top, bar.Top, "%s has a lane of its own", label)
	}
	tier := bars(p, "Before inference", "summary · compose")[0]
	require.Greater(t, tier.Left, line.Left, "the second tier ran after the first one's commit")
	require.Less(t, tier.Right, mark(p, "8").Right)
}

// Capability B4. A hook that lost a conflict is marked, in words too, and its serial retry
// is a bar of its own behind the commit, with a commit of its own and a line to what won.
func TestRetryIsSeen(t *testing.T) {
	p := openRich(t)
	line := mark(p, "5")
	for label, own := range map[string]string{"critic · revise": "6", "style · hint": "7"} {
		both := bars(p, "Before inference", label)
		require.Len(t, both, 2, label)
		require.Less(t, both[0].Right, line.Right, "%s: the first try is before the commit", label)
		require.Greater(t, both[1].Left, line.Left, "%s: the retry is behind it", label)
		commit := mark(p, own)
		require.GreaterOrEqual(t, commit.Right, both[1].Right, "%s: the retry's own commit ends it", label)
		require.Less(t, commit.Bottom-commit.Top, 40.0, "%s: that commit is in its lane only", label)
	}
	require.Equal(t, 2, value[int](p, `document.querySelectorAll('.bar.kind-lost[data-try="1"]').length`))
	require.Equal(t, 2, value[int](p, `document.querySelectorAll('.bar.again[data-try="2"]').length`))
	require.Equal(t, []string{"≠ lost plan.current to planner · decide", "≠ lost plan.current to planner · decide"},
		value[[]string](p, `[...document.querySelectorAll('.lane .warn')].map(n => n.textContent).filter(t => t.includes('lost'))`))
	require.Equal(t, 2, value[int](p, `document.querySelectorAll('path.link:not(.tip)').length`), "lines to what won")
}

// Capability B4. The rounds of the cascade are numbered columns with their actions, and one
// that failed says so.
func TestRoundsAreColumns(t *testing.T) {
	p := openRich(t)
	boxes := value[[]box](p, `[...document.querySelectorAll('.round')].map(`+boxOf+`)`)
	require.Len(t, boxes, 4)
	for i := 1; i < len(boxes); i++ {
		require.True(t, boxes[i].Left >= boxes[i-1].Right || boxes[i].Top >= boxes[i-1].Bottom, "round %d is behind round %d", i+1, i)
	}
	require.Equal(t, []string{"Round 1", "Round 2", "Round 3", "Round 4"}, value[[]string](p, `[...document.querySelectorAll('.roundhead strong')].map(n => n.textContent)`))
	require.Equal(t, []int{2, 2, 2, 1}, value[[]int](p, `[...document.querySelectorAll('.round')].map(n => n.querySelectorAll('.action').length)`))
	require.Equal(t, "✗ failed", value[string](p, `document.querySelector('.round[data-round="3"] .tiny.bad').textContent`))
}

// Capability B4. A person who never touches the mouse gets to the difference that a chosen
// revision made, and to who wrote it and what it overwrote.
func TestStateByKeysOnly(t *testing.T) {
	p := openRich(t)
	p.key(kb.Tab + kb.Tab) // past the skip link into the page
	require.NotEqual(t, "BODY", value[string](p, `document.activeElement.tagName`))
	p.key("2s")
	require.Equal(t, "revision", value[string](p, `document.activeElement.id`))
	p.key(kb.Home)
	p.until(`document.querySelector('#panel-state').dataset.rev === '3'`)
	require.Equal(t, "0", value[string](p, `document.querySelector('#revision').getAttribute('aria-valuenow')`))
	p.key(kb.ArrowRight + kb.ArrowRight + kb.ArrowRight)
	p.until(`document.querySelector('#panel-state').dataset.rev === '6'`)
	require.Equal(t, "revision 6, step 1 · Before inference · retry", value[string](p, `document.querySelector('#revision').getAttribute('aria-valuetext')`))
	require.Equal(t, []string{`      "read the tests",`}, value[[]string](p, `[...document.querySelectorAll('.diffline.added .given')].map(n => '  ' + n.textContent)`))
	require.Empty(t, value[[]string](p, `[...document.querySelectorAll('.diffline.removed')].map(n => n.textContent)`))
	require.Contains(t, value[string](p, `document.querySelector('.change header').textContent`), "by critic · revise")
	require.Contains(t, value[string](p, `document.querySelector('.change').textContent`), "overwrote the value of revision 5 by planner · decide")
	require.Contains(t, value[string](p, `document.querySelector('.change .why').textContent`), "critic (revise) wrote plan.current")
	require.Equal(t, "6", value[string](p, `document.querySelector('.commit.selected').dataset.rev`), "the timeline shows the commit")

	p.key(kb.End)
	p.until(`document.querySelector('#panel-state').dataset.rev === '22'`)
	p.key(kb.Escape)
	require.Equal(t, "timeline", value[string](p, `document.activeElement.id`))
	p.key(kb.Home + "jj")
	p.until(`inspector.app.thing(inspector.app.selected).hook === 'begin'`)
	require.Equal(t, "4", value[string](p, `document.querySelector('#panel-state').dataset.rev`), "what is selected moves the slider")
	p.key("1")
	p.until(`document.querySelector('#panel-details h2').textContent.includes('headline')`)
	p.key("]")
	p.until(`inspector.app.thing(inspector.app.selected).kind === 'step'`)
	p.key(kb.ArrowLeft)
	p.until(`document.querySelector('.step.folded')`)
	p.key(kb.Enter)
	p.until(`!document.querySelector('.step.folded')`)
	p.key("?")
	p.until(`document.querySelector('dialog').open`)
	p.key(kb.Escape)
	p.until(`!document.querySelector('dialog').open`)
}

// Capability B4. What a blocked call was blocked for is told in sentences, with the vote of
// every gate.
func TestBlockedCallIsExplained(t *testing.T) {
	p := openRich(t)
	p.key("3")
	p.until(`document.querySelectorAll('#panel-calls .entry').length === 4`)
	p.run(click(`#panel-calls .entry`))
	p.until(`!document.querySelector('#panel-details').hidden`)
	why := value[[]string](p, `[...document.querySelectorAll('#panel-details .why')][0].innerText.split('\n')`)
	require.Contains(t, why, "The gate workspace of files blocked it: /etc/passwd is outside the workspace.")
	votes := value[[]string](p, `[...document.querySelectorAll('.votes li')].map(n => n.innerText.replace(/\n+/g, ' '))`)
	require.Len(t, votes, 4)
	require.Contains(t, votes[0], "✕ block")
	require.Contains(t, votes[1], "✓ approve")
	p.key("/is outside the workspace" + kb.Enter)
	p.until(`document.querySelector('#found').textContent.startsWith('1 of')`)
	p.key(kb.Enter)
	p.until(`inspector.app.thing(inspector.app.selected).status === 'block'`)
	p.until(`document.querySelector('.bar.selected.bad')`)
}

// An edited call shows what was changed; one that a person was asked about, who answered.
func TestEditsAndQuestions(t *testing.T) {
	p := openRich(t)
	p.key("3")
	p.run(click(`#panel-calls .entry:nth-child(2)`))
	p.until(`document.querySelector('#panel-details .diff')`)
	require.Equal(t, []string{"−", "+"}, value[[]string](p, `[...document.querySelectorAll('.diffline.removed .op, .diffline.added .op')].map(n => n.textContent)`))
	require.Contains(t, value[string](p, `document.querySelector('#panel-details').innerText`), "Pass 2, on the edited arguments")
	p.key("3")
	p.run(click(`#panel-calls .entry:nth-child(3)`))
	p.until(`document.querySelector('#panel-details .ticket')`)
	require.Contains(t, value[string](p, `document.querySelector('.ticket').innerText`), "✓ approved")
	p.until(`document.querySelector('.line-wait')`)
	require.Contains(t, value[string](p, `document.querySelector('.line-wait').innerText`), "4.2 s")
}

// Capability B4. A search counts, jumps and marks; a filter leaves only what it asks for.
func TestSearchAndFilters(t *testing.T) {
	p := openRich(t)
	p.key("/plan.current")
	p.until(`/^\d+ found$/.test(document.querySelector('#found').textContent)`)
	all := value[int](p, `inspector.app.found.list.length`)
	require.Positive(t, all)
	p.key(kb.Enter)
	p.until(`document.querySelector('#found').textContent.startsWith('1 of')`)
	require.NotNil(t, value[any](p, `document.querySelector('.found')`))
	p.key(kb.Enter)
	p.until(`document.querySelector('#found').textContent.startsWith('2 of')`)
	p.key(kb.Escape)
	require.Equal(t, "timeline", value[string](p, `document.activeElement.id`))
	require.Empty(t, value[string](p, `document.querySelector('#found').textContent`))

	rows := value[int](p, `inspector.timeline.rows.length`)
	p.run(click(`[data-problem="conflicts"]`))
	p.until(`inspector.timeline.rows.length < ` + `10`)
	require.Greater(t, rows, 10)
	require.Equal(t, []string{"step", "card"}, value[[]string](p, `inspector.timeline.rows.map(r => r.type)`))
	p.key(kb.Escape)
	p.until(`inspector.timeline.rows.length > 10`)
	require.Equal(t, rows, value[int](p, `inspector.timeline.rows.length`))
	p.key("n")
	require.Equal(t, rows, value[int](p, `inspector.timeline.rows.length`), "n without a search does nothing")
}

// Delegates stand below the run that started them, and the call leads to them.
func TestDelegates(t *testing.T) {
	p := openRich(t)
	require.Equal(t, []string{"0", "1"}, value[[]string](p, `[...document.querySelectorAll('.run')].map(n => n.style.getPropertyValue('--depth'))`))
	p.key("r" + kb.ArrowDown)
	p.until(`inspector.app.run === 'run-2'`)
	require.Equal(t, "true", value[string](p, `document.querySelectorAll('.run')[1].getAttribute('aria-selected')`))
	p.key(kb.ArrowUp)
	p.until(`inspector.app.run === 'run-1'`)
	value[any](p, `inspector.timeline.box.scrollTop = 1e6`)
	p.until(`document.querySelector('.barline .link')`)
	p.run(click(`.barline .link`))
	p.until(`inspector.app.run === 'run-2'`)
}

// Capability B4. Every text can be read: its contrast with what is behind it is at least
// that of WCAG AA, in both themes, and the system's choice is followed until another is made.
func TestThemesHaveContrast(t *testing.T) {
	p := openRich(t)
	for _, theme := range []string{"dark", "light"} {
		command(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}})
		p.until(`document.documentElement.dataset.theme === '` + theme + `'`)
		for _, keys := range []string{"1", "2", "3", "4", "5"} {
			p.key(keys)
			p.until(`document.querySelector('[role=tabpanel]:not([hidden])').id === document.querySelector('[role=tab][aria-selected=true]').getAttribute('aria-controls')`)
			require.Empty(t, value[[]string](p, contrasts), theme)
		}
	}
	require.Greater(t, value[int](p, `document.querySelectorAll('.pill').length`), 10)
	p.key("t")
	p.until(`document.documentElement.dataset.theme === 'dark'`)
	command(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}}})
	require.Equal(t, "dark", value[string](p, `document.documentElement.dataset.theme`), "what was chosen stays")
}

// contrasts lists the texts in view whose contrast with the ground below them is too low.
const contrasts = `(() => {
	const rgb = text => { const m = text.match(/[\d.]+/g).map(Number); return /^color\(srgb/.test(text) ? [m[0]*255, m[1]*255, m[2]*255, m[3] ?? 1] : [m[0], m[1], m[2], m[3] ?? 1]; };
	const light = c => { const [r, g, b] = c.map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3]));
	const ground = node => {
		const stack = [];
		for (let n = node; n; n = n.parentElement) { const c = rgb(getComputedStyle(n).backgroundColor); if (c[3] > 0) stack.push(c); if (c[3] === 1) break; }
		return stack.reverse().reduce((below, c) => over(c, below), [255, 255, 255]);
	};
	const bad = [];
	for (const node of document.querySelectorAll('body *')) {
		if (![...node.childNodes].some(c => c.nodeType === 3 && c.data.trim())) continue;
		if (node.checkVisibility && !node.checkVisibility({visibilityProperty: true})) continue;
		if (node.disabled || node.closest('script, .said, option')) continue;
		const g = ground(node), c = over(rgb(getComputedStyle(node).color), g);
		const [a, b] = [light(c), light(g)].sort((x, y) => y - x);
		const ratio = (a + 0.05) / (b + 0.05);
		if (ratio < 4.5) bad.push(node.className + ' "' + node.textContent.slice(0, 30) + '" ' + ratio.toFixed(2));
	}
	return bad;
})()`

// Capability B4. The same page as one file works from a disk, and asks for nothing.
func TestSingleFileInBrowser(t *testing.T) {
	html, err := inspect.SingleFile(marshal(t, richView()))
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "run.html")
	require.NoError(t, os.WriteFile(file, html, 0o600))
	p := newTab(t, "file://"+filepath.ToSlash(file))
	p.size(1440, 900)
	p.open("file://" + filepath.ToSlash(file))
	require.Equal(t, "recorded", value[string](p, `document.querySelector('#live').textContent`))
	require.Len(t, bars(p, "Before inference", "critic · revise"), 2)
	p.key("2," + ",")
	p.until(`document.querySelector('#panel-state').dataset.rev === '20'`)
	p.key("t")
	p.until(`document.documentElement.dataset.theme === 'dark'`)
	require.Len(t, p.requests, 1)
}
