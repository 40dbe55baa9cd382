// The view with its indexes, kept up to date by patches. No drawing here.

import { Tallies } from './problems.js';
import { History } from './state.js';

/** Model holds one view. Objects of the view keep their identity when a patch replaces them. */
export class Model {
  constructor(view) {
    this.source = view.source ?? '';
    this.zero = view.zero;
    this.live = view.live === true;
    this.more = view.more === true; // of a long view, the rest is on its way
    this.dropped = view.dropped ?? 0;
    this.notes = [...(view.notes ?? [])];
    this.runs = new Map();
    this.spans = new Map();
    this.commits = new Map();
    this.calls = new Map();
    this.effects = new Map();
    this.children = new Map(); // id of a span -> spans right below it
    this.byPhase = new Map(); // id of a phase's span -> its commits
    this.folders = new Map(); // id of a run -> Folder
    this.order = []; // ids of runs, delegates below their parents
    this.tallies = new Tallies();
    this.end = 0; // the last time that anything has
    this.apply(view);
  }

  /** apply merges a patch (or a whole view) and says what changed: ids of runs, and of spans at the top of runs. */
  apply(patch) {
    const changed = { runs: new Set(), tops: new Set() };
    if (patch.live !== undefined) this.live = patch.live === true;
    if (patch.more !== undefined) this.more = patch.more === true;
    if (patch.dropped !== undefined) this.dropped = patch.dropped;
    for (const note of patch.notes ?? []) if (!this.notes.includes(note)) this.notes.push(note);
    for (const run of patch.runs ?? []) this.#run(run, changed);
    for (const span of patch.spans ?? []) this.#span(span, changed);
    for (const commit of patch.commits ?? []) this.#commit(commit, changed);
    for (const call of patch.calls ?? []) this.#listed(this.calls, 'calls', call, changed);
    for (const effect of patch.effects ?? []) this.#listed(this.effects, 'effects', effect, changed);
    for (const span of patch.spans ?? []) this.#touch(this.spans.get(span.id), changed);
    if (patch.runs?.length) this.#arrange();
    this.tallies.forget(changed.tops);
    return changed;
  }

  folder(run) {
    let folder = this.folders.get(run);
    if (!folder) {
      folder = new Folder();
      this.folders.set(run, folder);
    }
    return folder;
  }

  below(id) { return this.children.get(id) ?? none; }

  /** tally counts what went wrong in what is right below a run. */
  tally(top) { return this.tallies.of(this, top); }

  commitsOf(span) { return this.byPhase.get(span) ?? none; }

  /** history is the run's state by revision; it is built when first asked for. */
  history(run) {
    const folder = this.folder(run);
    if (!folder.history) {
      const info = this.runs.get(run);
      folder.history = new History(info?.base, info?.base_rev);
      for (const commit of folder.commits) folder.history.add(commit);
    }
    return folder.history;
  }

  /** revisions of a run: its first, then one for each commit. */
  revisions(run) {
    return [this.runs.get(run)?.base_rev ?? 0, ...this.folder(run).commits.map((c) => c.rev)];
  }

  /** commitAt is the commit that made a revision of a run. */
  commitAt(run, rev) {
    const commits = this.folder(run).commits;
    let low = 0;
    let high = commits.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (commits[middle].rev < rev) low = middle + 1; else high = middle;
    }
    return commits[low]?.rev === rev ? commits[low] : undefined;
  }

  /** ancestors lists a span and what it is in, up to its run. */
  ancestors(span) {
    const list = [];
    const seen = new Set();
    for (let at = span; at && !seen.has(at.id) && at.run === span.run; at = this.spans.get(at.parent)) {
      list.push(at);
      seen.add(at.id);
    }
    return list;
  }

  /** runSpan is the span of kind run that a run has. */
  runSpan(run) { return this.folder(run).span; }

  #run(run, changed) {
    const old = this.runs.get(run.id);
    if (old) become(old, run); else this.runs.set(run.id, run);
    this.#seen(run.start, run.end);
    changed.runs.add(run.id);
  }

  #span(span, changed) {
    if (span.hook === undefined && named.has(span.kind)) span.hook = span.name;
    const old = this.spans.get(span.id);
    this.#seen(span.start, span.end);
    if (old) {
      if (old.parent !== span.parent) {
        remove(this.children.get(old.parent), old);
        this.#adopt(span.parent, old);
      }
      become(old, span);
    } else {
      this.spans.set(span.id, span);
      this.#adopt(span.parent, span);
      const folder = this.folder(span.run);
      if (span.kind === 'run') folder.span ??= span;
      else if (span.parent === undefined || !this.spans.has(span.parent)) folder.loose.push(span);
    }
    changed.runs.add(span.run);
  }

  #adopt(parent, span) {
    if (parent === undefined) return;
    const siblings = this.children.get(parent);
    if (siblings) siblings.push(span); else this.children.set(parent, [span]);
  }

  #commit(commit, changed) {
    const folder = this.folder(commit.run);
    const old = this.commits.get(commit.id);
    this.#seen(commit.at);
    if (old) {
      become(old, commit);
      folder.history = undefined;
    } else {
      this.commits.set(commit.id, commit);
      insert(folder.commits, commit, (a, b) => a.rev - b.rev);
      if (commit.phase_span !== undefined) {
        const list = this.byPhase.get(commit.phase_span);
        if (list) list.push(commit); else this.byPhase.set(commit.phase_span, [commit]);
      }
      if (folder.history && folder.commits.at(-1) === commit) folder.history.add(commit); else folder.history = undefined;
    }
    changed.runs.add(commit.run);
    this.#touch(this.spans.get(commit.phase_span), changed);
  }

  #listed(map, name, item, changed) {
    const old = map.get(item.id);
    if (old) become(old, item);
    else {
      map.set(item.id, item);
      this.folder(item.run)[name].push(item);
    }
    changed.runs.add(item.run);
    if (item.span !== undefined) this.#touch(this.spans.get(item.span), changed);
  }

  // The part of a timeline that a span is drawn in is named by what is right below its run.
  #touch(span, changed) {
    for (let at = span, n = 0; at && n < 20; at = this.spans.get(at.parent), n++) {
      const parent = this.spans.get(at.parent);
      if (!parent || parent.kind === 'run') {
        changed.tops.add(at.id);
        return;
      }
    }
  }

  #seen(...times) {
    for (const time of times) if (time > this.end) this.end = time;
  }

  #arrange() {
    const below = new Map();
    for (const run of this.runs.values()) {
      const parent = this.parentRun(run);
      const list = below.get(parent?.id) ?? [];
      list.push(run);
      below.set(parent?.id, list);
    }
    this.order = [];
    const visit = (id, depth) => {
      for (const run of (below.get(id) ?? []).sort((a, b) => a.start - b.start)) {
        if (this.order.some((o) => o.id === run.id)) continue;
        this.order.push({ id: run.id, depth });
        visit(run.id, depth + 1);
      }
    };
    visit(undefined, 0);
    for (const run of this.runs.values()) if (!this.order.some((o) => o.id === run.id)) this.order.push({ id: run.id, depth: 0 });
  }

  /** parentRun is the run that delegated to run. */
  parentRun(run) {
    const owner = this.runs.get(run.parent);
    return owner === run ? undefined : owner;
  }

  /** delegates lists the runs that a tool's body started. */
  delegates(span) {
    return this.below(span.id).filter((s) => s.kind === 'run').map((s) => this.runs.get(s.run)).filter(Boolean);
  }
}

/** Folder is what belongs to one run. */
class Folder {
  constructor() {
    this.span = undefined;
    this.loose = []; // spans whose parent was not known when they came
    this.commits = [];
    this.calls = [];
    this.effects = [];
    this.history = undefined;
  }
}

const none = Object.freeze([]);

// What has a name that is more than that of its plugin.
const named = new Set(['hook', 'gate', 'action']);

function become(old, next) {
  if (old === next) return;
  for (const name of Object.keys(old)) if (!(name in next)) delete old[name];
  Object.assign(old, next);
}

function remove(list, item) {
  const i = list?.indexOf(item) ?? -1;
  if (i >= 0) list.splice(i, 1);
}

function insert(list, item, compare) {
  let i = list.length;
  while (i > 0 && compare(list[i - 1], item) > 0) i--;
  list.splice(i, 0, item);
}
