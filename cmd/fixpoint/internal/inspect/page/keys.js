// The keys, and the dialog that lists them.

import { byId, el, replace } from './dom.js';

const help = [
  ['Timeline', [['j, \u2193', 'next item'], ['k, \u2191', 'item before'], ['[ and ]', 'step before, next step'], ['\u2190 \u2192', 'close, open a step'], ['Enter', 'details of the item; closes or opens a step'], ['Home, End', 'first, last item'], ['e', 'close or open all steps'], ['f', 'follow a live run']]],
  ['Search', [['/', 'search'], ['Enter, n', 'next match'], ['Shift+Enter, N', 'match before'], ['Esc', 'forget the search; back to the timeline']]],
  ['State', [['s', 'go to the slider of revisions'], ['\u2190 \u2192', 'on the slider: revision before, after'], [', and .', 'anywhere: revision before, after'], ['Home, End', 'on the slider: first, last revision']]],
  ['Page', [['1 to 5', 'Details, State, Calls, Effects, Notes'], ['r', 'list of runs'], ['Tab', 'next part of the page'], ['t', 'light or dark'], ['?', 'these keys']]],
];

/** Keys listens for all keys that no part has taken. */
export class Keys {
  constructor(app, parts) {
    this.app = app;
    this.parts = parts;
    this.dialog = byId('keys');
    byId('help').addEventListener('click', () => this.show());
    document.addEventListener('keydown', (event) => this.#key(event));
    this.dialog.addEventListener('click', (event) => event.target === this.dialog && this.dialog.close());
  }

  show() {
    replace(this.dialog, el('h2', { id: 'keys-title', text: 'Keys' }),
      el('div', { class: 'keygroups' }, ...help.map(([title, rows]) => el('section', {}, el('h3', { text: title }),
        el('dl', { class: 'facts' }, ...rows.flatMap(([key, text]) => [el('dt', {}, el('kbd', { text: key })), el('dd', { text })]))))),
      el('form', { method: 'dialog' }, el('button', { text: 'Close', autofocus: true })));
    this.dialog.showModal();
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.dialog.open) return;
    const target = event.target;
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return;
    const { timeline, find, slider, theme, tabs } = this.parts;
    const within = target === document.body || target === byId('timeline');
    const act = {
      j: () => timeline.move(1), k: () => timeline.move(-1),
      '[': () => timeline.moveStep(-1), ']': () => timeline.moveStep(1),
      n: () => find.jump(1), N: () => find.jump(-1), '/': () => find.input.select(),
      ',': () => slider.step(-1), '.': () => slider.step(1), s: () => slider.track.focus(),
      t: () => theme.toggle(), '?': () => this.show(), e: () => timeline.toggleAll(),
      f: () => this.app.model.live && timeline.setFollow(!timeline.follow), r: () => byId('runs').focus(),
      Escape: () => this.#escape(),
      ...(within ? {
        ArrowDown: () => timeline.move(1), ArrowUp: () => timeline.move(-1), Home: () => timeline.edge(false), End: () => timeline.edge(true),
        ArrowLeft: () => this.#fold(true), ArrowRight: () => this.#fold(false), Enter: () => this.#enter(),
      } : {}),
    }[event.key] ?? (/^[1-5]$/.test(event.key) ? () => this.app.showTab(tabs.at(Number(event.key) - 1)) : undefined);
    if (!act) return;
    event.preventDefault();
    act();
  }

  #escape() {
    if (this.app.found.query || this.app.found.list.length > 0) this.parts.find.reset();
    byId('timeline').focus();
  }

  #fold(on) {
    const step = this.parts.timeline.selectedStep();
    if (step) this.parts.timeline.toggle(step, on);
  }

  #enter() {
    const { timeline } = this.parts;
    const step = timeline.selectedStep();
    if (step) timeline.toggle(step);
    else if (this.app.selected) {
      this.app.showTab('details');
      byId('panel-details').focus();
    }
  }
}
