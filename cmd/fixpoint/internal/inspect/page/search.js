// Finding things in a view by text and by filters. No drawing here.

import { problem } from './problems.js';

/** Finder keeps the lower-case text of each thing that can be found. */
export class Finder {
  constructor(model) {
    this.model = model;
    this.stale = true;
    this.entries = [];
  }

  /** entriesOf lists what can be found in the order of runs and time. */
  list() {
    if (!this.stale) return this.entries;
    const place = new Map(this.model.order.map((o, i) => [o.id, i]));
    const entries = [];
    for (const span of this.model.spans.values()) entries.push(spanEntry(span));
    for (const commit of this.model.commits.values()) entries.push(commitEntry(commit));
    for (const call of this.model.calls.values()) entries.push(callEntry(call, this.model.spans.get(call.span)));
    for (const effect of this.model.effects.values()) entries.push(effectEntry(effect));
    entries.sort((a, b) => (place.get(a.run) ?? 0) - (place.get(b.run) ?? 0) || a.at - b.at || a.rank - b.rank);
    this.entries = entries;
    this.stale = false;
    return entries;
  }

  /** find lists what has every word of the query and passes the filters. */
  find(query, filters) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const any = words.length > 0 || active(filters);
    if (!any) return [];
    return this.list().filter((entry) => passes(entry, filters) && words.every((word) => entry.text.includes(word)));
  }

  /** choices lists the values that a filter of phases, plugins or kinds can have. */
  choices(name) {
    const found = new Set();
    for (const span of this.model.spans.values()) if (span[name]) found.add(span[name]);
    return [...found].sort();
  }
}

/** active tells whether any filter is set. */
export const active = (filters) => Boolean(filters && (filters.phase || filters.plugin || filters.kind || filters.problems?.size));

function passes(entry, filters) {
  if (!filters) return true;
  return (!filters.phase || entry.phase === filters.phase)
    && (!filters.plugin || entry.plugins.includes(filters.plugin))
    && (!filters.kind || entry.sort === filters.kind)
    && (!filters.problems?.size || filters.problems.has(entry.problem));
}

// So much of a text is searched: beyond it, a value is a blob.
const limit = 4000;

function text(...parts) {
  return parts.filter((p) => p !== undefined && p !== null)
    .map((p) => (typeof p === 'string' ? p : JSON.stringify(p)).slice(0, limit)).join('\n').toLowerCase();
}

function spanEntry(span) {
  return {
    kind: 'span', id: span.id, run: span.run, at: span.start, rank: 0, phase: span.phase, sort: span.kind, problem: problem(span),
    plugins: [span.plugin], text: text(span.name, span.kind, span.phase, span.plugin, span.hook, span.call, span.status, span.text, span.facts),
  };
}

function commitEntry(commit) {
  const conflicts = commit.conflicts ?? [];
  return {
    kind: 'commit', id: commit.id, run: commit.run, at: commit.at, rank: 1, phase: commit.phase, sort: 'commit',
    problem: conflicts.length > 0 ? 'conflicts' : commit.retry ? 'retries' : undefined,
    plugins: [...(commit.writes ?? []).map((w) => w.plugin), ...conflicts.map((c) => c.loser)],
    text: text(`revision ${commit.rev}`, ...(commit.writes ?? []).flatMap((w) => [w.plugin, w.hook, w.key, w.entry, w.value]),
      ...(commit.changes ?? []).flatMap((c) => [c.key, c.entry, ...(c.why ?? [])]),
      ...conflicts.flatMap((c) => [c.key, c.entry, c.winner, c.loser])),
  };
}

function callEntry(call, span) {
  const votes = call.votes ?? [];
  return {
    kind: 'call', id: call.id, run: call.run, at: span?.start ?? 0, rank: 2, sort: 'call',
    problem: /block|den/.test(call.outcome ?? '') ? 'blocked' : call.error ? 'failed' : call.status === 'waiting' || call.tickets?.length ? 'waits' : undefined,
    plugins: votes.map((v) => v.plugin),
    text: text(call.call, call.tool, call.args, call.outcome, call.result, ...(call.why ?? []), ...(call.clashes ?? []),
      ...votes.flatMap((v) => [v.plugin, v.gate, v.decision, v.reason, v.error]), ...(call.tickets ?? []).flatMap((t) => [t.id, t.message, t.reason])),
  };
}

function effectEntry(effect) {
  return {
    kind: 'effect', id: effect.id, run: effect.run, at: effect.at, rank: 3, phase: effect.phase, sort: 'effect',
    problem: effect.error ? 'failed' : undefined, plugins: [effect.plugin, effect.handler],
    text: text(effect.effect, effect.plugin, effect.handler, effect.error),
  };
}
