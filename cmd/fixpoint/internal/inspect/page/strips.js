// Draws the rows of a timeline that are no cards: headers of steps and calls, bars on the
// step's own scale of time, thin lines for phases in which nothing happened.

import { el } from './dom.js';
import { pill, spanTime, revisions, word } from './card.js';
import { extent, members, pieces, shares, timeBy } from './rows.js';
import { brief, count, duration, line, number, owner, phaseName, status } from './words.js';

/** drawStrip makes the element of a row; act has toggle(step) and openRun(run). */
export function drawStrip(model, row, mark, act) {
  switch (row.type) {
    case 'step': return stepHeader(model, row, mark, act);
    case 'edge': return edgeHeader(model, row);
    case 'call': return callHeader(model, row, mark);
    case 'quiet': return quietLine(row, mark);
    default: return barLine(model, row, mark, act);
  }
}

function stepHeader(model, row, mark, act) {
  const { span } = row;
  const spans = members(model, row.group);
  const [, last] = extent(spans);
  const end = span.end ?? Math.max(last, span.start);
  const parts = shares(model, spans, span.start, end);
  const sign = el('span', { class: 'twist', 'aria-hidden': 'true', text: row.folded ? '\u25b8' : '\u25be' });
  const node = el('header', { class: 'step' + (row.folded ? ' folded' : '') },
    el('div', { class: 'stepline' }, sign,
      el('strong', { text: `Step ${span.step ?? ''}` }),
      el('span', { class: 'muted', text: spanTime(span) }), revisions(span), ...badges(model.tally(span)), pill(span, ['ok', 'done']),
      el('span', { class: 'muted shares', text: saidShares(timeBy(pieces(model, spans), end), end - span.start) })),
    strip(parts));
  sign.addEventListener('click', (event) => {
    event.stopPropagation();
    act.toggle(row.id);
  });
  mark(node, { kind: 'span', id: span.id });
  return node;
}

/** badges say what went wrong, in words and by a sign. */
export function badges(found) {
  return [
    found.conflicts ? el('span', { class: 'pill warn', text: '\u2260 ' + count(found.conflicts, 'conflict') }) : null,
    found.retries && !found.conflicts ? el('span', { class: 'pill warn', text: '\u21bb ' + count(found.retries, 'retry', 'retries') }) : null,
    found.blocked ? el('span', { class: 'pill bad', text: '\u2715 ' + number(found.blocked) + ' blocked' }) : null,
    found.failed ? el('span', { class: 'pill bad', text: '\u2717 ' + number(found.failed) + ' failed' }) : null,
    found.waits ? el('span', { class: 'pill calm', text: '\u2016 ' + count(found.waits, 'wait') }) : null,
  ];
}

function strip(parts) {
  return el('div', { class: 'strip', 'aria-hidden': 'true' }, ...parts.map((piece) => el('span', {
    class: 'kind-' + word(piece.kind), title: piece.kind === 'phase' ? phaseName(piece.name) : piece.kind,
    style: { left: (piece.from * 100).toFixed(2) + '%', width: Math.max(0, (piece.to - piece.from) * 100).toFixed(2) + '%' },
  })));
}

const names = { phase: 'phases', call: 'tools', body: 'tools', wait: 'waiting' };

function saidShares(times, total) {
  const sums = new Map();
  for (const [kind, time] of times) {
    const name = names[kind] ?? kind;
    sums.set(name, (sums.get(name) ?? 0) + time / Math.max(total, 1e-9));
  }
  return [...sums].sort((a, b) => b[1] - a[1]).slice(0, 3).map(([name, share]) => `${name} ${share < 0.01 ? '<1' : Math.round(share * 100)} %`).join(' \u00b7 ');
}

function edgeHeader(model, row) {
  const spans = members(model, row.group);
  const [begin, end] = extent(spans);
  const phases = new Set(spans.map((s) => s.phase));
  const name = phases.has('run_start') ? 'Beginning of the run' : phases.has('run_end') ? 'End of the run' : 'Between steps';
  return el('header', { class: 'edge' }, el('strong', { text: name }), el('span', { class: 'muted', text: duration(end - begin) }));
}

function callHeader(model, row, mark) {
  const { span } = row;
  const call = callOf(model, span);
  const waits = (call?.tickets ?? []).length;
  const node = el('header', { class: 'call' },
    el('span', { class: 'tag', text: 'call' }),
    el('strong', { class: 'given mono', text: line(call?.tool ?? span.name, 60) }),
    el('span', { class: 'given mono muted args', text: call ? (call.args === undefined || call.args === null ? '' : brief(call.args, 140)) : line(span.text, 140) }),
    outcomePill(call, span),
    waits ? el('span', { class: 'pill calm', text: '\u2016 asked a person' }) : null,
    el('span', { class: 'muted', text: spanTime(span) }));
  mark(node, { kind: 'span', id: span.id });
  return node;
}

/** callOf is the call that a span is of. */
export const callOf = (model, span) => model.calls.get(span.call) ?? model.folder(span.run).calls.find((c) => c.span === span.id);

/** outcomePill says how a call ended. */
export function outcomePill(call, span) {
  const name = call?.outcome ?? call?.status ?? span?.status;
  if (!name) return null;
  const said = status(name);
  const tone = said.tone || (call?.error ? 'bad' : name === 'ok' || name === 'succeeded' ? 'good' : 'plain');
  return el('span', { class: 'pill ' + tone, text: said.sign ? `${said.sign} ${said.word}` : said.word });
}

function quietLine(row, mark) {
  const node = el('div', { class: 'quiet' }, 'nothing happened in ');
  row.spans.forEach((span, i) => {
    const name = el('span', { class: 'given', text: phaseName(span.phase ?? span.name) });
    mark(name, { kind: 'span', id: span.id });
    node.append(i > 0 ? ', ' : '', name);
  });
  return node;
}

function barLine(model, row, mark, act) {
  const { span } = row;
  const [begin, end] = row.scale;
  const total = Math.max((end - begin), 1e-9);
  const from = Math.min(1, Math.max(0, (span.start - begin) / total));
  const to = Math.min(1, Math.max(from, ((span.end ?? end) - begin) / total));
  const node = el('div', { class: `barline line-${word(span.kind)}`, data: { span: span.id } },
    el('div', { class: 'label given' }, el('span', { class: 'tag', text: kindWord(span) }), ' ', barName(span)),
    el('div', { class: 'track' }, el('div', {
      class: `bar kind-${word(span.kind)}${span.end === undefined ? ' open' : ''}${status(span.status).tone === 'bad' ? ' bad' : ''}`,
      style: { left: (from * 100).toFixed(3) + '%', width: ((to - from) * 100).toFixed(3) + '%' },
    })),
    el('div', { class: 'words' }, el('strong', { text: spanTime(span) }), pill(span, ['ok', 'done', 'waiting', 'open']), ...barWords(model, span, act)));
  mark(node, { kind: 'span', id: span.id });
  return node;
}

const kindWord = (span) => ({ model: 'model', body: 'tool', wait: 'wait', mark: 'note', effect: 'effect', phase: 'phase' })[span.kind] ?? line(span.kind, 20);

const barName = (span) => (span.kind === 'wait' ? 'for a person' : span.kind === 'mark' ? line(span.name, 80) : owner(span.plugin, span.hook) || line(span.name, 60));

function barWords(model, span, act) {
  const facts = span.facts ?? {};
  const said = [];
  if (span.kind === 'model') {
    if (typeof facts.tokens_in === 'number') said.push(`${number(facts.tokens_in)} tokens in`);
    if (typeof facts.tokens_out === 'number') said.push(`${number(facts.tokens_out)} out`);
  }
  if (span.text) said.push(line(span.text, 160));
  const links = model.delegates(span).map((run) => el('button', {
    type: 'button', class: 'link', tabindex: '-1', text: `run of ${line(run.agent, 40)} \u2192`,
    on: { click: (event) => { event.stopPropagation(); act.openRun(run.id); } },
  }));
  return [el('span', { class: 'given muted', text: said.join(' \u00b7 '), title: line(said.join(' \u00b7 '), 600) }), ...links];
}
