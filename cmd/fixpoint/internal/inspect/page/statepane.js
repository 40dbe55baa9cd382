// The state at the revision of the slider: what the revision changed, with who wrote it
// and what it overwrote, and every key with its value.

import { byId, el, replace } from './dom.js';
import { slotName } from './state.js';
import { drawDiff, drawValue, folding, section, sentences } from './values.js';
import { brief, count, line, owner, phaseName, slot } from './words.js';

const entriesShown = 100;

/** StatePane draws when it is in view. */
export class StatePane {
  constructor(app) {
    this.app = app;
    this.box = byId('panel-state');
    this.open = new Set(); // keys that are open
    app.on('revision', () => this.stale());
    app.on('tab', () => this.stale());
    app.on('explained', () => this.stale());
    app.on('model', () => app.tab === 'state' && this.said !== this.#said() && this.stale());
  }

  /** stale draws once in the next frame, however often the revision moves until then. */
  stale() {
    if (this.app.tab !== 'state' || this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  // What is drawn follows from the commit alone, since those before it do not change.
  #said() { return JSON.stringify([this.app.run, this.app.rev, this.app.model.commitAt(this.app.run, this.app.rev)]); }

  draw() {
    const { model, run, rev } = this.app;
    if (run === undefined) return;
    this.said = this.#said();
    const commit = model.commitAt(run, rev);
    const history = model.history(run);
    const changes = commit ? history.changes(commit) : [];
    const waiting = commit ? this.app.explained(commit) : null;
    const scroll = this.box.scrollTop;
    this.box.dataset.rev = String(rev);
    replace(this.box,
      el('h2', { text: `State at revision ${rev}` }),
      el('p', { class: 'muted', text: commit ? [commit.step ? `step ${commit.step}` : '', phaseName(commit.phase), commit.round ? `round ${commit.round}` : '', commit.retry ? 'a retry\u2019s own commit' : ''].filter(Boolean).join(', ') : 'as the run began' }),
      commit ? section(`Changed by this revision (${changes.length})`, waiting, ...changes.map((c) => this.#change(history, commit, c))) : null,
      this.#all(history, rev, new Set(changes.map((c) => c.slot?.name))));
    this.box.scrollTop = commit === this.last ? scroll : 0;
    this.last = commit;
  }

  #change(history, commit, { change, slot: place, before, after }) {
    const kind = !before ? 'added' : !after ? 'removed' : 'changed';
    const sign = { added: '+', removed: '\u2212', changed: '~' }[kind];
    const authors = (commit.writes ?? []).filter((w) => w.key === change.key && (w.entry === undefined || change.entry === undefined || w.entry === change.entry));
    const by = [...new Set(authors.map((w) => owner(w.plugin, w.hook)))].join(', ');
    const hidden = change.hidden || before?.change.hidden;
    return el('article', { class: 'change ' + kind, data: { key: line(slot(change.key, change.entry), 200) } },
      el('header', {}, el('span', { class: 'sign', text: `${sign} ${kind}` }), el('code', { class: 'given', text: slot(change.key, change.entry) }),
        by ? el('span', { class: 'muted given', text: 'by ' + by }) : null),
      before ? el('p', { class: 'small muted' }, 'overwrote ', this.#author(before)) : null,
      hidden ? drawValue({ change: { hidden: true } }) : drawDiff(before?.value, after?.value),
      change.cut === undefined ? null : drawValue({ change: { cut: change.cut }, value: '\u2026' }),
      change.why?.length ? folding('Explanation', '', () => sentences(change.why), true) : null);
  }

  #author(version) {
    const writes = (version.commit?.writes ?? []).filter((w) => w.key === version.change.key && (version.change.entry === undefined || w.entry === undefined || w.entry === version.change.entry));
    const by = [...new Set(writes.map((w) => owner(w.plugin, w.hook)))].join(', ');
    const what = `the value of revision ${version.rev}${by ? ` by ${by}` : version.commit ? '' : ', from before the run'}`;
    if (!version.commit) return what;
    return el('button', { type: 'button', class: 'link given', text: what, on: { click: () => this.app.setRevision(version.rev) } });
  }

  #all(history, rev, changed) {
    const keys = history.at(rev);
    return section(`All keys (${keys.length})`, ...keys.map((item) => this.#key(item, changed)));
  }

  #key(item, changed) {
    const { key } = item;
    if (item.entries) {
      const fresh = item.entries.filter((e) => changed.has(slotName(key, e.entry))).length;
      return this.#folding(key, `table \u00b7 ${count(item.entries.length, 'entry', 'entries')}`, fresh > 0, () => this.#entries(item, changed, entriesShown));
    }
    const list = Array.isArray(item.value) ? count(item.value.length, 'element') : item.change.hidden ? 'hidden' : brief(item.value, 60);
    return this.#folding(key, list, changed.has(slotName(key)), () => el('div', {}, drawValue(item), el('p', { class: 'small muted' }, 'written in ', this.#author(item))));
  }

  #entries(item, changed, limit) {
    const node = el('div', {}, ...item.entries.slice(0, limit).map((e) => this.#folding(e.entry, e.change.hidden ? 'hidden' : brief(e.value, 60), changed.has(slotName(item.key, e.entry)),
      () => el('div', {}, drawValue(e), el('p', { class: 'small muted' }, 'written in ', this.#author(e))), item.key)));
    if (item.entries.length > limit) {
      node.append(el('button', { type: 'button', class: 'link', text: `show ${count(Math.min(1000, item.entries.length - limit), 'more entry', 'more entries')}`, on: { click: () => node.replaceWith(this.#entries(item, changed, limit + 1000)) } }));
    }
    return node;
  }

  #folding(name, hint, fresh, make, within) {
    const id = JSON.stringify([within, name]);
    const node = folding(line(name, 120), hint, make, this.open.has(id));
    node.classList.add('key');
    node.dataset.key = line(name, 120);
    if (fresh) {
      node.classList.add('fresh');
      node.querySelector('summary').append(el('span', { class: 'pill plain', text: '~ this revision' }));
    }
    node.addEventListener('toggle', () => (node.open ? this.open.add(id) : this.open.delete(id)));
    return node;
  }
}
