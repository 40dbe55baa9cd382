// The search box and its filters. A text is looked for and jumped to; a filter leaves only
// the rows that have what it asks for.

import { byId, el, replace } from './dom.js';
import { Finder, active } from './search.js';
import { line, number, phaseName } from './words.js';

const sorts = [['conflicts', '\u2260 conflicts'], ['retries', '\u21bb retries'], ['blocked', '\u2715 blocked'], ['failed', '\u2717 failed'], ['waits', '\u2016 waits']];

/** Find owns app.found. */
export class Find {
  constructor(app) {
    this.app = app;
    this.input = el('input', {
      type: 'search', id: 'query', placeholder: 'Search names, keys, reasons\u2026', 'aria-label': 'Search', autocomplete: 'off', spellcheck: 'false',
      on: { input: () => this.update(), keydown: (e) => this.#key(e) },
    });
    this.result = el('span', { class: 'muted small', role: 'status', 'aria-live': 'polite', id: 'found' });
    this.before = el('button', { type: 'button', 'aria-label': 'Previous match (N)', text: '\u2191', on: { click: () => this.jump(-1) } });
    this.next = el('button', { type: 'button', 'aria-label': 'Next match (n)', text: '\u2193', on: { click: () => this.jump(1) } });
    this.clear = el('button', { type: 'button', id: 'clear', text: 'Clear', on: { click: () => this.reset() } });
    this.selects = ['phase', 'plugin', 'kind'].map((name) => el('select', {
      'aria-label': 'Only ' + name, data: { filter: name }, on: { change: () => this.update(true) },
    }));
    this.chips = sorts.map(([name, label]) => el('button', {
      type: 'button', class: 'filter', 'aria-pressed': 'false', data: { problem: name }, text: label,
      on: { click: (e) => this.#press(e.currentTarget) },
    }));
    byId('find').append(
      el('div', { class: 'querybox' }, this.input, el('kbd', { 'aria-hidden': 'true', text: '/' })),
      el('div', { class: 'chips', role: 'group', 'aria-label': 'Only problems' }, ...this.chips),
      el('div', { class: 'selects' }, ...this.selects),
      el('div', { class: 'results' }, this.result, this.before, this.next, this.clear));
    app.on('model', () => {
      this.finder.stale = true;
      if (this.input.value || active(app.found.filters)) this.#later();
      this.choosing ??= setTimeout(() => this.#choices(), 1000);
    });
  }

  /** use begins with a model. */
  use(model) {
    this.finder = new Finder(model);
    setTimeout(() => this.#choices()); // nobody filters before the first picture
    this.update();
  }

  #choices() {
    clearTimeout(this.choosing);
    this.choosing = undefined;
    for (const select of this.selects) {
      const name = select.dataset.filter;
      const values = this.finder.choices(name).concat(name === 'kind' ? ['commit'] : []);
      if (values.length + 1 === select.options.length) continue;
      const chosen = select.value;
      replace(select, el('option', { value: '', text: name[0].toUpperCase() + name.slice(1) }),
        values.map((v) => el('option', { value: v, text: name === 'phase' ? phaseName(v) : line(v, 40) })));
      select.value = chosen;
    }
  }

  #later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.update(), 300);
  }

  #press(chip) {
    chip.setAttribute('aria-pressed', String(chip.getAttribute('aria-pressed') !== 'true'));
    this.update(true);
  }

  /** update looks again for what the box and the filters say. */
  update() {
    const [phase, plugin, kind] = this.selects.map((s) => s.value || undefined);
    const problems = new Set(this.chips.filter((c) => c.getAttribute('aria-pressed') === 'true').map((c) => c.dataset.problem));
    const filters = { phase, plugin, kind, problems };
    const query = this.input.value.trim();
    const passing = active(filters) ? this.finder.find('', filters) : [];
    const list = query ? this.finder.find(query, filters) : passing;
    // Rows are kept by the filters alone; marks show what the text matches as well.
    const set = new Set((query && !active(filters) ? list : passing).map(name));
    this.app.found = { query, filters, list, set: query && active(filters) ? new Set(list.map(name)) : set, at: -1 };
    this.#say();
    this.app.emit('find');
  }

  #say() {
    const { query, filters, list, at } = this.app.found;
    const on = query !== '' || active(filters);
    this.result.textContent = !on ? '' : list.length === 0 ? 'nothing found' : at < 0 ? `${number(list.length)} found` : `${number(at + 1)} of ${number(list.length)}`;
    this.before.disabled = this.next.disabled = list.length === 0;
    this.clear.disabled = !on;
  }

  /** jump selects the next match, or the one before. */
  jump(by) {
    const { list } = this.app.found;
    if (list.length === 0) return;
    const at = this.app.found.at < 0 ? (by > 0 ? 0 : list.length - 1) : (this.app.found.at + by + list.length) % list.length;
    this.app.found.at = at;
    const entry = list[at];
    this.app.select({ kind: entry.kind, id: entry.id }, { tab: true });
    this.#say();
  }

  /** reset forgets text and filters. */
  reset() {
    this.input.value = '';
    for (const select of this.selects) select.value = '';
    for (const chip of this.chips) chip.setAttribute('aria-pressed', 'false');
    this.update();
  }

  #key(event) {
    if (event.key === 'Enter') {
      event.preventDefault();
      this.jump(event.shiftKey ? -1 : 1);
    } else if (event.key === 'Escape') {
      event.preventDefault();
      event.stopPropagation();
      this.reset();
      byId('timeline').focus();
    } else if (event.key === 'ArrowDown') {
      event.preventDefault();
      byId('timeline').focus();
    }
    event.stopPropagation();
  }
}

const name = (entry) => entry.kind + ' ' + entry.id;
