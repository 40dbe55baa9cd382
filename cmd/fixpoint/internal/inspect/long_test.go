//go:build browser

package inspect_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// mostNodes bounds what the page has in the document, however long a run is.
const mostNodes = 4000

// scrollThrough goes to the end in 200 strides, drawing at each.
func scrollThrough(p *tab) {
	p.t.Helper()
	type scroll struct {
		Most, Rows int
		Slowest    float64
		Last       string
	}
	got := value[scroll](p, `(async () => {
		const box = document.querySelector('#timeline');
		const result = {Most: 0, Rows: 0, Slowest: 0, Last: ''};
		for (let i = 0; i <= 200; i++) {
			box.scrollTop = (box.scrollHeight - box.clientHeight) * i / 200;
			await new Promise(requestAnimationFrame);
			const began = performance.now();
			await new Promise(requestAnimationFrame);
			result.Slowest = Math.max(result.Slowest, performance.now() - began);
			result.Most = Math.max(result.Most, document.querySelectorAll('*').length);
			const rows = [...document.querySelectorAll('.row')].map(n => n.getBoundingClientRect());
			const view = box.getBoundingClientRect();
			if (rows.some(r => r.bottom > view.top && r.top < view.bottom)) result.Rows++;
		}
		result.Last = [document.querySelector('#pinned'), ...document.querySelectorAll('.row-step strong')].map(n => n.textContent).join(', ');
		return result;
	})()`)
	p.t.Logf("at most %d elements; the slowest frame took %.0f ms", got.Most, got.Slowest)
	require.Less(p.t, got.Most, mostNodes)
	require.Equal(p.t, 201, got.Rows, "something is in view at every stride")
	require.Contains(p.t, got.Last, "Step 1000")
}

// Everything that is done over and over stays quick enough in a run of 1,000 steps: a search,
// a revision, folding.
func TestLongRunIsUsable(t *testing.T) {
	s := serve(t, longView(1000))
	p := newTab(t, s.URL)
	p.size(1440, 900)
	p.open(s.URL)
	p.key("2s")
	p.until(`document.querySelector('#panel-state').dataset.rev`)
	p.key("e")
	p.until(`inspector.timeline.rows.length < 1100`)
	require.Less(t, value[int](p, `document.querySelectorAll('*').length`), mostNodes)
	p.key("/pkg777/file1.go")
	p.until(`document.querySelector('#found').textContent === '1 found'`)
	p.key("\r")
	p.until(`document.querySelector('.row-call .selected, .call') && inspector.timeline.rows.length > 1000`)
	p.until(`document.querySelector('#panel-details h2').textContent.includes('edit_file')`)
	took := value[float64](p, `(async () => {
		const began = performance.now();
		for (let i = 0; i < 20; i++) { inspector.slider.step(-1); await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame); }
		return (performance.now() - began) / 20;
	})()`)
	t.Logf("%.0f ms for a revision", took)
	require.Less(t, took, 2000.0, "milliseconds")
}
