//go:build browser

package inspect_test

import (
	"bytes"
	"context"

	"fmt"
	"math"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/cli"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/inspect"
	"github.com/ddd26017/fixpoint/plugins/trace"
	"github.com/ddd26017/fixpoint/plugins/trace/recording"
)

// openTrace opens a trace in a tab, by the server that a user has.
func openTrace(t *testing.T, path string) (*tab, *recording.Recording) {
	t.Helper()
	rec, err := inspect.Read(path)
	require.NoError(t, err)
	url := serveSource(t, inspect.NewSource(rec))
	p := newTab(t, url)
	p.size(1440, 900)
	p.open(url)
	return p, rec
}

func serveSource(t *testing.T, source *inspect.Source) string {
	server := httptest.NewServer(inspect.Handler(source))
	t.Cleanup(server.Close)
	return server.URL
}

// said is what a command of fixpoint prints.
func said(t *testing.T, args ...string) string {
	t.Helper()
	var out, complaints bytes.Buffer
	require.Zero(t, cli.Run(t.Context(), args, cli.IO{In: strings.NewReader(""), Out: &out, Err: &complaints}), "%s", complaints.String())
	return out.String()
}

// Capability B4. A real run, recorded by package trace and shown by the real server: lanes,
// the retry after the merged commit, rounds, state and difference at a chosen revision as the
// engine has them, and what the command says of a call.
func TestRealRun(t *testing.T) {
	path := newWorkshop().trace(t)
	t.Chdir(filepath.Dir(path))
	path = filepath.Base(path) // the page shows it as it was given
	p, rec := openTrace(t, path)
	require.Equal(t, "recorded", value[string](p, `document.querySelector('#live').textContent`))
	v := rec.View()
	var merged recording.Commit
	for _, c := range v.Commits {
		if len(c.Conflicts) > 0 {
			merged = c
			break
		}
	}
	line := mark(p, fmt.Sprint(merged.Rev))
	first := bars(p, "Before inference", "planner")[0]
	for _, name := range atOnce {
		own := bars(p, "Before inference", name)
		require.Greater(t, first.Right, own[0].Left, "%s overlaps the first hook", name)
		require.Less(t, first.Left, own[0].Right, name)
		require.LessOrEqual(t, own[0].Right, line.Right, "%s ended before the commit", name)
		if name == "critic" || name == "style" {
			require.Len(t, own, 2, name)
			require.Greater(t, own[1].Left, line.Left, "the retry of %s is behind the merged commit", name)
		} else {
			require.Len(t, own, 1, name)
		}
	}
	require.Equal(t, []string{"Round 1", "Round 2", "Round 3"}, value[[]string](p, `[...document.querySelectorAll('.roundhead strong')].map(n => n.textContent)`))
	require.Equal(t, []int{1, 2, 2}, value[[]int](p, `[...document.querySelectorAll('.round')].map(n => n.querySelectorAll('.action').length)`))
	require.Equal(t, 2, value[int](p, `document.querySelectorAll('path.link:not(.tip)').length`))
	p.shot("timeline-light")

	// The state at every revision is that of the recording, which is held against the engine's own.
	for _, run := range v.Runs {
		states := value[map[string]map[string]any](p, `(() => {
			const history = inspector.app.model.history(`+string(marshal(t, run.ID))+`);
			return Object.fromEntries(inspector.app.model.revisions(`+string(marshal(t, run.ID))+`).map(rev => [rev, Object.fromEntries(history.at(rev).map(
				k => [k.key, k.entries ? Object.fromEntries(k.entries.map(e => [e.entry, e.value])) : k.value]))]));
		})()`)
		require.NotEmpty(t, states)
		for rev, got := range states {
			var n uint64
			_, err := fmt.Sscan(rev, &n)
			require.NoError(t, err)
			if n == 0 {
				continue // nothing is there, and to a query it is the newest revision
			}
			want, err := rec.State(recording.Query{Thread: run.Thread, Revision: n})
			require.NoError(t, err)
			for key, k := range want.Keys {
				if k.Entries == nil {
					require.JSONEq(t, string(k.Value.JSON), string(marshal(t, got[key])), "%s at %s", key, rev)
					continue
				}
				entries, _ := got[key].(map[string]any)
				require.Len(t, entries, len(k.Entries), "%s at %s", key, rev)
				for name, e := range k.Entries {
					require.JSONEq(t, string(e.JSON), string(marshal(t, entries[name])), "%s/%s at %s", key, name, rev)
				}
			}
		}
	}

	// By keys only: to the retry's revision, what it changed, and the explanation, which is asked for.
	retry := fmt.Sprint(merged.Rev + 1)
	p.key("2s" + kb.Home)
	p.key(strings.Repeat(kb.ArrowRight, int(merged.Rev+1-v.Runs[0].BaseRev)))
	p.until(`document.querySelector('#panel-state').dataset.rev === '` + retry + `'`)
	p.until(`document.querySelector('#panel-state .change[data-key="plan.current"] .why li')`)
	require.Equal(t, []string{`"read the tests",`}, value[[]string](p, `[...document.querySelectorAll('.change[data-key="plan.current"] .diffline.added .given')].map(n => n.textContent.trim())`))
	told := value[[]string](p, `[...document.querySelectorAll('.change[data-key="plan.current"] .why li')].map(n => n.textContent)`)
	require.Contains(t, strings.Join(told, " "), "in a serial retry: it lost plan.current to planner")
	require.Contains(t, said(t, "explain", path, "plan.current@"+retry, "--run", "run-1"), "critic")
	p.shot("state-light")

	// The blocked call: the page says what the command says.
	p.key("3")
	p.until(`document.querySelectorAll('#panel-calls .entry').length === 5`)
	p.run(click(`#panel-calls .entry`))
	p.until(`!document.querySelector('#panel-details').hidden && document.querySelector('#panel-details .why')`)
	why := value[[]string](p, `[...document.querySelector('#panel-details .why').children].map(n => n.textContent)`)
	require.NotEmpty(t, why)
	command := said(t, "why", path, "call-1")
	for _, sentence := range why {
		require.Contains(t, command, sentence)
	}
	require.Equal(t, len(why)+1, strings.Count(command, "\n"))
	require.Contains(t, command, "Plugin workspace blocked the call: /etc/passwd is outside the workspace.")
	p.shot("blocked-light")

	// Search, the delegate, both themes.
	p.key("/503" + kb.Enter)
	p.until(`document.querySelector('#found').textContent.startsWith('1 of')`)
	p.key(kb.Escape)
	require.Equal(t, 2, value[int](p, `document.querySelectorAll('.run').length`))
	value[any](p, `inspector.app.select({kind: 'call', id: 'run-1/1/call-4'})`)
	p.until(`document.querySelector('.barline .link')`)
	p.run(click(`.barline .link`))
	p.until(`inspector.app.run === 'run-1/1/call-4'`)
	p.key("r" + kb.ArrowUp)
	p.until(`inspector.app.run === 'run-1'`)
	p.key("t")
	p.until(`document.documentElement.dataset.theme === 'dark'`)
	require.Empty(t, value[[]string](p, contrasts))
	value[any](p, `inspector.app.select({kind: 'run', id: 'run-1'})`)
	value[any](p, `document.querySelector('#timeline').scrollTop = 0`)
	p.shot("timeline-dark")
	p.key("2")
	value[any](p, `inspector.app.setRevision(`+retry+`)`)
	p.until(`document.querySelector('#panel-state').dataset.rev === '` + retry + `' && document.querySelector('#panel-state .change .why li')`)
	p.shot("state-dark")
	value[any](p, `inspector.app.select({kind: 'call', id: 'run-1/1/call-1'}, {tab: true})`)
	p.until(`document.querySelector('#panel-details .votes')`)
	p.shot("blocked-dark")
	visitEverything(p)
}

// Capability B4. The file that the command writes shows the same and asks for nothing.
func TestRealFile(t *testing.T) {
	path := newWorkshop().trace(t)
	html := filepath.Join(t.TempDir(), "run.html")
	said(t, "inspect", path, "--html", html)
	p := newTab(t, "file://"+filepath.ToSlash(html))
	p.size(1440, 900)
	p.open("file://" + filepath.ToSlash(html))
	require.Len(t, bars(p, "Before inference", "critic"), 2)
	p.key("2,")
	p.until(`document.querySelector('#panel-state .change .why li')`)
	visitEverything(p)
	require.Len(t, p.requests, 1)
}

// Capability B4. A run is held in the middle of its hooks, a model call, a tool and a wait
// for a person, and the page that follows its trace shows each.
func TestRealRunLive(t *testing.T) {
	w := newWorkshop()
	at, on := make(chan string), make(chan struct{})
	stops := map[string]bool{"model of step 1": true, "answer": true, "tool deploy": true, "model of step 2": true}
	w.hold = func(where string) {
		if stops[where] {
			select {
			case at <- where:
				<-on
			case <-t.Context().Done():
			}
		}
	}
	t.Chdir(t.TempDir())
	path := "rename.jsonl"
	file, err := os.Create(path)
	require.NoError(t, err)
	tr := trace.New(trace.Options{Lines: file})
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.run(t, tr)
	}()
	require.Equal(t, "model of step 1", <-at)

	source := inspect.NewSource(recording.New(path))
	ctx, cancel := context.WithCancel(t.Context())
	followed := make(chan error, 1)
	read := make(chan struct{})
	for ctx.Err() == nil { // until the first line is written
		if info, err := os.Stat(path); err == nil && info.Size() > 0 {
			break
		}
	}
	go func() { followed <- inspect.FollowAt(ctx, path, source, func() { close(read) }, time.Millisecond) }()
	<-read
	url := serveSource(t, source)
	p := newTab(t, url)
	p.size(1440, 900)
	p.open(url)
	require.Equal(t, "live", value[string](p, `document.querySelector('#live').textContent`))
	p.until(`document.querySelector('.line-model .bar.open')`)
	p.until(`document.querySelectorAll('.bar.again').length === 2`) // what the phase before it came to
	on <- struct{}{}

	require.Equal(t, "answer", <-at)
	p.until(`document.querySelector('.line-wait .bar.open')`)
	p.until(`[...document.querySelectorAll('.line-wait')].some(n => n.innerText.includes('Deploy to staging?'))`)
	p.shot("live-light")
	on <- struct{}{}

	require.Equal(t, "tool deploy", <-at)
	p.until(`!document.querySelector('.line-wait .bar.open') && document.querySelector('.line-body .bar.open')`)
	p.key("3")
	p.until(`document.querySelectorAll('#panel-calls .entry').length >= 3`)
	on <- struct{}{}

	require.Equal(t, "model of step 2", <-at)
	p.until(`inspector.timeline.groups.filter(g => g.kind === 'step').length === 2`)
	on <- struct{}{}
	<-done
	require.NoError(t, tr.Close(context.WithoutCancel(t.Context())))
	require.NoError(t, file.Close())
	p.until(`inspector.app.model.runs.get('run-1').status === 'done'`)
	cancel()
	require.NoError(t, <-followed)
	source.Recording().SetLive(false)
	p.until(`document.querySelector('#live').textContent === 'recorded'`)

	// What the page has put together from patches is what there is.
	whole, err := inspect.Read(path)
	require.NoError(t, err)
	v := whole.View()
	require.Equal(t, []int{len(v.Runs), len(v.Spans), len(v.Commits), len(v.Calls), len(v.Effects)},
		value[[]int](p, `['runs', 'spans', 'commits', 'calls', 'effects'].map(n => inspector.app.model[n].size)`))
	require.Empty(t, value[[]string](p, `[...inspector.app.model.spans.values()].filter(s => s.end === undefined).map(s => s.id)`))
}

// Capability B4. The trace of a run of 1,000 steps opens in two seconds, counted from the
// navigation to the first picture, served or from the file that the command writes, and all
// of it can be scrolled through.
func TestRealLongRun(t *testing.T) {
	w := newWorkshop()
	w.steps = 1000
	path := w.trace(t)
	rec, err := inspect.Read(path)
	require.NoError(t, err)
	spans := len(rec.Outline().Spans)
	require.Greater(t, spans, 50_000)
	html := filepath.Join(t.TempDir(), "long.html")
	said(t, "inspect", path, "--html", html)
	for name, url := range map[string]string{"served": serveSource(t, inspect.NewSource(rec)), "file": "file://" + filepath.ToSlash(html)} {
		t.Run(name, func(t *testing.T) {
			p := newTab(t, url)
			p.size(1440, 900)
			best := math.Inf(1)
			for try := 0; try < 5 && best >= 2000; try++ {
				p.open(url)
				p.until(`performance.getEntriesByName('inspector-complete').length > 0`)
				all := value[float64](p, `performance.getEntriesByName('inspector-complete')[0].startTime`)
				best = min(best, value[float64](p, `performance.getEntriesByName('inspector-painted')[0].startTime`))
				t.Logf("%d spans: painted %.0f ms after the navigation began, complete after %.0f ms", spans, best, all)
			}
			require.Less(t, best, 2000.0, "milliseconds")
			require.Equal(t, spans, value[int](p, `inspector.app.model.spans.size`))
			p.shot("long-light-" + name)
			scrollThrough(p)
		})
	}
}
