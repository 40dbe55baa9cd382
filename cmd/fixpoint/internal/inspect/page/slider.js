// The slider over the revisions of the run that is shown.

import { byId, el } from './dom.js';
import { phaseName } from './words.js';

/** Slider has the role slider itself, since its values are revisions, which may have gaps. */
export class Slider {
  constructor(app) {
    this.app = app;
    this.fill = el('div', { class: 'fill' });
    this.thumb = el('div', { class: 'thumb' });
    this.marks = el('canvas', { class: 'ticks', 'aria-hidden': 'true' });
    this.track = el('div', {
      class: 'track', role: 'slider', id: 'revision', tabindex: '0', 'aria-label': 'Revision of the state',
      on: { pointerdown: (e) => this.#pointer(e), pointermove: (e) => e.buttons === 1 && this.#pointer(e), keydown: (e) => this.#key(e) },
    }, el('div', { class: 'rail' }), this.fill, this.marks, this.thumb);
    this.text = el('button', { type: 'button', class: 'revtext', title: 'Show the state', on: { click: () => app.showTab('state') } });
    this.prev = el('button', { type: 'button', 'aria-label': 'Revision before', text: '\u25c2', on: { click: () => this.step(-1) } });
    this.next = el('button', { type: 'button', 'aria-label': 'Revision after', text: '\u25b8', on: { click: () => this.step(1) } });
    byId('slider').append(el('span', { class: 'muted', text: 'State' }), this.prev, this.track, this.next, this.text);
    app.on('revision', () => this.draw());
    app.on('run', () => this.#all());
    app.on('model', (what) => what.runs.has(app.run) && this.#all());
    app.on('theme', () => this.#ticks());
    new ResizeObserver(() => this.#ticks()).observe(this.track);
  }

  #all() {
    this.revs = this.app.model.revisions(this.app.run);
    this.draw();
    this.#ticks();
  }

  draw() {
    if (!this.revs) return;
    const { model, run, rev } = this.app;
    const at = this.#index();
    const last = this.revs.length - 1;
    const share = last > 0 ? (at / last) * 100 : 100;
    this.thumb.style.left = share + '%';
    this.fill.style.width = share + '%';
    const commit = model.commitAt(run, rev);
    const where = commit ? [commit.step ? `step ${commit.step}` : '', phaseName(commit.phase), commit.round ? `round ${commit.round}` : '', commit.retry ? 'retry' : ''].filter(Boolean).join(' \u00b7 ') : 'beginning of the run';
    this.text.textContent = `rev ${rev} of ${this.revs[last]} \u00b7 ${where}`;
    this.track.setAttribute('aria-valuemin', '0');
    this.track.setAttribute('aria-valuemax', String(last));
    this.track.setAttribute('aria-valuenow', String(at));
    this.track.setAttribute('aria-valuetext', `revision ${rev}, ${where}`);
    this.prev.disabled = at === 0;
    this.next.disabled = at === last;
  }

  #index() {
    let [low, high] = [0, this.revs.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.revs[middle] <= this.app.rev) low = middle; else high = middle - 1;
    }
    return low;
  }

  // A tick for each revision while they can be told apart, amber and longer for conflicts.
  #ticks() {
    if (!this.revs) return;
    const width = this.marks.clientWidth;
    const height = this.marks.clientHeight;
    if (width === 0) return;
    this.marks.width = width;
    this.marks.height = height;
    const pen = this.marks.getContext('2d');
    const style = getComputedStyle(document.documentElement);
    const last = Math.max(1, this.revs.length - 1);
    if (last <= width / 4) {
      pen.fillStyle = style.getPropertyValue('--line-strong');
      for (let i = 0; i <= last; i++) pen.fillRect(Math.round((i / last) * (width - 1)), height - 7, 1, 4);
    }
    pen.fillStyle = style.getPropertyValue('--warn-line');
    let drawn = -Infinity; // ticks that cannot be told apart are one
    this.app.model.folder(this.app.run).commits.forEach((commit, i) => {
      const x = Math.round(((i + 1) / last) * (width - 1)) - 1;
      if (!commit.conflicts?.length || x < drawn + 6) return;
      drawn = x;
      pen.fillRect(x, height - 9, 2, 9);
    });
  }

  /** step goes so many revisions on. */
  step(by) {
    this.#go(this.#index() + by);
  }

  #go(index) {
    this.app.setRevision(this.revs[Math.min(this.revs.length - 1, Math.max(0, index))]);
  }

  #pointer(event) {
    const box = this.track.getBoundingClientRect();
    this.track.focus();
    this.#go(Math.round(((event.clientX - box.left) / box.width) * (this.revs.length - 1)));
  }

  #key(event) {
    const at = this.#index();
    const to = { ArrowRight: at + 1, ArrowUp: at + 1, ArrowLeft: at - 1, ArrowDown: at - 1, PageUp: at + 10, PageDown: at - 10, Home: 0, End: this.revs.length - 1 }[event.key];
    if (to === undefined) {
      if (event.key === 'Enter') this.app.showTab('state');
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    this.#go(to);
  }
}
