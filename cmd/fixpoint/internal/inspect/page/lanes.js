// Where the parts of a phase's card are: its lanes, commit lines and rounds. Pure
// geometry: x is a fraction of the width of a block of lanes, y is in pixels. No
// drawing here.

export const size = { head: 30, title: 22, lane: 24, pad: 8, gap: 8, action: 34, roundTitle: 20, roundWidth: 160 };

/**
 * parts sorts what is below a phase's span into blocks: hooks, gates, rounds with their
 * actions, effects and the rest.
 */
function parts(model, phase) {
  const found = { hooks: [], gates: [], rounds: [], effects: [], others: [] };
  for (const span of model.below(phase.id)) {
    switch (span.kind) {
      case 'hook': found.hooks.push(span); break;
      case 'gate': found.gates.push(span); break;
      case 'round': found.rounds.push({ span, actions: byStart(model.below(span.id)) }); break;
      case 'effect': found.effects.push(span); break;
      default: if (span.kind !== 'run') found.others.push(span);
    }
  }
  found.rounds.sort((a, b) => a.span.start - b.span.start);
  for (const round of found.rounds) {
    found.effects.push(...round.actions.filter((s) => s.kind === 'effect'));
    round.actions = round.actions.filter((s) => s.kind !== 'effect');
  }
  return found;
}

const byStart = (spans) => [...spans].sort((a, b) => a.start - b.start);

/** quiet tells whether nothing happened in a phase. */
export function quiet(model, phase) {
  return (phase.status === 'ok' || phase.status === 'open') && model.below(phase.id).length === 0 && model.commitsOf(phase.id).length === 0;
}

/** measure is the height that layout gives a card, without placing anything in it. */
export function measure(model, phase, columns) {
  const found = parts(model, phase);
  const commits = model.commitsOf(phase.id);
  const heights = [];
  const lanes = (n) => heights.push(size.title + n * size.lane);
  if (found.hooks.length > 0) lanes(distinct(found.hooks));
  if (found.gates.length > 0) lanes(distinct(found.gates));
  if (found.rounds.length > 0) heights.push(roundsHeight(found.rounds, columns));
  if (found.effects.length > 0) lanes(found.effects.length);
  if (found.others.length > 0) lanes(found.others.length);
  const rest = commits.length > 0 ? commits.filter((c) => !isShown(c, found)).length : 0;
  if (rest > 0) heights.push(restHeight(rest));
  return size.head + heights.reduce((sum, h) => sum + h + size.gap, 0) + size.pad - size.gap;
}

// A commit is shown in its round, or else as a line among the lanes.
function isShown(commit, found) {
  if (commit.round > 0) return found.rounds.some((r, i) => roundNumber(r, i) === commit.round);
  return found.hooks.length > 0 || found.gates.length > 0;
}

const roundNumber = (round, i) => round.span.round ?? i + 1;

const laneName = (span) => `${span.tier ?? 0}\u0000${span.plugin}\u0000${span.hook ?? span.name}`;

const distinct = (spans) => (spans.length === 1 ? 1 : new Set(spans.map(laneName)).size);

/** layout places everything in the card of a phase; columns is how many rounds fit beside each other. */
export function layout(model, phase, columns) {
  const found = parts(model, phase);
  const commits = [...model.commitsOf(phase.id)].sort((a, b) => a.rev - b.rev);
  const card = { phase, blocks: [], height: 0, items: [{ kind: 'span', id: phase.id }] };
  let y = size.head;
  const gathered = commits.filter((c) => c.round === undefined || c.round === 0);
  const add = (block) => {
    block.y = y;
    card.blocks.push(block);
    card.items.push(...block.items);
    y += block.height + size.gap;
  };
  if (found.hooks.length > 0) add(laneBlock('hooks', found.hooks, gathered));
  if (found.gates.length > 0) add(laneBlock('gates', found.gates, found.hooks.length > 0 ? [] : gathered));
  if (found.rounds.length > 0) add(roundBlock(found.rounds, commits, columns));
  if (found.effects.length > 0) add(laneBlock('effects', byStart(found.effects), []));
  if (found.others.length > 0) add(laneBlock('others', byStart(found.others), [], phase));
  const rest = commits.filter((c) => !isShown(c, found));
  if (rest.length > 0) add(restBlock(rest));
  card.height = y + size.pad - size.gap;
  return card;
}

/**
 * laneBlock has a lane for each hook (or gate), in the order of tiers and registration.
 * Its scale is cut at each commit: every part is linear, and none is so narrow that what
 * is in it cannot be seen.
 */
function laneBlock(kind, spans, commits, phase) {
  const lanes = [];
  const known = new Map();
  for (const span of [...spans].sort((a, b) => (a.tier ?? 0) - (b.tier ?? 0) || (a.try ?? 1) - (b.try ?? 1))) {
    const name = kind === 'hooks' || kind === 'gates' ? laneName(span) : span.id;
    let lane = known.get(name);
    if (!lane) {
      lane = { plugin: span.plugin, hook: span.hook ?? (span.plugin === span.name ? undefined : span.name), tier: span.tier ?? 0, bars: [], y: 0 };
      known.set(name, lane);
      lanes.push(lane);
    }
    lane.bars.push({ span });
  }
  const scale = new Scale(phase ? [phase, ...spans] : spans, commits); // what is no hook is placed in its phase's time
  lanes.forEach((lane, i) => {
    lane.y = size.title + i * size.lane;
    for (const bar of lane.bars) [bar.a, bar.b] = scale.bar(bar.span);
  });
  const height = size.title + lanes.length * size.lane;
  const marks = commits.map((commit, i) => {
    const lane = commit.retry ? lanes.find((l) => l.bars.some((b) => owns(b.span, commit))) : undefined;
    return { commit, x: scale.cuts[i + 1], retry: commit.retry === true, top: lane ? lane.y : size.title, bottom: lane ? lane.y + size.lane : height, lane };
  });
  const items = [];
  for (const lane of lanes) for (const bar of lane.bars) items.push({ kind: 'span', id: bar.span.id });
  for (const mark of marks) items.push({ kind: 'commit', id: mark.commit.id });
  return { kind, lanes, marks, links: links(lanes, commits, scale), scale, height, items };
}

function owns(span, commit) {
  if (span.rev_after !== undefined && (span.try ?? 1) > 1) return span.rev_after === commit.rev;
  const write = commit.writes?.[0];
  return write !== undefined && (span.try ?? 1) > 1 && write.plugin === span.plugin && (write.hook === undefined || write.hook === span.hook);
}

// A line from what won a key to the bar that lost it.
function links(lanes, commits, scale) {
  const found = [];
  for (const commit of commits) {
    for (const conflict of commit.conflicts ?? []) {
      const winner = lanes.find((l) => l.plugin === conflict.winner && same(l.hook, conflict.winner_hook));
      const loser = lanes.find((l) => l.plugin === conflict.loser && same(l.hook, conflict.hook));
      if (!winner || !loser || winner === loser) continue;
      const won = winner.bars.find((b) => b.span.rev_after === commit.rev) ?? winner.bars.at(-1);
      const lost = loser.bars[0];
      const again = loser.bars.find((b) => (b.span.try ?? 1) > 1);
      found.push({ conflict, commit, from: { x: won.b, y: winner.y + size.lane / 2 }, to: { x: (again ?? lost).a, y: loser.y + size.lane / 2 }, winner, loser });
    }
  }
  return found;
}

const same = (a, b) => a === undefined || b === undefined || a === b;

/** Scale maps the times of a block to 0..1, with a cut at each commit. */
export class Scale {
  constructor(spans, commits) {
    const starts = spans.map((s) => s.start);
    const ends = spans.map((s) => s.end ?? s.start);
    this.revs = commits.map((c) => c.rev);
    const first = least(starts, commits.map((c) => c.at));
    const last = Math.max(most(ends), ...commits.map((c) => c.at), first);
    this.times = [first];
    for (const commit of commits) this.times.push(Math.max(commit.at, this.times.at(-1)));
    const tail = spans.some((s) => this.#segment(s) === commits.length) || commits.length === 0;
    if (tail) this.times.push(Math.max(last, this.times.at(-1)));
    const parts = this.times.slice(1).map((t, i) => t - this.times[i]);
    const total = parts.reduce((a, b) => a + b, 0);
    const weights = parts.map((part) => Math.max(total > 0 ? part / total : 1 / parts.length, Math.min(0.16, 0.8 / parts.length)));
    const sum = weights.reduce((a, b) => a + b, 0);
    const used = tail ? 1 : commits.at(-1).retry ? 0.78 : 0.96; // room for the line at the end, and for a retry's label behind it
    this.cuts = [0];
    for (const weight of weights) this.cuts.push(this.cuts.at(-1) + (weight / sum) * used);
    this.total = last - first;
  }

  // Which commits a span has seen says where it belongs; times can be equal.
  #segment(span) {
    if (span.rev_before !== undefined) return this.revs.filter((rev) => rev <= span.rev_before).length;
    let i = 0;
    while (i < this.revs.length && span.start >= this.times[i + 1]) i++;
    return i;
  }

  /** bar is the beginning and end of a span. */
  bar(span) {
    const parts = this.times.length - 1;
    const segment = Math.min(this.#segment(span), parts - 1);
    const [t0, t1] = [this.times[segment], this.times[segment + 1]];
    const [x0, x1] = [this.cuts[segment], this.cuts[segment + 1]];
    const at = (time, other) => (t1 > t0 ? x0 + (x1 - x0) * Math.min(1, Math.max(0, (time - t0) / (t1 - t0))) : other);
    const a = at(span.start, x0);
    if (span.end === undefined) return [a, 1];
    if (span.end <= t1 || segment === parts - 1) return [a, Math.max(a, at(span.end, x1))];
    let later = segment;
    while (later < parts - 1 && span.end > this.times[later + 1]) later++;
    const [u0, u1] = [this.times[later], this.times[later + 1]];
    const share = u1 > u0 ? Math.min(1, (span.end - u0) / (u1 - u0)) : 1;
    return [a, this.cuts[later] + (this.cuts[later + 1] - this.cuts[later]) * share];
  }
}

const least = (...lists) => lists.flat().reduce((a, b) => Math.min(a, b), Infinity);
const most = (list) => list.reduce((a, b) => Math.max(a, b), -Infinity);

/** roundBlock puts the rounds of the cascade beside each other, so many in a row. */
function roundBlock(rounds, commits, columns) {
  const items = [];
  const across = Math.max(1, Math.min(columns, rounds.length));
  const boxes = [];
  let y = size.title;
  for (let i = 0; i < rounds.length; i += across) {
    const row = rounds.slice(i, i + across);
    const height = rowHeight(row);
    row.forEach((round, column) => {
      const n = roundNumber(round, i + column);
      const scale = new Scale(round.actions.length > 0 ? round.actions : [round.span], []);
      const own = commits.filter((c) => c.round === n);
      const actions = round.actions.map((span, j) => {
        const [a, b] = scale.bar(span);
        return { span, a, b, y: size.roundTitle + j * size.action, commit: own.find((c) => c.rev === span.rev_after) };
      });
      boxes.push({ n, span: round.span, actions, commits: own, x: column / across, width: 1 / across, y, height });
      items.push({ kind: 'span', id: round.span.id });
      for (const action of actions) items.push({ kind: 'span', id: action.span.id });
      for (const commit of own) items.push({ kind: 'commit', id: commit.id });
    });
    y += height + size.gap;
  }
  return { kind: 'rounds', boxes, items, height: y - size.gap };
}

const rowHeight = (row) => size.roundTitle + Math.max(1, ...row.map((r) => r.actions.length)) * size.action + 6;

function roundsHeight(rounds, columns) {
  const across = Math.max(1, Math.min(columns, rounds.length));
  let y = size.title;
  for (let i = 0; i < rounds.length; i += across) y += rowHeight(rounds.slice(i, i + across)) + size.gap;
  return y - size.gap;
}

const restHeight = (n) => Math.ceil(n / 6) * 26;

// Commits that none of the blocks shows, such as those of a phase without hooks.
function restBlock(commits) {
  return { kind: 'commits', commits, items: commits.map((c) => ({ kind: 'commit', id: c.id })), height: restHeight(commits.length) };
}
