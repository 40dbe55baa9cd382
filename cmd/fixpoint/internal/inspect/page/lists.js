// The tabs that list a run's calls, its effects, and what is to be known of the recording.

import { tonePill } from './card.js';
import { byId, el, replace } from './dom.js';
import { outcomePill } from './strips.js';
import { brief, clean, count, line, number, phaseName, status } from './words.js';

const troubles = new Set(['skipped', 'failed', 'dropped', 'error', 'timed_out', 'warning']);
const most = 300; // rows that are drawn before "show more"

/** Lists draws the list that is in view. */
export class Lists {
  constructor(app) {
    this.app = app;
    app.on('run', () => this.draw());
    app.on('tab', () => this.draw());
    app.on('select', () => this.#mark());
    app.on('model', () => ['calls', 'effects', 'notes'].includes(app.tab) && this.said !== this.#said() && this.draw());
  }

  // What the list in view says, so that nothing is drawn again for news of other things.
  #said() {
    const { model, run, tab } = this.app;
    if (tab === 'notes') return JSON.stringify([tab, run, model.dropped, model.notes.length, this.#warnings().length]);
    return JSON.stringify([tab, run, (model.folder(run)[tab] ?? []).map((item) => [item.id, item.status, item.outcome, item.error])]);
  }

  #warnings() {
    return [...this.app.model.spans.values()].filter((s) => s.run === this.app.run && s.text && troubles.has(s.status));
  }

  draw() {
    const folder = this.app.model.folder(this.app.run);
    this.said = this.#said();
    switch (this.app.tab) {
      case 'calls': this.#list('calls', folder.calls, 'This run called no tools.', (call) => this.#call(call)); break;
      case 'effects': this.#list('effects', folder.effects, 'This run had no effects.', (effect) => this.#effect(effect)); break;
      case 'notes': this.#notes(); break;
      default:
    }
  }

  #list(name, items, none, row, limit = most) {
    const box = byId('panel-' + name);
    this.nodes = [];
    replace(box, items.length === 0 ? el('p', { class: 'muted', text: none }) : el('div', { class: 'list' }, ...items.slice(0, limit).map(row)),
      items.length > limit ? el('button', { type: 'button', class: 'link', text: `show ${count(items.length - limit, 'more', 'more')}`, on: { click: () => this.#list(name, items, none, row, limit + 2000) } }) : null);
    this.#mark();
  }

  #item(kind, thing, ...children) {
    const node = el('button', { type: 'button', class: 'entry', on: { click: () => this.app.select({ kind, id: thing.id }) } }, ...children);
    node.inspected = { kind, id: thing.id };
    this.nodes.push(node);
    return node;
  }

  #mark() {
    for (const node of this.nodes ?? []) node.classList.toggle('selected', this.app.selected?.id === node.inspected.id && this.app.selected.kind === node.inspected.kind);
  }

  #call(call) {
    const why = (call.why ?? []).join(' ');
    const node = this.#item('call', call,
      el('span', { class: 'entryhead' }, el('span', { class: 'muted', text: call.step ? `step ${call.step}` : '' }), el('strong', { class: 'given mono', text: line(call.tool, 60) }), outcomePill(call)),
      el('span', { class: 'given mono muted', text: brief(call.args, 120) }),
      why ? el('span', { class: 'given', text: line(why, 240) }) : null);
    // The whole decision opens beside: a click selects the call and shows its details.
    node.addEventListener('click', () => this.app.showTab('details'));
    return node;
  }

  #effect(effect) {
    return this.#item('effect', effect,
      el('span', { class: 'entryhead' }, el('strong', { class: 'given', text: line(effect.effect, 60) }),
        el('span', { class: 'pill ' + (effect.error ? 'bad' : 'good'), text: effect.error ? '\u2717 failed' : '\u2713 delivered' })),
      el('span', { class: 'given muted', text: [line(effect.plugin, 60) && 'by ' + line(effect.plugin, 60), line(effect.handler, 60) && 'to ' + line(effect.handler, 60), effect.rev === undefined ? '' : `after revision ${effect.rev}`, effect.step ? `step ${effect.step}` : '', phaseName(effect.phase)].filter(Boolean).join(' \u00b7 ') }),
      effect.error ? el('span', { class: 'given bad', text: line(effect.error, 300) }) : null);
  }

  #notes() {
    const { model } = this.app;
    const warnings = this.#warnings();
    this.nodes = [];
    replace(byId('panel-notes'),
      el('h3', { text: 'The recording' }),
      model.dropped > 0 ? el('p', { class: 'warn', text: `\u26a0 ${count(model.dropped, 'event is', 'events are')} missing from this recording.` }) : null,
      ...model.notes.map((note) => el('p', { class: 'given', text: clean(note, 1000) })),
      model.dropped === 0 && model.notes.length === 0 ? el('p', { class: 'muted', text: 'It is complete: no event is missing.' }) : null,
      el('h3', { text: `Warnings of this run (${number(warnings.length)})` }),
      warnings.length === 0 ? el('p', { class: 'muted', text: 'None.' }) : el('div', { class: 'list' }, ...warnings.slice(0, most).map((span) => this.#item('span', span,
        el('span', { class: 'entryhead' }, el('span', { class: 'muted', text: span.step ? `step ${span.step}` : '' }), el('strong', { class: 'given', text: line(span.plugin ?? span.name, 60) }), tonePill(status(span.status))),
        el('span', { class: 'given', text: line(span.text, 300) })))),
      warnings.length > most ? el('p', { class: 'muted', text: `and ${number(warnings.length - most)} more; search for them` }) : null);
  }
}
