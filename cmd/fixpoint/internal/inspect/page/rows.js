// The rows of a run's timeline: a header for each step, a card for each phase, a line
// for the rest. No drawing here.

import { layout, measure, quiet, size } from './lanes.js';

const heights = { step: 46, edge: 30, bar: 32, call: 40, quiet: 22, gap: 8 };

// What took no time comes before what began with it.
const inTime = (a, b) => a.start - b.start || (a.end ?? Infinity) - (b.end ?? Infinity) || 0;

/** groups are the parts of a run's timeline: one for each step, one for what is between steps. */
export function groups(model, run) {
  const folder = model.folder(run);
  const tops = [...(folder.span ? model.below(folder.span.id) : [])];
  for (const span of folder.loose) if (!model.spans.has(span.parent)) tops.push(span);
  tops.sort(inTime);
  const list = [];
  for (const span of tops) {
    if (span.kind === 'run') continue;
    if (span.kind === 'step') {
      list.push({ id: span.id, kind: 'step', step: span.step, span, spans: undefined });
    } else {
      let last = list.at(-1);
      if (last?.kind !== 'edge') {
        last = { id: 'edge/' + span.id, kind: 'edge', spans: [] };
        list.push(last);
      }
      last.spans.push(span);
    }
  }
  return list;
}

/** members are the spans right below a group. */
export function members(model, group) {
  return group.kind === 'step' ? [...model.below(group.id)].sort(inTime) : group.spans;
}

/**
 * groupRows lists the rows of a group. env has width (of a card, in pixels), folded (a set
 * of ids of steps that are closed) and passes (undefined, or which items a filter lets through).
 */
export function groupRows(model, group, env) {
  const rows = [];
  const header = group.kind === 'step'
    ? { type: 'step', id: group.id, span: group.span, group, depth: 0, height: heights.step, items: [{ kind: 'span', id: group.id }] }
    : { type: 'edge', id: group.id, group, depth: 0, height: heights.edge, items: [] };
  rows.push(header);
  if (!(group.kind === 'step' && env.folded?.has(group.id) && !env.passes)) {
    const [begin, end] = extent(members(model, group));
    const scale = group.kind === 'step' ? [group.span.start, group.span.end ?? Math.max(end, group.span.start)] : [begin, end];
    addRows(model, members(model, group), 0, { ...env, scale }, rows);
  }
  if (env.passes) {
    const kept = rows.filter((row) => row.type !== 'quiet' && row.items.some(env.passes));
    if (kept.length === 0) return [];
    return kept[0] === header ? kept : [header, ...kept];
  }
  return rows;
}

function addRows(model, spans, depth, env, rows) {
  let silent = [];
  const flush = () => {
    if (silent.length > 0) {
      rows.push({ type: 'quiet', id: 'quiet/' + silent[0].id, spans: silent, depth, height: heights.quiet, items: silent.map((s) => ({ kind: 'span', id: s.id })) });
    }
    silent = [];
  };
  for (const span of spans) {
    if (span.kind === 'phase' && quiet(model, span)) {
      silent.push(span);
      continue;
    }
    flush();
    switch (span.kind) {
      case 'phase': {
        rows.push(new CardRow(model, span, columns(env.width, depth), depth));
        break;
      }
      case 'call':
        rows.push({ type: 'call', id: span.id, span, depth, height: heights.call, items: [{ kind: 'span', id: span.id }] });
        addRows(model, [...model.below(span.id)].sort(inTime), depth + 1, env, rows);
        break;
      default:
        rows.push({ type: 'bar', id: span.id, span, scale: env.scale, depth, height: heights.bar, items: [{ kind: 'span', id: span.id }] });
        if (span.kind !== 'run') addRows(model, model.below(span.id).filter((s) => s.kind !== 'run'), depth + 1, env, rows);
    }
  }
  flush();
}

/** CardRow is the row of a phase. Its height is known at once; what is in it is placed when it is looked at. */
class CardRow {
  constructor(model, span, across, depth) {
    this.type = 'card';
    this.id = span.id;
    this.span = span;
    this.depth = depth;
    this.height = measure(model, span, across) + heights.gap;
    this.place = () => layout(model, span, across);
  }

  get card() {
    this.placed ??= this.place();
    return this.placed;
  }

  get items() { return this.card.items; }
}

/** columns is how many rounds fit beside each other in a card. */
const columns = (width, depth) => Math.max(1, Math.floor((width - 40 - depth * 18) / size.roundWidth));

/** extent is the first beginning and the last end of spans. */
export function extent(spans) {
  let [begin, end] = [Infinity, -Infinity];
  for (const span of spans) {
    begin = Math.min(begin, span.start);
    end = Math.max(end, span.end ?? span.start);
  }
  return begin === Infinity ? [0, 0] : [begin, end];
}

// What takes time that more than one thing takes: a gate's phase lasts while a person is
// waited for, and tools run beside each other.
const ranks = { phase: 0, call: 1, body: 2, model: 3, wait: 4 };
const rank = (span) => ranks[span.kind] ?? 0;

/** pieces are the spans that take a step's time: those of a call instead of the call. Later ones are drawn over earlier. */
export const pieces = (model, spans) => spans.flatMap((span) => {
  const inner = span.kind === 'call' ? model.below(span.id) : [];
  return inner.length > 0 ? inner : [span];
}).sort((a, b) => rank(a) - rank(b));

/** timeBy adds up the time of pieces by kind, each moment once. */
export function timeBy(list, end) {
  const edges = list.flatMap((span) => [[span.start, 1, span], [span.end ?? end, -1, span]]).sort((a, b) => a[0] - b[0]);
  const open = new Map();
  const sums = new Map();
  let last = 0;
  for (const [time, by, span] of edges) {
    let top;
    for (const [kind, n] of open) if (n > 0 && (top === undefined || rank({ kind }) > rank({ kind: top }))) top = kind;
    if (top !== undefined) sums.set(top, (sums.get(top) ?? 0) + time - last);
    open.set(span.kind, (open.get(span.kind) ?? 0) + by);
    last = time;
  }
  return sums;
}

/** shares merges the spans right below a step into parts of its strip, in real time. */
export function shares(model, spans, begin, end, most = 80) {
  const total = Math.max(end - begin, 1e-9);
  const parts = [];
  for (const span of pieces(model, spans)) {
    const part = { kind: span.kind, name: span.kind === 'phase' ? span.phase ?? span.name : span.kind, from: (span.start - begin) / total, to: ((span.end ?? end) - begin) / total };
    const last = parts.at(-1);
    if (last && parts.length >= most && last.kind === part.kind) last.to = part.to;
    else parts.push(part);
  }
  return parts;
}
