// What the page is looking at: the run, the selected thing, the revision, the tab. The
// parts of the page change it here and listen here; none calls another.

import { el } from './dom.js';

/** App has the topics explained, model, run, select, revision, tab, find and theme. */
export class App {
  constructor(model) {
    this.model = model;
    this.run = undefined;
    this.selected = undefined; // {kind: span | commit | call | effect | run, id}
    this.rev = undefined;
    this.atEnd = true; // the slider stays at the newest revision
    this.tab = 'details';
    this.found = { query: '', filters: {}, list: [], set: new Set(), at: -1 };
    this.listeners = new Map();
    this.explain = undefined; // fetches explanations, where the view is without them
    this.asked = new WeakMap(); // commits whose explanations are on their way, or cannot be had
  }

  on(topic, listener) {
    this.listeners.set(topic, [...(this.listeners.get(topic) ?? []), listener]);
  }

  emit(topic, detail) {
    for (const listener of this.listeners.get(topic) ?? []) listener(detail);
  }

  /** thing is the object of the view that a selection names. */
  thing(item) {
    if (!item) return undefined;
    const maps = { span: 'spans', commit: 'commits', call: 'calls', effect: 'effects', run: 'runs' };
    return this.model[maps[item.kind]]?.get(item.id);
  }

  showRun(run) {
    if (run === this.run || !this.model.runs.has(run)) return;
    this.run = run;
    this.selected = undefined;
    this.atEnd = true;
    this.rev = this.model.revisions(run).at(-1);
    this.emit('run');
    this.emit('revision');
    this.emit('select', {});
  }

  /** select makes an item the selected one; how can have scroll: false and tab: true. */
  select(item, how = {}) {
    const thing = this.thing(item);
    if (!thing) return;
    const run = item.kind === 'run' ? item.id : thing.run;
    if (run !== this.run) this.showRun(run);
    this.selected = item;
    const rev = this.#revisionOf(item, thing);
    if (rev !== undefined && how.revision !== false) this.#move(rev);
    if (how.tab) this.showTab(how.tab === true ? 'details' : how.tab);
    this.emit('select', how);
  }

  // The revision that shows what a thing did: the last one within its time.
  #revisionOf(item, thing) {
    if (item.kind === 'commit') return thing.rev;
    if (item.kind === 'effect') return thing.rev;
    const span = item.kind === 'call' ? this.model.spans.get(thing.span) : item.kind === 'span' ? thing : undefined;
    if (!span) return undefined;
    if (span.rev_after !== undefined) return span.rev_after;
    const end = span.end ?? Infinity;
    if (span.kind === 'hook' || span.kind === 'gate') {
      // What a hook of a tier wrote is in the commit that merged the tier.
      const merged = this.model.commitsOf(span.parent).find((c) => c.at >= end && !c.retry);
      if (merged) return merged.rev;
    }
    const commits = this.model.folder(span.run).commits;
    let rev = this.model.revisions(span.run)[0];
    for (const commit of commits) if (commit.at <= end) rev = commit.rev;
    return rev;
  }

  /** setRevision moves the state to a revision and selects the commit that made it. */
  setRevision(rev) {
    this.#move(rev);
    const commit = this.model.commitAt(this.run, this.rev);
    if (commit) {
      this.selected = { kind: 'commit', id: commit.id };
      this.emit('select', {});
    }
  }

  #move(rev) {
    const all = this.model.revisions(this.run);
    let nearest = all[0];
    for (const r of all) if (r <= rev) nearest = r;
    this.atEnd = nearest === all.at(-1);
    if (nearest === this.rev) return;
    this.rev = nearest;
    this.emit('revision');
  }

  showTab(tab) {
    if (tab === this.tab) return;
    this.tab = tab;
    this.emit('tab');
  }

  /** explained asks for the explanations of a commit's changes, if they are still to come; it says in words how that went. */
  explained(commit) {
    const due = (commit.changes ?? []).length > 0 && this.explain && commit.changes.every((c) => c.why === undefined);
    if (!due) return null;
    if (!this.asked.has(commit)) {
      this.asked.set(commit, 'waiting');
      const { changes } = commit;
      this.explain(commit).then((lists) => {
        changes.forEach((change, i) => { change.why = lists[i] ?? []; });
        this.asked.delete(commit);
      }, () => this.asked.set(commit, 'failed')).then(() => this.emit('explained'));
    }
    return this.asked.get(commit) === 'failed' ? el('p', { class: 'muted small', text: 'The explanation cannot be had: the server does not answer.' }) : null;
  }

  /** changed tells everybody that a patch has been merged. */
  changed(what) {
    if (!this.model.runs.has(this.run)) {
      const first = this.model.order[0];
      if (first) this.showRun(first.id);
    }
    if (this.atEnd && what.runs.has(this.run)) {
      const last = this.model.revisions(this.run).at(-1);
      if (last !== this.rev) {
        this.rev = last;
        this.emit('revision');
      }
    }
    this.emit('model', what);
  }
}
