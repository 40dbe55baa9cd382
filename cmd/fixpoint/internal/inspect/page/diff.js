// The difference of two lists of lines: Myers' algorithm, with a bound on its work.
// No drawing here.

/** diffLines lists the lines of both sides in order: {op: ' ' | '-' | '+', text}. */
export function diffLines(before, after) {
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head++;
  let tail = 0;
  while (tail < before.length - head && tail < after.length - head && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail++;
  const middle = shortest(before.slice(head, before.length - tail), after.slice(head, after.length - tail));
  return [
    ...before.slice(0, head).map(same),
    ...middle,
    ...before.slice(before.length - tail).map(same),
  ];
}

const same = (text) => ({ op: ' ', text });

// Beyond so many differing lines the whole middle is replaced: nobody reads more, and
// the search costs the square of it.
const most = 600;

function shortest(a, b) {
  const replaced = [...a.map((text) => ({ op: '-', text })), ...b.map((text) => ({ op: '+', text }))];
  if (a.length === 0 || b.length === 0) return replaced;
  const bound = Math.min(a.length + b.length, most);
  const furthest = new Map([[1, 0]]);
  const trace = [];
  for (let d = 0; d <= bound; d++) {
    trace.push(new Map(furthest));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (furthest.get(k - 1) ?? -1) < (furthest.get(k + 1) ?? -1));
      let x = down ? furthest.get(k + 1) ?? 0 : (furthest.get(k - 1) ?? 0) + 1;
      let y = x - k;
      while (x < a.length && y < b.length && a[x] === b[y]) { x++; y++; }
      furthest.set(k, x);
      if (x >= a.length && y >= b.length) return walk(a, b, trace, d);
    }
  }
  return replaced;
}

function walk(a, b, trace, d) {
  const out = [];
  let x = a.length;
  let y = b.length;
  for (; d > 0; d--) {
    const furthest = trace[d];
    const k = x - y;
    const down = k === -d || (k !== d && (furthest.get(k - 1) ?? -1) < (furthest.get(k + 1) ?? -1));
    const before = down ? k + 1 : k - 1;
    const px = furthest.get(before) ?? 0;
    const py = px - before;
    while (x > px && y > py && x > 0 && y > 0 && a[x - 1] === b[y - 1]) { out.push(same(a[x - 1])); x--; y--; }
    if (down) { y--; out.push({ op: '+', text: b[y] }); } else { x--; out.push({ op: '-', text: a[x] }); }
  }
  while (x > 0) { out.push(same(a[x - 1])); x--; y--; }
  return out.reverse();
}

/** folded replaces long runs of same lines by {op: '…', count}, keeping so many around each change. */
export function folded(lines, around = 2) {
  const near = new Array(lines.length).fill(false);
  lines.forEach((line, i) => {
    if (line.op !== ' ') for (let j = Math.max(0, i - around); j <= Math.min(lines.length - 1, i + around); j++) near[j] = true;
  });
  const out = [];
  for (let i = 0; i < lines.length;) {
    if (near[i]) { out.push(lines[i++]); continue; }
    let j = i;
    while (j < lines.length && !near[j]) j++;
    if (j - i > 1) out.push({ op: '\u2026', count: j - i }); else out.push(lines[i]);
    i = j;
  }
  return out;
}
