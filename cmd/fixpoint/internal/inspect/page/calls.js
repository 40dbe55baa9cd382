// The whole decision about a tool call: what was decided and why, each gate's vote, what
// was edited, who was asked.

import { tonePill } from './card.js';
import { el } from './dom.js';
import { outcomePill } from './strips.js';
import { drawDiff, drawText, drawValue, facts, section, sentences } from './values.js';
import { clean, line, owner, status } from './words.js';

/** drawCall lists the parts of the details of a call. */
export function drawCall(app, call) {
  const span = app.model.spans.get(call.span);
  const votes = call.votes ?? [];
  return [
    el('h2', {}, el('span', { class: 'tag', text: 'call' }), ' ', el('span', { class: 'given mono', text: line(call.tool, 80) })),
    facts([
      ['outcome', outcomePill(call, span)],
      ['call', call.call], ['step', call.step],
      ['shown', span && el('button', { type: 'button', class: 'link', text: 'in the timeline', on: { click: () => app.select({ kind: 'span', id: span.id }) } })],
    ]),
    call.why?.length ? section('Why', sentences(call.why)) : null,
    votes.length > 0 ? section('Gates', ...passes(call)) : null,
    (call.clashes ?? []).length > 0 ? section('Clashes', sentences(call.clashes)) : null,
    ...(call.edits ?? []).map((edit) => section('Edit of the arguments', el('p', { class: 'given', text: `by ${owner(edit.plugin)}` }), drawDiff(edit.before, edit.after))),
    (call.tickets ?? []).length > 0 ? section('Questions to people', ...call.tickets.map(ticket)) : null,
    section('Arguments', drawValue({ value: call.args })),
    call.result === undefined ? null : section('Result', typeof call.result === 'string' ? drawText(call.result) : drawValue({ value: call.result })),
  ];
}

function passes(call) {
  const numbers = [...new Set(call.votes.map((v) => v.pass))].sort((a, b) => a - b);
  return numbers.map((pass) => el('div', { class: 'pass' },
    numbers.length > 1 ? el('h4', { text: `Pass ${pass}${pass > numbers[0] ? ', on the edited arguments' : ''}` }) : null,
    el('ul', { class: 'votes' }, ...call.votes.filter((v) => v.pass === pass).map((vote) => el('li', {},
      el('span', { class: 'given gate', text: owner(vote.plugin, vote.gate) }), tonePill(status(vote.decision)),
      el('span', { class: 'given', text: clean(vote.error ?? vote.reason ?? '', 600) })))),
    ...(call.resolutions ?? []).filter((r) => r.pass === pass).map((r) => el('p', { class: 'resolution' },
      el('span', { text: 'Together: ' }), tonePill(status(r.decision)),
      el('span', { class: 'given', text: [r.plugin && `by ${line(r.plugin, 60)}`, line(r.cause, 80).replace(/_/g, ' '), clean(r.reason ?? '', 400)].filter(Boolean).join(' \u00b7 ') })))));
}

function ticket(t) {
  const answer = !t.answered ? 'not answered yet' : t.approved === false ? 'said no' : t.approved ? 'approved' : 'answered';
  return el('div', { class: 'ticket' },
    el('p', { class: 'given', text: clean(t.message, 1000) }),
    facts([
      ['kind', t.kind], ['asked by', t.plugin],
      ['answer', el('span', { class: 'pill ' + (!t.answered ? 'calm' : t.approved === false ? 'bad' : 'good'), text: `${t.answered ? (t.approved === false ? '\u2715' : '\u2713') : '\u2016'} ${answer}` })],
      ['by', t.by], ['reason', t.reason], ['ticket', t.id],
    ]));
}

