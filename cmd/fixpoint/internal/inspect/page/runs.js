// The list of runs, delegates below the run that started them.

import { byId, el, replace } from './dom.js';
import { badges } from './strips.js';
import { count, duration, line, status } from './words.js';

/** RunList is a listbox; the arrow keys choose, and what is chosen is shown. */
export class RunList {
  constructor(app) {
    this.app = app;
    this.box = byId('runs');
    this.nodes = new Map();
    this.most = 300; // runs that are drawn
    this.box.addEventListener('keydown', (event) => this.#key(event));
    app.on('run', () => this.#mark());
    app.on('model', () => {
      this.timer ??= setTimeout(() => this.draw(), 200); // a run that goes on changes all the time
    });
  }

  draw() {
    clearTimeout(this.timer);
    this.timer = undefined;
    const { model } = this.app;
    byId('runs-title').textContent = count(model.runs.size, 'run');
    this.nodes.clear();
    replace(this.box, model.order.slice(0, this.most).map(({ id, depth }, i) => {
      const node = this.#row(model.runs.get(id), depth, i);
      this.nodes.set(id, node);
      return node;
    }), model.order.length > this.most ? el('button', { type: 'button', class: 'link', text: `show ${count(model.order.length - this.most, 'more', 'more')}`, on: { click: () => this.#more() } }) : null);
    this.#mark();
  }

  #row(run, depth, i) {
    const said = status(run.status);
    const end = run.end ?? this.app.model.end;
    const problems = badges({ conflicts: run.conflicts, retries: run.retries, blocked: run.blocked, failed: run.failed });
    return el('div', {
      class: 'run', role: 'option', id: 'run-' + i, style: { '--depth': String(Math.min(depth, 4)) },
      on: { click: () => this.#show(run.id) },
    },
    el('div', { class: 'runhead' },
      depth > 0 ? el('span', { class: 'muted', 'aria-label': 'delegate', text: '\u21b3' }) : null,
      el('strong', { class: 'given', text: line(run.agent, 60) || line(run.id, 60) }),
      run.status === 'done' && !run.error ? null : el('span', { class: 'pill ' + (run.error ? 'bad' : said.tone || 'plain'), text: run.error ? '\u2717 failed' : `${said.sign} ${said.word}` })),
    el('div', { class: 'given input', text: line(run.input, 160), title: line(run.input, 600) }),
    el('div', { class: 'muted small', text: [count(run.steps ?? 0, 'step'), duration(end - run.start), line(run.reason, 40).replace(/_/g, ' ')].filter(Boolean).join(' \u00b7 ') }),
    el('div', { class: 'pills' }, ...problems));
  }

  #mark() {
    for (const [id, node] of this.nodes) {
      const on = id === this.app.run;
      node.setAttribute('aria-selected', String(on));
      if (on) this.box.setAttribute('aria-activedescendant', node.id);
    }
  }

  #more() {
    this.most += 1000;
    this.draw();
  }

  #show(id) {
    this.app.showRun(id);
    this.app.select({ kind: 'run', id }, { scroll: false, revision: false });
  }

  #key(event) {
    const order = this.app.model.order.map((o) => o.id);
    const at = order.indexOf(this.app.run);
    const to = { ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1, Home: 0, End: order.length - 1 }[event.key];
    if (event.key === 'Enter') {
      event.preventDefault();
      event.stopPropagation();
      byId('timeline').focus();
    }
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const id = order[Math.min(order.length - 1, Math.max(0, to))];
    if (id !== undefined) this.#show(id);
    this.nodes.get(id)?.scrollIntoView({ block: 'nearest' });
  }
}
