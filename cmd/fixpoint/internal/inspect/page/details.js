// The panel that tells all about what is selected.

import { revisions, spanTime, tonePill } from './card.js';
import { drawCall } from './calls.js';
import { byId, el, replace } from './dom.js';
import { callOf } from './strips.js';
import { drawText, drawValue, facts, section, sentences } from './values.js';
import { brief, clean, count, duration, line, number, owner, phaseName, slot, status } from './words.js';

/** Details follows the selection. */
export class Details {
  constructor(app) {
    this.app = app;
    this.box = byId('panel-details');
    app.on('select', () => this.draw());
    app.on('tab', () => this.draw());
    app.on('explained', () => this.draw(true));
    app.on('model', (what) => what.runs.has(app.run) && this.draw(true));
  }

  draw(again) {
    if (this.app.tab !== 'details') return;
    const { selected } = this.app;
    const thing = this.app.thing(selected);
    // What did not change is left as it is, with what has been opened in it.
    const said = this.#said(thing);
    if (again && said === this.said) return;
    this.said = said;
    if (!thing) {
      const run = this.app.model.runs.get(this.app.run);
      replace(this.box, run ? this.#run(run) : el('p', { class: 'muted', text: 'Nothing has been recorded yet.' }));
      return;
    }
    const scroll = this.box.scrollTop;
    replace(this.box, { span: () => this.#span(thing), commit: () => this.#commit(thing), call: () => drawCall(this.app, thing), effect: () => this.#effect(thing), run: () => this.#run(thing) }[selected.kind]());
    this.box.scrollTop = again ? scroll : 0;
  }

  #said(thing) {
    if (!thing) return JSON.stringify([this.app.run, this.app.model.runs.get(this.app.run)]);
    const call = thing.kind === 'call' ? callOf(this.app.model, thing) : undefined;
    return JSON.stringify([thing, call, thing.kind === 'phase' ? this.app.model.commitsOf(thing.id).length : 0]);
  }

  #run(run) {
    const said = status(run.status);
    return [
      el('h2', {}, 'Run of ', el('span', { class: 'given', text: line(run.agent, 80) })),
      facts([
        ['status', tonePill(said)], ['reason', run.reason && line(run.reason).replace(/_/g, ' ')], ['detail', run.detail], ['error', run.error && el('span', { class: 'given bad', text: clean(run.error, 1000) })],
        ['started', this.#clock(run.start)], ['took', duration((run.end ?? this.app.model.end) - run.start)], ['steps', run.steps && number(run.steps)],
        ['tokens', run.tokens_in === undefined ? undefined : `${number(run.tokens_in)} in, ${number(run.tokens_out ?? 0)} out`],
        ['mode', run.mode], ['thread', run.thread], ['run', run.id], ['begins at', `revision ${run.base_rev ?? 0}`],
        ['problems', [[run.conflicts, 'conflict', 'conflicts'], [run.retries, 'retry', 'retries'], [run.blocked, 'call blocked', 'calls blocked'], [run.failed, 'failure', 'failures']].filter(([n]) => n).map(([n, one, many]) => count(n, one, many)).join(', ')],
      ]),
      section('Input', drawText(run.input)),
      el('p', { class: 'muted', text: 'Select anything in the timeline to see its details. Press ? for all keys.' }),
    ];
  }

  #span(span) {
    const call = span.kind === 'call' ? callOf(this.app.model, span) : undefined;
    if (call) return drawCall(this.app, call);
    const said = status(span.status);
    const { model } = this.app;
    const title = span.kind === 'phase' ? phaseName(span.phase ?? span.name) : span.kind === 'step' ? `Step ${span.step ?? ''}` : span.kind === 'round' ? `Round ${span.round ?? ''}` : owner(span.plugin, span.hook) || line(span.name, 100);
    const commits = span.kind === 'phase' ? model.commitsOf(span.id) : model.folder(span.run).commits.filter((c) => c.rev === span.rev_after && span.kind !== 'step');
    const up = model.ancestors(span).slice(1).find((s) => s.kind === 'phase');
    const parent = span.call === undefined ? undefined : model.calls.get(span.call);
    return [
      el('h2', {}, el('span', { class: 'tag', text: line(span.kind, 20) }), ' ', el('span', { class: 'given', text: title })),
      facts([
        ['status', tonePill(said)],
        ['in words', span.text && el('span', { class: 'given', text: clean(span.text, 2000) })],
        ['took', spanTime(span)], ['began', this.#clock(span.start)],
        ['step', span.step && number(span.step)], ['phase', span.kind === 'phase' ? undefined : span.phase && this.#link(phaseName(span.phase), up && { kind: 'span', id: up.id })],
        ['round', span.kind === 'round' ? undefined : span.round || undefined], ['plugin', span.plugin], [span.kind === 'gate' ? 'gate' : 'hook', span.hook], ['tier', span.tier],
        ['try', span.try === undefined ? undefined : span.try === 1 ? 'first' : `${span.try}, alone, on a fresh snapshot`],
        ['state', revisions(span)],
        ['call', parent && this.#link(`${line(parent.tool, 60)} (${line(parent.call, 60)})`, { kind: 'call', id: parent.id })],
        ...Object.entries(span.facts ?? {}).map(([name, value]) => [name.replace(/_/g, ' '), typeof value === 'number' ? number(value) : typeof value === 'string' ? value : brief(value, 400)]),
      ]),
      ...this.#lost(span),
      ...commits.map((commit) => section(`Revision ${commit.rev}${commit.retry ? ', a retry\u2019s own commit' : ''}`, ...this.#commitParts(commit, span.kind === 'hook' || span.kind === 'action' ? span : undefined))),
    ];
  }

  // What a hook lost, and to whom, is in the commit that won.
  #lost(span) {
    if (span.kind !== 'hook') return [];
    const conflicts = this.app.model.commitsOf(span.parent).flatMap((c) => (c.conflicts ?? []).map((x) => ({ ...x, rev: c.rev })))
      .filter((c) => c.loser === span.plugin && (c.hook === undefined || c.hook === span.hook));
    if (conflicts.length === 0) return [];
    return [section('Conflict', ...conflicts.map((c) => conflictText(c, c.rev)))];
  }

  #commit(commit) {
    return [
      el('h2', {}, el('span', { class: 'tag', text: 'commit' }), ` Revision ${commit.rev}`),
      facts([
        ['made in', [commit.step ? `step ${commit.step}` : '', phaseName(commit.phase), commit.round ? `round ${commit.round}` : ''].filter(Boolean).join(', ')],
        ['kind', commit.retry ? 'a retry\u2019s own commit, after a conflict' : commit.round ? 'of an action' : 'merged: all hooks that did not conflict, at once'],
        ['at', this.#clock(commit.at)],
        ['phase', commit.phase_span && this.#link('show in the timeline', { kind: 'span', id: commit.phase_span })],
        ['state', el('button', { type: 'button', class: 'link', text: 'state and difference', on: { click: () => this.app.showTab('state') } })],
      ]),
      ...this.#commitParts(commit),
    ];
  }

  #commitParts(commit, by) {
    const conflicts = by ? [] : commit.conflicts ?? [];
    const writes = (commit.writes ?? []).filter((w) => !by || (w.plugin === by.plugin && (w.hook === undefined || by.hook === undefined || w.hook === by.hook)));
    return [
      conflicts.length > 0 ? el('div', {}, el('h4', { text: 'Conflicts' }), ...conflicts.map((c) => conflictText(c, commit.rev))) : null,
      writes.length > 0 ? el('div', {}, el('h4', { text: 'Writes' }), ...writes.map((w) => el('div', { class: 'write' },
        el('div', {}, el('code', { class: 'given', text: slot(w.key, w.entry) }), ' ', el('span', { class: 'muted given', text: `${line(w.op, 30)} by ${owner(w.plugin, w.hook)}` })),
        w.value === undefined ? null : drawValue({ value: w.value })))) : null,
      by ? null : this.app.explained(commit), // asks for the explanations
      by ? null : el('div', {}, ...(commit.changes ?? []).filter((c) => c.why?.length).map((c) => el('div', { class: 'write' }, el('code', { class: 'given', text: slot(c.key, c.entry) }), sentences(c.why)))),
    ];
  }

  #effect(effect) {
    const span = this.app.model.spans.get(effect.span);
    return [
      el('h2', {}, el('span', { class: 'tag', text: 'effect' }), ' ', el('span', { class: 'given', text: line(effect.effect, 80) })),
      facts([
        ['outcome', effect.error ? el('span', { class: 'given bad', text: '\u2717 ' + clean(effect.error, 1000) }) : '\u2713 delivered'],
        ['emitted by', effect.plugin], ['handled by', effect.handler], ['after', effect.rev === undefined ? undefined : `revision ${effect.rev}`],
        ['step', effect.step], ['phase', phaseName(effect.phase)], ['at', this.#clock(effect.at)],
        ['shown', span && this.#link('in the timeline', { kind: 'span', id: span.id })], ['id', effect.id],
      ]),
    ];
  }

  #link(text, item) {
    if (!item) return text;
    return el('button', { type: 'button', class: 'link given', text, on: { click: () => this.app.select(item) } });
  }

  #clock(time) {
    const zero = Date.parse(this.app.model.zero);
    const after = `+${duration(time) || '0'}`;
    if (Number.isNaN(zero)) return after;
    const at = new Date(zero + time / 1000);
    return `${after} (${at.toISOString().slice(11, 23)} UTC)`;
  }
}

function conflictText(c, rev) {
  const words = c.fate === 'retried' ? 'It was run again, alone, on a fresh snapshot.' : 'It was refused.';
  return el('div', { class: 'conflict' },
    el('p', { class: 'given', text: `\u2260 ${owner(c.loser, c.hook)} lost ${slot(c.key, c.entry)} to ${owner(c.winner, c.winner_hook)} in revision ${rev}. ${words}` }),
    c.lost?.length ? el('div', {}, el('p', { class: 'muted', text: 'What it wanted to write:' }), ...c.lost.map((w) => el('div', { class: 'write' },
      el('code', { class: 'given', text: slot(w.key, w.entry) }), ' ', el('span', { class: 'muted', text: line(w.op, 30) }), w.value === undefined ? null : drawValue({ value: w.value })))) : null);
}
