// Draws values, their differences, and facts.

import { diffLines, folded } from './diff.js';
import { el } from './dom.js';
import { clean, count, json, line, number, size } from './words.js';

const shown = 1200; // characters of a text before "show all"
const most = 200000; // characters that are ever drawn of one text

/** drawText shows a text; a long one is cut until asked for. */
export function drawText(text, kind = '') {
  const value = String(text ?? '');
  const body = el('pre', { class: 'given value ' + kind, text: clean(value, shown) });
  if (value.length <= shown) return body;
  const more = el('button', { type: 'button', class: 'link', text: `show all ${number(value.length)} characters` });
  more.addEventListener('click', () => {
    body.textContent = clean(value, most);
    more.remove();
  });
  return el('div', {}, body, more);
}

/** drawValue shows what a change or a version of a slot left: hidden, cut, or a value. */
export function drawValue(held) {
  if (!held) return el('span', { class: 'muted', text: 'not there' });
  const change = held.change ?? held;
  if (change.hidden) return el('span', { class: 'pill plain', text: 'hidden by a redaction rule' });
  const value = 'value' in held ? held.value : change.value;
  if (change.cut !== undefined) {
    return el('div', {}, drawText(typeof value === 'string' ? value : json(value)), el('span', { class: 'muted small', text: `cut: ${size(change.cut)} in all` }));
  }
  if (value === null || typeof value !== 'object') return drawText(typeof value === 'string' ? value : json(value), 'scalar');
  const text = json(value);
  const lines = text.split('\n').length;
  if (lines <= 12 && text.length < shown) return el('pre', { class: 'given value', text: clean(text, most) });
  const what = Array.isArray(value) ? count(value.length, 'element') : count(Object.keys(value).length, 'field');
  return folding(what, line(JSON.stringify(value), 90), () => drawText(text));
}

/** folding is a part that is drawn when it is opened first. */
export function folding(title, hint, make, open = false) {
  const body = el('div', { class: 'folded' });
  const node = el('details', { class: 'folding' }, el('summary', {}, el('span', { class: 'given', text: title }), hint ? el('span', { class: 'muted hint given', text: hint }) : null), body);
  let made = false;
  const fill = () => {
    if (made) return;
    made = true;
    body.append(make());
  };
  node.addEventListener('toggle', () => node.open && fill());
  if (open) {
    node.open = true;
    fill();
  }
  return node;
}

/** drawDiff shows what is different between two values, line by line. */
export function drawDiff(before, after) {
  const lines = folded(diffLines(linesOf(before), linesOf(after)));
  const rows = lines.slice(0, 400).map((row) => (row.op === '\u2026'
    ? el('div', { class: 'diffline skip', text: `  \u2026 ${count(row.count, 'same line')}` })
    : el('div', { class: 'diffline ' + ({ '+': 'added', '-': 'removed' }[row.op] ?? 'same') },
      el('span', { class: 'op', text: row.op === '-' ? '\u2212' : row.op }), el('span', { class: 'given', text: clean(row.text, 400) }))));
  if (lines.length > 400) rows.push(el('div', { class: 'diffline skip', text: `\u2026 ${count(lines.length - 400, 'more line')}` }));
  return el('div', { class: 'diff', role: 'group', 'aria-label': 'Difference' }, ...rows);
}

function linesOf(value) {
  if (value === undefined) return [];
  const text = typeof value === 'string' && value.includes('\n') ? value : json(value);
  return text.slice(0, most).split('\n');
}

/** facts draws names and values in two columns; values are texts or elements. */
export function facts(pairs) {
  return el('dl', { class: 'facts' }, ...pairs.filter(([, v]) => v !== undefined && v !== null && v !== '').flatMap(([name, value]) => [
    el('dt', { class: 'given', text: line(name, 60) }),
    el('dd', {}, value instanceof Node ? value : el('span', { class: 'given', text: line(value, 600) })),
  ]));
}

/** section is a titled part of a panel. */
export const section = (title, ...children) => el('section', { class: 'part' }, el('h3', { text: title }), ...children);

/** sentences lists what the recording explains in plain words. */
export const sentences = (list) => el('ul', { class: 'why' }, ...(list ?? []).map((s) => el('li', { class: 'given', text: clean(s, 1000) })));
