// What went wrong, and where people were waited for. No drawing here.

/** Tallies counts problems below each span that is right below a run. */
export class Tallies {
  constructor() {
    this.counts = undefined; // id of a span at the top -> its counts
  }

  /** of gives the counts of a span at the top of a run. */
  of(model, top) {
    this.counts ??= all(model);
    let found = this.counts.get(top.id);
    if (!found) {
      found = none();
      count(model, top, found);
      this.counts.set(top.id, found);
    }
    return found;
  }

  /** forget counts again what has changed. */
  forget(tops) {
    for (const id of tops) this.counts?.delete(id);
  }
}

const none = () => ({ conflicts: 0, retries: 0, blocked: 0, failed: 0, waits: 0, calls: new Set() });

// Several gates may block one call, which is still one that was blocked.
function add(found, sort, span) {
  if (sort === 'blocked') {
    found.calls.add(span.call ?? span.id);
    found.blocked = found.calls.size;
  } else found[sort]++;
}

function count(model, span, found) {
  for (const child of model.below(span.id)) {
    if (child.kind === 'run') continue;
    const sort = problem(child);
    if (sort) add(found, sort, child);
    count(model, child, found);
  }
}

// Problems are few: from each it is a short way up, and nothing else is visited.
function all(model) {
  const counts = new Map();
  for (const span of model.spans.values()) {
    if (span.kind === 'run') continue;
    const parent = model.spans.get(span.parent);
    if (parent?.kind === 'run' || !parent) {
      if (!counts.has(span.id)) counts.set(span.id, none());
      continue;
    }
    const sort = problem(span);
    if (!sort) continue;
    const line = model.ancestors(span);
    const top = line.findLast((s) => s.kind !== 'run');
    if (top === span) continue;
    if (!counts.has(top.id)) counts.set(top.id, none());
    add(counts.get(top.id), sort, span);
  }
  return counts;
}

/** problem says what a span is an example of, if of anything. */
export function problem(span) {
  if (span.kind === 'wait') return 'waits';
  switch (span.status) {
    case 'conflict': return 'conflicts';
    case 'block': case 'blocked': case 'denied': return 'blocked';
    case 'failed': case 'error': case 'dropped': case 'timed_out': return 'failed';
    case 'retried': return 'retries';
    default: return (span.try ?? 1) > 1 ? 'retries' : undefined;
  }
}
