// The tabs of the side, and its width.

import { byId, el } from './dom.js';
import { number } from './words.js';

const names = [['details', 'Details'], ['state', 'State'], ['calls', 'Calls'], ['effects', 'Effects'], ['notes', 'Notes']];

/** Tabs makes the panels that the parts of the side draw into. */
export class Tabs {
  constructor(app) {
    this.app = app;
    this.tabs = names.map(([name, title], i) => el('button', {
      type: 'button', role: 'tab', id: 'tab-' + name, 'aria-controls': 'panel-' + name, title: `${title} (key ${i + 1})`,
      on: { click: () => app.showTab(name) },
    }, title, el('span', { class: 'n' })));
    byId('tabs').append(...this.tabs);
    byId('tabs').addEventListener('keydown', (event) => this.#key(event));
    this.panels = names.map(([name]) => el('div', { role: 'tabpanel', id: 'panel-' + name, class: 'panel', 'aria-labelledby': 'tab-' + name, tabindex: '0' }));
    byId('panels').append(...this.panels);
    app.on('tab', () => this.draw());
    app.on('run', () => this.draw());
    app.on('model', () => this.draw());
    this.#splitter();
  }

  /** at is the name of the n-th tab. */
  at(n) { return names[n]?.[0]; }

  draw() {
    const folder = this.app.model.folder(this.app.run);
    const counts = { calls: folder.calls.length, effects: folder.effects.length, notes: this.app.model.notes.length + (this.app.model.dropped > 0 ? 1 : 0) };
    names.forEach(([name], i) => {
      const on = name === this.app.tab;
      this.tabs[i].setAttribute('aria-selected', String(on));
      this.tabs[i].tabIndex = on ? 0 : -1;
      this.tabs[i].querySelector('.n').textContent = counts[name] ? number(counts[name]) : '';
      this.panels[i].hidden = !on;
    });
  }

  #key(event) {
    const at = names.findIndex(([name]) => name === this.app.tab);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: names.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const i = (to + names.length) % names.length;
    this.app.showTab(names[i][0]);
    this.tabs[i].focus();
  }

  #splitter() {
    const bar = byId('splitter');
    const set = (width) => {
      const wide = Math.round(Math.min(window.innerWidth * 0.6, Math.max(300, width)));
      document.documentElement.style.setProperty('--side', wide + 'px');
      bar.setAttribute('aria-valuenow', String(wide));
    };
    bar.setAttribute('aria-valuenow', String(byId('panels').clientWidth));
    bar.addEventListener('pointerdown', (event) => bar.setPointerCapture(event.pointerId));
    bar.addEventListener('pointermove', (event) => event.buttons === 1 && set(window.innerWidth - event.clientX));
    bar.addEventListener('keydown', (event) => {
      const by = { ArrowLeft: 24, ArrowRight: -24 }[event.key];
      if (by === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      set(byId('panels').clientWidth + by);
    });
  }
}
