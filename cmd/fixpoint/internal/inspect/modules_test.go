//go:build browser

package inspect_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// property runs a script in the page that compares a module with a simple model, many
// times with other inputs; it gives a text if they ever differ, else how often it looked.
func property(t *testing.T, script string) {
	t.Helper()
	s := serve(t, richView())
	p := newTab(t, s.URL)
	p.open(s.URL)
	got := value[any](p, `(async () => {
		let seed = 7;
		const random = n => { seed = (seed * 1103515245 + 12345) & 0x7fffffff; return Math.floor(seed / 0x7fffffff * n); };
		const pick = list => list[random(list.length)];
		const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
		`+script+`
	})()`)
	require.IsType(t, 0.0, got, "%v", got)
	require.GreaterOrEqual(t, got, 300.0, "cases")
}

// The state at any revision is what comes of applying every change up to it in order.
func TestStateIsTheSumOfChanges(t *testing.T) {
	property(t, `
		const { History } = await import('/assets/state.js');
		let cases = 0;
		for (let round = 0; round < 60; round++) {
			const base = [{key: 'list', value: [0]}, {key: 'one', value: 'base'}, {key: 'table', entry: 'a', value: 1}];
			const plain = new Map([['list', [0]], ['one', 'base'], ['table', new Map([['a', 1]])]]);
			const copy = () => [...plain].sort((a, b) => a[0] < b[0] ? -1 : 1).filter(([, v]) => !(v instanceof Map) || v.size > 0)
				.map(([k, v]) => [k, v instanceof Map ? [...v].sort((a, b) => a[0] < b[0] ? -1 : 1) : v]);
			const history = new History(base, 5);
			const wanted = new Map([[5, copy()]]);
			let rev = 5;
			for (let i = 0; i < 30; i++) {
				rev += 1 + random(3);
				const changes = [];
				const kind = random(6);
				if (kind === 0) { const at = random((plain.get('list') ?? []).length + 1), value = [rev, i]; changes.push({key: 'list', at, value}); plain.set('list', [...(plain.get('list') ?? []).slice(0, at), ...value]); }
				if (kind === 1) { changes.push({key: 'one', value: {rev}}); plain.set('one', {rev}); }
				if (kind === 2) { changes.push({key: 'one'}); plain.delete('one'); }
				if (kind >= 3) {
					const entry = pick(['a', 'b', 'c', '__proto__']);
					const table = plain.get('table');
					if (kind === 5 && random(2) === 0) { changes.push({key: 'table'}); table.clear(); }
					else if (kind === 4) { changes.push({key: 'table', entry}); table.delete(entry); }
					else { changes.push({key: 'table', entry, value: rev}); table.set(entry, rev); }
				}
				history.add({rev, changes});
				wanted.set(rev, copy());
			}
			for (const [rev, want] of wanted) {
				const got = history.at(rev).map(x => [x.key, x.entries ? x.entries.map(e => [e.entry, e.value]) : x.value]);
				if (!same(got, want)) return 'at ' + rev + ': ' + JSON.stringify(got) + ' is not ' + JSON.stringify(want);
				cases++;
			}
		}
		return cases;`)
}

// A difference leads from one side to the other, and is as short as can be.
func TestDiffIsShortest(t *testing.T) {
	property(t, `
		const { diffLines, folded } = await import('/assets/diff.js');
		const longest = (a, b) => { // of the common subsequences, the textbook way
			const t = [...Array(a.length + 1)].map(() => Array(b.length + 1).fill(0));
			for (let i = 1; i <= a.length; i++) for (let j = 1; j <= b.length; j++) t[i][j] = a[i-1] === b[j-1] ? t[i-1][j-1] + 1 : Math.max(t[i-1][j], t[i][j-1]);
			return t[a.length][b.length];
		};
		let cases = 0;
		for (; cases < 3000; cases++) {
			const text = () => [...Array(random(14))].map(() => pick(['a', 'b', 'c', 'd']));
			const [a, b] = [text(), text()];
			const lines = diffLines(a, b);
			if (!same(lines.filter(l => l.op !== '+').map(l => l.text), a)) return 'the old side is lost: ' + JSON.stringify([a, b, lines]);
			if (!same(lines.filter(l => l.op !== '-').map(l => l.text), b)) return 'the new side is lost: ' + JSON.stringify([a, b, lines]);
			const kept = lines.filter(l => l.op === ' ').length;
			if (kept !== longest(a, b)) return kept + ' lines kept: ' + JSON.stringify([a, b, lines]);
			const short = folded(lines, 1);
			if (short.reduce((n, l) => n + (l.count ?? 1), 0) !== lines.length) return 'folding lost lines';
		}
		const big = [...Array(3000)].map((_, i) => 'x' + i), other = [...Array(3000)].map((_, i) => 'y' + i);
		if (diffLines(big, other).length !== 6000) return 'what differs altogether is replaced';
		return cases;`)
}

// Rows of any heights are found by their pixels.
func TestOffsets(t *testing.T) {
	property(t, `
		const { Offsets } = await import('/assets/virtual.js');
		let cases = 0;
		for (; cases < 2000; cases++) {
			const heights = [...Array(random(30))].map(() => random(4) * 7);
			const offsets = new Offsets(heights);
			const total = heights.reduce((a, b) => a + b, 0);
			if (offsets.total !== total) return 'total';
			const y = random(total + 20), z = y + random(60);
			const [first, behind] = offsets.range(y, z);
			let top = 0;
			for (let i = 0; i < heights.length; i++) {
				if (offsets.top(i) !== top) return 'top of ' + i;
				const bottom = top + heights[i];
				if (heights[i] > 0 && bottom > y && top <= z && (i < first || i >= behind)) return 'row ' + i + ' is left out of ' + JSON.stringify({heights, y, z, first, behind});
				top = bottom;
			}
			if (heights.length === 0 && behind !== 0) return 'no rows';
		}
		return cases;`)
}

// Whatever the times of hooks and commits are, even when the run's clock stood still: bars
// stay within the lanes, a first try ends at its commit, and a retry begins behind it.
func TestScaleKeepsOrder(t *testing.T) {
	property(t, `
		const { Scale, layout, measure } = await import('/assets/lanes.js');
		const { Model } = await import('/assets/model.js');
		let cases = 0;
		for (; cases < 1500; cases++) {
			const still = random(5) === 0;
			const time = () => still ? 0 : random(3) === 0 ? random(3) : random(1e6);
			let now = 10, rev = 3;
			const spans = [{id: 'p', run: 'r', kind: 'phase', name: 'x', phase: 'x', start: now, status: 'ok'}], commits = [];
			const n = 1 + random(6);
			for (let i = 0; i < n; i++) spans.push({id: 'h' + i, run: 'r', parent: 'p', kind: 'hook', plugin: 'p' + i, hook: 'h', tier: 0, try: 1, start: now, end: now + time(), rev_before: rev, status: 'ok'});
			now = Math.max(...spans.slice(1).map(s => s.end));
			commits.push({id: 'c', run: 'r', rev: ++rev, at: now, phase_span: 'p', writes: []});
			for (let i = 0; i < random(n); i++) {
				const end = now + time();
				spans.push({id: 'r' + i, run: 'r', parent: 'p', kind: 'hook', plugin: 'p' + i, hook: 'h', tier: 0, try: 2, start: now, end, rev_before: rev, rev_after: rev + 1, status: 'ok'});
				now = end;
				commits.push({id: 'c' + i, run: 'r', rev: ++rev, at: now, phase_span: 'p', retry: true, writes: []});
			}
			for (let i = 1; i <= random(4); i++) {
				spans.push({id: 'round' + i, run: 'r', parent: 'p', kind: 'round', round: i, start: now, end: now + 5, status: 'ok'});
				for (let j = 0; j < random(3); j++) spans.push({id: 'a' + i + j, run: 'r', parent: 'round' + i, kind: 'action', plugin: 'q', hook: 'a', start: now, end: now + time(), status: 'ok'});
				if (random(2)) commits.push({id: 'd' + i, run: 'r', rev: ++rev, at: now, phase_span: 'p', round: i, writes: []});
			}
			if (random(3) === 0) spans.push({id: 'e', run: 'r', parent: 'p', kind: 'effect', name: 'e', start: now, end: now + 1, status: 'ok'});
			const model = new Model({runs: [{id: 'r', start: 0}], spans, commits});
			const across = 1 + random(4);
			const card = layout(model, spans[0], across);
			if (card.height !== measure(model, spans[0], across)) return 'measured ' + measure(model, spans[0], across) + ', placed ' + card.height;
			const ids = card.items.map(i => i.kind + i.id);
			if (new Set(ids).size !== ids.length || ids.length !== spans.length + commits.length) return 'items: ' + ids;
			const block = card.blocks.find(b => b.kind === 'hooks');
			for (const lane of block.lanes) for (const {span, a, b} of lane.bars) {
				if (!(a >= 0 && b <= 1 && a <= b)) return 'outside: ' + JSON.stringify([span, a, b]);
				const merged = block.marks[0].x;
				if (span.try === 1 && b > merged + 1e-9) return 'a first try behind its commit: ' + JSON.stringify([span, a, b, merged]);
				if (span.try === 2 && a < merged - 1e-9) return 'a retry before the commit';
				if (span.try === 2) { const own = block.marks.find(m => m.commit.rev === span.rev_after); if (own.x < b - 1e-9 || own.lane !== lane) return 'a retry behind its own commit'; }
			}
			for (let i = 1; i < block.marks.length; i++) if (!(block.marks[i].x > block.marks[i-1].x)) return 'commits on one place';
		}
		return cases;`)
}

// A view that comes in patches, in any order within reason, is the view that comes at once.
func TestPatchesAddUp(t *testing.T) {
	property(t, `
		const { Model } = await import('/assets/model.js');
		const { groups, groupRows } = await import('/assets/rows.js');
		const own = inspector.app.model;
		const view = {runs: [...own.runs.values()], spans: [...own.spans.values()], commits: [...own.commits.values()], calls: [...own.calls.values()], effects: [...own.effects.values()]};
		const picture = model => model.order.map(o => [o, groups(model, o.id).map(g => groupRows(model, g, {width: 700}).map(r => [r.type, r.id, r.height])),
			model.history(o.id).at(1e9).map(x => [x.key, x.value, x.entries?.map(e => [e.entry, e.value])]), groups(model, o.id).filter(g => g.kind === 'step').map(g => { const t = model.tally(g.span); return [t.conflicts, t.retries, t.blocked, t.failed, t.waits]; })]);
		const whole = JSON.stringify(picture(new Model(structuredClone(view))));
		let cases = 0;
		for (; cases < 300; cases++) {
			const copy = structuredClone(view);
			const model = new Model({runs: [], spans: []});
			while (copy.runs.length + copy.spans.length + copy.commits.length + copy.calls.length + copy.effects.length > 0) {
				const patch = {};
				for (const name of ['runs', 'spans', 'commits', 'calls', 'effects']) patch[name] = copy[name].splice(0, random(20));
				// A span is open before it is closed.
				model.apply({...patch, spans: patch.spans.map(s => random(3) === 0 ? {...s, end: undefined, status: 'open'} : s)});
				if (random(2)) for (const o of model.order) for (const g of groups(model, o.id)) if (g.kind === 'step') model.tally(g.span);
				model.apply(patch);
			}
			const got = JSON.stringify(picture(model));
			if (got !== whole) return got + '\nis not\n' + whole;
		}
		return cases;`)
}
