// The whole run on one strip, in real time: where the model, the tools and people took it,
// where something went wrong, and which part is in view. A click or the arrow keys jump.

import { byId, el } from './dom.js';
import { groups, members, pieces, timeBy } from './rows.js';
import { count, duration } from './words.js';

const inset = 6; // pixels left free at both ends, so that signs there are seen

/** Minimap draws the run that the timeline shows. */
export class Minimap {
  constructor(app, timeline) {
    this.app = app;
    this.timeline = timeline;
    this.canvas = el('canvas', { 'aria-hidden': 'true' });
    this.brush = el('div', { class: 'brush' });
    this.strip = el('div', {
      class: 'mapstrip', role: 'slider', tabindex: '0', 'aria-label': 'Step in view', 'aria-valuemin': '1', 'aria-valuenow': '1', 'aria-valuemax': '1',
      on: { pointerdown: (e) => this.#pointer(e), pointermove: (e) => e.buttons === 1 && this.#pointer(e), keydown: (e) => this.#key(e) },
    }, this.canvas, this.brush);
    this.legend = el('div', { class: 'legend' });
    byId('minimap').append(this.legend, this.strip);
    app.on('run', () => this.stale());
    app.on('rows', () => this.stale());
    app.on('theme', () => this.stale());
    app.on('scroll', () => this.#window());
    new ResizeObserver(() => this.stale()).observe(this.strip);
  }

  /** stale draws again right after the next frame, so that the timeline is there first. */
  stale() {
    if (this.waiting) return;
    this.waiting = true;
    const rest = (this.drawn ?? 0) + 200 - performance.now(); // a run that goes on changes all the time
    setTimeout(() => requestAnimationFrame(() => setTimeout(() => {
      this.waiting = false;
      this.#draw();
      this.drawn = performance.now();
    })), Math.max(0, rest));
  }

  #range() {
    const { model, run } = this.app;
    const info = model.runs.get(run);
    const span = model.runSpan(run);
    const start = info?.start ?? span?.start ?? 0;
    const end = info?.end ?? span?.end ?? Math.max(start, ...this.list.map(({ end: e }) => e));
    return [start, Math.max(end, start + 1e-3)];
  }

  #draw() {
    const { model, run } = this.app;
    if (run === undefined) return;
    this.list = groups(model, run).map((group) => {
      const spans = members(model, group);
      const start = group.span?.start ?? spans[0]?.start ?? 0;
      let end = group.span?.end ?? start;
      for (const s of spans) end = Math.max(end, s.end ?? s.start);
      return { group, spans, start, end };
    });
    [this.start, this.end] = this.#range();
    const width = this.strip.clientWidth;
    const height = this.strip.clientHeight;
    const density = Math.min(2, window.devicePixelRatio || 1);
    this.canvas.width = width * density;
    this.canvas.height = height * density;
    const pen = this.canvas.getContext('2d');
    pen.scale(density, density);
    const style = getComputedStyle(document.documentElement);
    const colours = new Map(['sunk', 'model', 'body', 'wait', 'phase', 'warn-line', 'bad-line'].map((name) => [name, style.getPropertyValue('--' + name).trim()]));
    const colour = (name) => colours.get(name);
    const x = (time) => inset + ((time - this.start) / (this.end - this.start)) * (width - 2 * inset);
    const bar = (from, to, top, tall, fill) => {
      pen.fillStyle = fill;
      pen.fillRect(x(from), top, Math.max(1, x(to) - x(from)), tall);
    };
    const steps = this.list.filter((l) => l.group.kind === 'step');
    steps.forEach((l, i) => { if (i % 2 === 1) bar(l.start, l.end, 0, height, colour('sunk')); });
    const sums = new Map();
    for (const { spans, end } of this.list) {
      const parts = pieces(model, spans);
      for (const [kind, time] of timeBy(parts, end)) sums.set(shown(kind), (sums.get(shown(kind)) ?? 0) + time);
      for (const span of parts) {
        const to = span.end ?? end;
        const kind = shown(span.kind);
        if (kind === 'wait') bar(span.start, to, 10, 14, colour('sunk')); // a wait is a thin line, whatever is below it
        bar(span.start, to, kind === 'wait' ? 15 : 10, kind === 'wait' ? 4 : 14, colour(kind));
      }
    }
    // Signs stand above the bar: a triangle for what was blocked or failed, a stroke for a conflict.
    const signs = { bad: 0, warn: 0 };
    const drawn = { bad: -Infinity, warn: -Infinity }; // signs that cannot be told apart are one
    for (const { group, spans, start } of this.list) {
      const found = group.kind === 'step' ? model.tally(group.span) : sum(spans.map((s) => model.tally(s)));
      const at = x(start);
      if (found.conflicts) {
        signs.warn += found.conflicts;
      }
      if (found.conflicts && at >= drawn.warn + 6) {
        drawn.warn = at;
        pen.fillStyle = colour('warn-line');
        pen.fillRect(at - 1, 26, 3, 7);
      }
      if (found.blocked || found.failed) {
        signs.bad += found.blocked + found.failed;
      }
      if ((found.blocked || found.failed) && at >= drawn.bad + 11) {
        drawn.bad = at;
        pen.fillStyle = colour('bad-line');
        pen.beginPath();
        pen.moveTo(at - 4, 1);
        pen.lineTo(at + 4, 1);
        pen.lineTo(at, 8);
        pen.fill();
      }
    }
    this.legend.textContent = '';
    const total = this.end - this.start;
    const share = (kind) => Math.round(((sums.get(kind) ?? 0) / total) * 100);
    this.legend.append(
      el('strong', { text: duration(total) }), el('span', { class: 'muted', text: count(steps.length, 'step') }),
      signs.warn ? el('span', { class: 'key warn', text: '\u2759 conflicts' }) : '',
      signs.bad ? el('span', { class: 'key bad', text: '\u25bc blocked or failed' }) : '',
      ...[['model', 'model'], ['body', 'tools'], ['wait', 'waiting'], ['phase', 'phases']].filter(([kind]) => sums.has(kind)).map(([kind, name]) =>
        el('span', { class: 'key' }, el('i', { class: 'swatch kind-' + kind, 'aria-hidden': 'true' }), `${name} ${share(kind) < 1 ? '<1' : share(kind)} %`)));
    this.steps = steps;
    this.#window();
  }

  #window() {
    if (this.start === undefined) return;
    const seen = this.timeline.window();
    this.brush.hidden = !seen;
    if (!seen) return;
    const share = (t) => Math.min(1, Math.max(0, (t - this.start) / (this.end - this.start)));
    const from = share(seen[0]);
    this.brush.style.left = `calc(${inset - 3}px + (100% - ${2 * inset}px) * ${from.toFixed(5)})`;
    this.brush.style.width = `calc(6px + (100% - ${2 * inset}px) * ${(share(seen[1]) - from).toFixed(5)})`;
    const at = this.#stepAt(seen[0]);
    this.strip.setAttribute('aria-valuemax', String(Math.max(1, this.steps.length)));
    this.strip.setAttribute('aria-valuenow', String(at + 1));
    this.strip.setAttribute('aria-valuetext', `step ${this.steps[at]?.group.step ?? 0} of ${this.steps.length}`);
  }

  #stepAt(time) {
    let at = 0;
    this.steps.forEach((s, i) => { if (s.start <= time) at = i; });
    return at;
  }

  #pointer(event) {
    const box = this.strip.getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (event.clientX - box.left - inset) / (box.width - 2 * inset)));
    this.timeline.showTime(this.start + share * (this.end - this.start));
  }

  #key(event) {
    const seen = this.timeline.window();
    if (!seen || this.steps.length === 0) return;
    const at = this.#stepAt(seen[0]);
    const to = { ArrowRight: at + 1, ArrowUp: at + 1, ArrowLeft: at - 1, ArrowDown: at - 1, Home: 0, End: this.steps.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const step = this.steps[Math.min(this.steps.length - 1, Math.max(0, to))];
    this.app.select({ kind: 'span', id: step.group.id });
  }
}

const shown = (kind) => ({ model: 'model', call: 'body', body: 'body', wait: 'wait' })[kind] ?? 'phase';

function sum(list) {
  const total = { conflicts: 0, blocked: 0, failed: 0 };
  for (const found of list) for (const name of Object.keys(total)) total[name] += found[name];
  return total;
}
