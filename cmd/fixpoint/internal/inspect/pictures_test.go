//go:build browser

package inspect_test

import (
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// TestPictures keeps pictures of the page for those who want to look at it, and shows
// that every one of them can be reached by keys.
func TestPictures(t *testing.T) {
	s := serve(t, richView())
	p := newTab(t, s.URL)
	for _, theme := range []string{"light", "dark"} {
		p.size(1440, 900)
		p.open(s.URL)
		if value[string](p, `document.documentElement.dataset.theme`) != theme {
			p.key("t")
		}
		p.until(`document.documentElement.dataset.theme === '` + theme + `'`)
		p.shot(theme + "-1-timeline")
		p.key("/")
		p.key("outside the workspace")
		p.key(kb.Enter)
		p.until(`document.querySelector('#panel-details h3')`)
		p.shot(theme + "-2-search")
		p.key(kb.Enter + kb.Enter)
		p.shot(theme + "-3-found-call")
		p.key(kb.Escape)
		p.key("2s" + kb.Home + kb.ArrowRight + kb.ArrowRight + kb.ArrowRight)
		p.until(`document.querySelector('#panel-state').dataset.rev === '6'`)
		p.shot(theme + "-4-state")
		p.key("3")
		p.shot(theme + "-5-calls")
		p.run(click(`[data-problem="conflicts"]`))
		p.key("4")
		p.shot(theme + "-6-conflicts-only")
		p.key(kb.Escape)
		p.key("e?")
		p.until(`document.querySelector('dialog').open`)
		p.shot(theme + "-7-keys")
		p.key(kb.Escape)
		p.shot(theme + "-8-folded")
	}
	p.key("e")
	p.size(2560, 1300)
	p.shot("wide")
	p.size(1000, 700)
	p.shot("narrow")
	p.size(600, 800)
	p.shot("phone")
}
