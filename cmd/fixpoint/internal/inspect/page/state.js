// State at any revision of a run, from the changes of its commits. Each slot (a key,
// or one entry of a table) has its own history, so a revision costs a search in each
// slot, not a replay of the run. No drawing here.

/** History holds the changes of one run by slot. */
export class History {
  constructor(base, baseRev) {
    this.slots = new Map(); // name of the slot -> Slot
    this.keys = new Map(); // key -> its slots; the key's own is first if it has one
    this.seq = 0;
    for (const change of base ?? []) this.#add(change, baseRev ?? 0, undefined);
  }

  /** add appends a commit; commits come in the order of their revisions. */
  add(commit) {
    for (const change of commit.changes ?? []) this.#add(change, commit.rev, commit);
  }

  #add(change, rev, commit) {
    const name = slotName(change.key, change.entry);
    let slot = this.slots.get(name);
    if (!slot) {
      slot = { name, key: change.key, entry: change.entry, versions: [] };
      this.slots.set(name, slot);
      const all = this.keys.get(change.key) ?? [];
      if (change.entry === undefined) all.unshift(slot); else all.push(slot);
      this.keys.set(change.key, all);
    }
    slot.versions.push({ seq: this.seq++, rev, commit, change });
  }

  /** version is the one that slot has at rev: undefined if there is none or the table was emptied later. */
  version(slot, rev) {
    const found = lastAt(slot.versions, rev);
    if (!found || slot.entry === undefined) return found;
    const own = this.slots.get(slotName(slot.key, undefined));
    const whole = own && lastAt(own.versions, rev);
    return whole && whole.seq > found.seq ? undefined : found;
  }

  /** value is what slot holds at rev: {value, change, rev, commit}, or undefined if it is not there. */
  value(slot, rev) {
    const found = this.version(slot, rev);
    if (!found || !present(found.change)) return undefined;
    return { ...found, value: this.#assemble(slot, found) };
  }

  // A list's change has only the elements after `at`: the rest is in the versions before.
  #assemble(slot, version) {
    let { at, value } = version.change;
    if (!(at > 0) || !Array.isArray(value)) return value;
    const parts = [value];
    let keep = at;
    for (let i = slot.versions.indexOf(version) - 1; i >= 0 && keep > 0; i--) {
      const older = slot.versions[i].change;
      if (!Array.isArray(older.value)) break;
      const from = older.at ?? 0;
      if (from < keep) {
        parts.push(older.value.slice(0, keep - from));
        keep = from;
      }
    }
    return parts.reverse().flat();
  }

  /** at lists the keys at rev, sorted: {key, value?} or {key, entries: [{entry, ...}]}. */
  at(rev) {
    const list = [];
    for (const key of [...this.keys.keys()].sort()) {
      const held = this.keys.get(key).map((slot) => ({ slot, held: this.value(slot, rev) })).filter((x) => x.held);
      const whole = held.find((x) => x.slot.entry === undefined);
      const entries = held.filter((x) => x.slot.entry !== undefined);
      if (entries.length > 0) {
        entries.sort((a, b) => (a.slot.entry < b.slot.entry ? -1 : 1));
        list.push({ key, entries: entries.map((x) => ({ entry: x.slot.entry, ...x.held })) });
      } else if (whole) {
        list.push({ key, ...whole.held });
      }
    }
    return list;
  }

  /** changes lists what a commit changed: {change, slot, before?, after?}; before and after are values of value(). */
  changes(commit) {
    return (commit.changes ?? []).map((change) => {
      const slot = this.slots.get(slotName(change.key, change.entry));
      const rev = commit.rev;
      return { change, slot, before: this.#before(slot, commit), after: this.value(slot, rev) };
    });
  }

  #before(slot, commit) {
    const first = slot.versions.find((v) => v.commit === commit);
    return this.value(slot, Math.min(commit.rev, first?.rev ?? commit.rev) - 1);
  }
}

/** slotName is unique for a key and an entry. */
export const slotName = (key, entry) => (entry === undefined ? JSON.stringify([key]) : JSON.stringify([key, entry]));

/** present tells whether a change leaves something behind. */
export const present = (change) => change.value !== undefined || change.hidden === true || change.cut !== undefined;

function lastAt(versions, rev) {
  let low = 0;
  let high = versions.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (versions[middle].rev <= rev) low = middle + 1; else high = middle;
  }
  return versions[low - 1];
}
