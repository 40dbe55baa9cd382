//go:build browser

package inspect_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// liveRun is a run that goes on: each step is a patch.
func liveRun() (*recorder, *span) {
	r := newRecorder("live")
	top := r.begin("live-1", "worker", "Keep going", "")
	r.view.Live = true
	r.step = 1
	longStep(r, top)
	return r, top
}

// nextStep records another step and returns the patch of it.
func nextStep(r *recorder, top *span) patch {
	s, c, l, e := len(r.view.Spans), len(r.view.Commits), len(r.view.Calls), len(r.view.Effects)
	r.step++
	r.run.Steps = r.step
	longStep(r, top)
	return patch{Runs: r.view.Runs, Spans: r.view.Spans[s:], Commits: r.view.Commits[c:], Calls: r.view.Calls[l:], Effects: r.view.Effects[e:]}
}

// Capability B4. A run is shown while it goes on: steps appear, the page follows the newest
// until somebody scrolls away, and says when the run has ended.
func TestLive(t *testing.T) {
	r, top := liveRun()
	s := serve(t, r.view)
	p := newTab(t, s.URL)
	p.size(1440, 900)
	p.open(s.URL)
	require.Equal(t, "live", value[string](p, `document.querySelector('#live').textContent`))
	require.Equal(t, "true", value[string](p, `document.querySelector('#follow').getAttribute('aria-pressed')`))
	for range 5 {
		s.send(t, nextStep(r, top))
	}
	p.until(`inspector.timeline.groups.length === 6`)
	p.until(`[...document.querySelectorAll('.row-step strong, #pinned')].some(n => n.textContent === 'Step 6')`)
	require.Equal(t, r.rev, value[int](p, `inspector.app.rev`), "the newest state is shown")
	p.shot("live")

	// An open span is drawn as running, and becomes what it came to.
	open := r.open(top, "step", "step 7")
	open.Step = 7
	model := r.open(open, "model", "large-model")
	s.send(t, patch{Spans: []*span{open, model}})
	p.until(`document.querySelector('.line-model .bar.open')`)
	r.now += 1_500_000
	r.close(model)
	s.send(t, patch{Spans: []*span{model}})
	p.until(`!document.querySelector('.line-model .bar.open') && [...document.querySelectorAll('.line-model')].at(-1).innerText.includes('1.5 s')`)

	// Who scrolls away is left alone.
	value[any](p, `document.querySelector('#timeline').scrollTop = 0`)
	p.until(`document.querySelector('#follow').getAttribute('aria-pressed') === 'false'`)
	s.send(t, nextStep(r, top))
	p.until(`inspector.timeline.groups.length === 8`)
	require.Zero(t, value[int](p, `document.querySelector('#timeline').scrollTop`))
	p.key("f")
	p.until(`(box => box.scrollTop + box.clientHeight > box.scrollHeight - 40)(document.querySelector('#timeline'))`)

	r.finish(top, "natural_end")
	s.send(t, map[string]any{"runs": r.view.Runs, "spans": []*span{top}, "live": false})
	p.until(`document.querySelector('#live').textContent === 'recorded'`)
	require.NotNil(t, value[any](p, `document.querySelector('.run .muted').textContent.includes('natural end')`))
}

// Patches that come faster than frames are drawn once a frame.
func TestManyPatches(t *testing.T) {
	r, top := liveRun()
	s := serve(t, r.view)
	p := newTab(t, s.URL)
	p.size(1440, 900)
	p.open(s.URL)
	value[any](p, `(() => { window.builds = 0; inspector.app.on('rows', () => window.builds++); })()`)
	for range 60 {
		s.send(t, nextStep(r, top))
	}
	p.until(`inspector.timeline.groups.length === 61`)
	require.LessOrEqual(t, value[int](p, `window.builds`), 61)
	require.Equal(t, len(r.view.Spans), value[int](p, `inspector.app.model.spans.size`))
	require.Equal(t, len(r.view.Commits)+1, value[int](p, `inspector.app.model.revisions('live-1').length`))
}

// A page whose connection is lost says so, comes back, and keeps what was looked at. Events
// that are known to be missing are told of.
func TestReconnectAndMissingEvents(t *testing.T) {
	r, top := liveRun()
	s := serve(t, r.view)
	p := newTab(t, s.URL)
	p.size(1440, 900)
	p.open(s.URL)
	p.key("[")
	p.until(`inspector.app.selected`)
	id := value[string](p, `inspector.app.selected.id`)
	nextStep(r, top)
	r.view.Dropped, r.view.Notes = 12, []string{"events 40 to 51 are missing"}
	s.cut(t, r.view)
	p.until(`inspector.timeline.groups.length === 2`)
	require.Equal(t, id, value[string](p, `inspector.app.selected.id`))
	p.until(`document.querySelector('#live').textContent === 'live'`)
	require.Contains(t, value[string](p, `document.querySelector('#banner').textContent`), "12 events are missing")
	require.Contains(t, value[string](p, `document.querySelector('#banner').textContent`), "events 40 to 51 are missing")
	s.send(t, map[string]any{"dropped": 15, "notes": []string{"events 60 to 62 are missing"}})
	p.until(`document.querySelector('#banner').textContent.includes('15 events')`)
	p.key("5")
	p.until(fmt.Sprintf(`document.querySelector('#panel-notes').innerText.includes(%q)`, "events 60 to 62 are missing"))
}

// What somebody has opened stays open while the run goes on.
func TestLiveLeavesWhatIsRead(t *testing.T) {
	r, top := liveRun()
	s := serve(t, r.view)
	p := newTab(t, s.URL)
	p.size(1440, 900)
	p.open(s.URL)
	p.key("3")
	p.until(`document.querySelector('#panel-calls .entry')`)
	p.run(click(`#panel-calls .entry`))
	p.until(`document.querySelector('#panel-details h2').textContent.includes('edit_file')`)
	value[any](p, `document.querySelector('#panel-details h2').dataset.seen = 'yes'`)
	s.send(t, nextStep(r, top))
	p.until(`inspector.timeline.groups.length === 2`)
	require.Equal(t, "yes", value[string](p, `document.querySelector('#panel-details h2').dataset.seen`))
	require.Equal(t, "false", value[string](p, `document.querySelector('#follow').getAttribute('aria-pressed')`), "who selects something wants to read it")
	p.key("2,,")
	p.until(`document.querySelector('#panel-state').dataset.rev === String(inspector.app.rev)`)
	rev := value[int](p, `inspector.app.rev`)
	value[any](p, `document.querySelector('#panel-state h2').dataset.seen = 'yes'`)
	s.send(t, nextStep(r, top))
	p.until(`inspector.timeline.groups.length === 3`)
	require.Equal(t, rev, value[int](p, `inspector.app.rev`))
	require.Equal(t, "yes", value[string](p, `document.querySelector('#panel-state h2').dataset.seen`))
}
