// Draws the card of a phase from its layout: lanes, commit lines, lines from what won a
// key to what lost it, and the rounds of the cascade.

import { el, svg } from './dom.js';
import { size } from './lanes.js';
import { count, duration, line, owner, phaseName, slot, status } from './words.js';

const titles = { hooks: 'Hooks in parallel', gates: 'Gates', effects: 'Effects', others: 'Notes' };

/** drawCard makes the element of a card. mark(node, item) tells the timeline what a node shows. */
export function drawCard(model, row, mark) {
  const { span, card } = row;
  const node = el('section', { class: 'card tone-' + (status(span.status).tone || 'none') });
  const header = el('header', { class: 'cardhead' },
    el('strong', { class: 'given', text: phaseName(span.phase ?? span.name) }),
    el('span', { class: 'muted', text: spanTime(span) }),
    revisions(span),
    pill(span, ['ok']),
    span.text ? el('span', { class: 'given note', text: line(span.text, 200), title: line(span.text, 1000) }) : null);
  mark(header, { kind: 'span', id: span.id });
  node.append(header);
  for (const block of card.blocks) node.append(drawBlock(model, row, block, mark));
  return node;
}

function drawBlock(model, row, block, mark) {
  const node = el('div', { class: 'block block-' + block.kind, style: { top: block.y + 'px', height: block.height + 'px' } });
  if (block.kind === 'rounds') drawRounds(model, node, block, mark);
  else if (block.kind === 'commits') {
    for (const commit of block.commits) node.append(commitChip(commit, mark));
  } else drawLanes(model, row, node, block, mark);
  return node;
}

function drawLanes(model, row, node, block, mark) {
  const many = block.kind === 'hooks' && block.lanes.length === 1 ? 'Hook' : titles[block.kind];
  node.append(el('div', { class: 'blocktitle' }, el('span', { text: many })));
  const field = el('div', { class: 'field' }); // where time runs
  let tier;
  block.lanes.forEach((lane) => {
    const lead = block.kind === 'hooks' && lane.tier !== tier && block.lanes.some((l) => l.tier !== block.lanes[0].tier);
    tier = lane.tier;
    const label = el('div', { class: 'lane' + (lead ? ' lead' : ''), style: { top: lane.y + 'px', height: size.lane + 'px' } },
      el('div', { class: 'label', title: line(`${lane.plugin ?? ''} ${lane.hook ?? ''}`, 300) },
        lead ? el('span', { class: 'tier', text: 'tier ' + lane.tier }) : null,
        el('span', { class: 'given who', text: owner(lane.plugin, lane.hook) }),
        el('span', { class: 'muted time', text: spanTime(lane.bars[0].span) })),
      el('div', { class: 'words' }, ...laneWords(model, row.span, block, lane)));
    node.append(label);
    for (const bar of lane.bars) field.append(drawBar(bar, lane.y, mark));
  });
  for (const commit of block.marks) field.append(drawMark(commit, mark));
  node.append(field);
  if (block.links.length > 0) field.append(drawLinks(block));
}

function drawBar(bar, y, mark) {
  const { span } = bar;
  const said = status(span.status);
  const again = (span.try ?? 1) > 1;
  const kind = said.tone === 'warn' && span.status === 'conflict' ? 'lost' : span.kind;
  const node = el('div', {
    class: `bar kind-${word(kind)}${again ? ' again' : ''}${span.end === undefined ? ' open' : ''}${said.tone === 'bad' ? ' bad' : ''}`,
    data: { span: span.id, status: span.status, try: String(span.try ?? 1) },
    title: line(`${owner(span.plugin, span.hook ?? span.name)}: ${said.word}, ${spanTime(span)}${again ? ', try ' + span.try : ''}${span.text ? '\n' + span.text : ''}`, 600),
    style: { left: percent(bar.a), width: percent(bar.b - bar.a), top: y + 5 + 'px' },
  });
  if (again) node.append(el('span', { class: 'sign', text: '\u21bb' }));
  else if (span.status === 'conflict') node.append(el('span', { class: 'sign', text: '\u2260' }));
  mark(node, { kind: 'span', id: span.id });
  return node;
}

function drawMark(at, mark) {
  const { commit } = at;
  const node = el('div', {
    class: 'commit' + (at.retry ? ' retry' : ''), data: { commit: commit.id, rev: String(commit.rev) },
    title: `Commit of revision ${commit.rev}${at.retry ? ', a retry\u2019s own' : ''}`,
    style: { left: percent(at.x), top: at.top - (at.retry ? 0 : 4) + 'px', height: at.bottom - at.top + (at.retry ? 0 : 4) + 'px' },
  }, el('span', { class: 'rev', text: 'rev ' + commit.rev }));
  mark(node, { kind: 'commit', id: commit.id });
  return node;
}

// From the winner's bar at the commit down (or up) to the loser's retry. The drawing is
// stretched to the field's width; strokes keep their width.
function drawLinks(block) {
  const drawing = svg('svg', { class: 'links', viewBox: `0 0 1000 ${block.height}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' });
  for (const link of block.links) {
    const at = block.marks.find((m) => m.commit === link.commit)?.x ?? link.from.x;
    const [x0, x1, x2] = [link.from.x, at, link.to.x].map((x) => x * 1000);
    const bend = Math.max(x1 + 6, Math.min(x2 - 8, x1 + 14));
    drawing.append(svg('path', { class: 'link', d: `M${x0} ${link.from.y}H${bend}V${link.to.y}H${x2}` }));
    drawing.append(svg('path', { class: 'link tip', d: `M${x2 - 7} ${link.to.y - 4}L${x2} ${link.to.y}L${x2 - 7} ${link.to.y + 4}` }));
  }
  return drawing;
}

// What a lane's bars came to, in words: the right-hand column.
function laneWords(model, phase, block, lane) {
  const last = lane.bars.at(-1).span;
  const first = lane.bars[0].span;
  if (last.kind === 'mark') return [last.status === 'ok' ? null : tonePill(status(last.status)), el('span', { class: 'given', text: line(last.text, 200), title: line(last.text, 1000) })];
  if (last.kind === 'gate') {
    // Each pass has a decision: gates are asked again about edited arguments.
    const pills = lane.bars.filter((bar, i) => i === 0 || bar.span.status !== lane.bars[i - 1].span.status).flatMap((bar, i) => [i > 0 ? el('span', { class: 'muted', text: 'then' }) : null, tonePill(status(bar.span.status))]);
    return [...pills, last.text ? el('span', { class: 'given', text: line(last.text, 200), title: line(last.text, 1000) }) : null];
  }
  const out = [];
  if (first.status === 'conflict') {
    const lost = block.links.filter((l) => l.loser === lane).map((l) => l.conflict);
    const keys = [...new Set(lost.map((c) => slot(c.key, c.entry)))].join(', ');
    const who = lost[0] ? owner(lost[0].winner, lost[0].winner_hook) : '';
    const text = keys ? `lost ${keys} to ${who}` : line(first.text, 200);
    out.push(el('span', { class: 'given warn', text: '\u2260 ' + text, title: text }));
  }
  if (last.status !== 'ok' && last.status !== 'conflict' && !(last.status === 'retried' && last !== first)) {
    const said = status(last.status);
    out.push(tonePill(said));
    if (last.text) out.push(el('span', { class: 'given', text: line(last.text, 200), title: line(last.text, 1000) }));
  } else if (last !== first) {
    if (first.status !== 'conflict') out.push(el('span', { class: 'warn', text: '\u21bb retried' }));
  } else if (first.status === 'ok') {
    const did = outcome(model, phase, lane);
    if (did) out.push(el('span', { class: 'given', text: did, title: did }));
    else if (last.text) out.push(el('span', { class: 'given muted', text: line(last.text, 200), title: line(last.text, 1000) }));
    else if (last.kind === 'effect') out.push(el('span', { class: 'muted', text: 'delivered' }));
    else if (last.kind === 'hook') out.push(el('span', { class: 'muted', text: 'nothing to write' }));
  }
  return out;
}

// outcome says what the command of a lane's hook did. The engine keeps scheduled actions
// and the number of effects in keys of its own, which nobody asked for.
function outcome(model, phase, lane) {
  const keys = new Set();
  const actions = [];
  let effects = 0;
  for (const commit of model.commitsOf(phase.id)) {
    if (commit.round > 0) continue;
    for (const write of commit.writes ?? []) {
      if (write.plugin !== lane.plugin || (write.hook !== undefined && lane.hook !== undefined && write.hook !== lane.hook)) continue;
      if (write.key === 'fixpoint.queue') actions.push(line(String(write.value?.action?.name ?? 'an action'), 100));
      else if (write.key === 'fixpoint.effects') effects += Number(write.value) || 0;
      else if (write.key !== 'fixpoint.last_id') keys.add(slot(write.key, write.entry));
    }
  }
  const parts = [];
  if (keys.size > 0) parts.push('wrote ' + [...keys].join(', '));
  if (actions.length > 0) parts.push('scheduled ' + actions.join(', '));
  if (effects > 0) parts.push('emitted ' + count(effects, 'effect'));
  return parts.join('; ');
}

function drawRounds(model, node, block, mark) {
  node.append(el('div', { class: 'blocktitle', text: `${count(block.boxes.length, 'round')} of actions, until nothing was left to do` }));
  for (const box of block.boxes) {
    const first = box.commits[0]?.rev;
    const last = box.commits.at(-1)?.rev;
    const column = el('div', {
      class: 'round', data: { round: String(box.n) },
      style: { left: `calc(${percent(box.x)} + 4px)`, width: `calc(${percent(box.width)} - 8px)`, top: box.y + 'px', height: box.height + 'px' },
    });
    const head = el('div', { class: 'roundhead', title: spanTime(box.span) }, el('strong', { text: 'Round ' + box.n }),
      el('span', { class: 'muted when', text: spanTime(box.span) }),
      first === undefined ? null : el('span', { class: 'muted', text: first === last ? `rev ${first}` : `rev ${first}\u2013${last}` }));
    mark(head, { kind: 'span', id: box.span.id });
    column.append(head);
    for (const action of box.actions) column.append(drawAction(action, mark));
    node.append(column);
  }
}

function drawAction(action, mark) {
  const { span } = action;
  const said = status(span.status);
  const node = el('div', { class: 'action', style: { top: action.y + 'px' }, data: { span: span.id }, title: line(span.text, 600) },
    el('div', { class: 'actionhead' }, el('span', { class: 'given name', text: owner(span.plugin, span.hook ?? span.name) }),
      said.tone ? el('span', { class: 'tiny ' + said.tone, text: `${said.sign} ${said.word}` }) : el('span', { class: 'tiny muted', text: spanTime(span) })),
    el('div', { class: 'track' }, el('div', { class: `bar kind-${word(span.kind)}${said.tone === 'bad' ? ' bad' : ''}`, style: { left: percent(action.a), width: percent(action.b - action.a) } })));
  mark(node, { kind: 'span', id: span.id });
  return node;
}

function commitChip(commit, mark) {
  const node = el('button', { type: 'button', tabindex: '-1', class: 'chip rev', data: { commit: commit.id }, text: `rev ${commit.rev}` });
  mark(node, { kind: 'commit', id: commit.id });
  return node;
}

/** revisions says from which revision to which a span went. */
export function revisions(span) {
  if (span.rev_after === undefined || span.rev_before === span.rev_after) return null;
  return el('span', { class: 'chip', text: span.rev_before === undefined ? `rev ${span.rev_after}` : `rev ${span.rev_before} \u2192 ${span.rev_after}` });
}

/** pill says a status, unless it is one of those that go without saying. */
export function pill(span, silent = []) {
  return silent.includes(span.status) || !span.status ? null : tonePill(status(span.status));
}

/** tonePill says a status from words.js. */
export const tonePill = (said) => el('span', { class: 'pill ' + (said.tone || 'plain'), text: said.sign ? `${said.sign} ${said.word}` : said.word });

/** spanTime says how long a span took. */
export const spanTime = (span) => (span.end === undefined ? 'running' : duration(span.end - span.start));

const percent = (share) => `${Math.max(0, share * 100).toFixed(3)}%`;

/** word makes a kind fit to be part of a class. */
export const word = (kind) => (/^[a-z]+$/.test(kind ?? '') ? kind : 'other');
