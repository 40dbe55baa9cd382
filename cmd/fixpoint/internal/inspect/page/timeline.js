// The timeline: a tree whose rows are drawn only while they are in view. What is
// selected is told to assistive technology by aria-activedescendant.

import { drawCard } from './card.js';
import { byId, el } from './dom.js';
import { groupRows, groups } from './rows.js';
import { active } from './search.js';
import { drawStrip } from './strips.js';
import { Offsets } from './virtual.js';
import { duration, line, owner, phaseName, status } from './words.js';

const margin = 500; // pixels above and below the view that are drawn too

/** Timeline draws the run that the app shows. */
export class Timeline {
  constructor(app) {
    this.app = app;
    this.box = byId('timeline');
    this.body = el('div', { class: 'rows', role: 'presentation' });
    this.box.append(this.body);
    this.pinned = byId('pinned');
    this.said = el('div', { class: 'said', role: 'treeitem', id: 'timeline-current', 'aria-selected': 'true' });
    this.box.append(this.said);
    this.folded = new Set();
    this.parts = new Map(); // id of a group -> its rows
    this.rows = [];
    this.offsets = new Offsets([]);
    this.drawn = new Map(); // row -> its element
    this.nodes = new Map(); // "kind id" -> elements that show it
    this.width = 0;
    this.follow = false;
    this.followed = 0; // how far down following has scrolled
    this.box.addEventListener('scroll', () => this.#scrolled(), { passive: true });
    this.box.addEventListener('click', (event) => this.#clicked(event));
    new ResizeObserver(() => this.#resized()).observe(this.box);
    app.on('run', () => this.reset());
    app.on('model', (what) => this.#patched(what));
    app.on('select', (how) => this.#selected(how));
    app.on('find', () => this.#filtered());
  }

  /** reset draws another run from its beginning. */
  reset() {
    this.parts.clear();
    this.folded.clear();
    this.#clear();
    this.box.scrollTop = 0;
    this.build();
  }

  /** build makes the list of rows again; groups that did not change keep theirs. */
  build() {
    const { model, run, found } = this.app;
    this.width = this.box.clientWidth;
    const passes = active(found.filters) ? (item) => found.set.has(item.kind + ' ' + item.id) : undefined;
    const env = { width: this.width, folded: this.folded, passes };
    this.groups = run === undefined ? [] : groups(model, run);
    this.rows = [];
    for (const group of this.groups) {
      let rows = this.parts.get(group.id);
      if (!rows) {
        rows = groupRows(model, group, env);
        for (const row of rows) row.folded = this.folded.has(group.id) && !passes;
        this.parts.set(group.id, rows);
      }
      for (const row of rows) this.rows.push(row);
    }
    this.offsets = new Offsets(this.rows.map((row) => row.height));
    this.body.style.height = this.offsets.total + 'px';
    this.where = new Map(); // id of a span that has a row -> its number
    this.rows.forEach((row, i) => {
      if (row.type === 'quiet') for (const span of row.spans) this.where.set(span.id, i);
      else this.where.set(row.id, i);
    });
    this.box.classList.toggle('empty', this.rows.length === 0);
    this.draw();
    this.app.emit('rows');
  }

  /** draw puts the rows in view into the document and takes the others out. */
  draw() {
    const top = this.box.scrollTop;
    const [first, behind] = this.offsets.range(top - margin, top + this.box.clientHeight + margin);
    const keep = new Set(this.rows.slice(first, behind));
    for (const [row, node] of this.drawn) if (!keep.has(row)) this.#take(row, node);
    for (let i = first; i < behind; i++) {
      const row = this.rows[i];
      let node = this.drawn.get(row);
      if (!node) {
        node = this.#make(row);
        this.drawn.set(row, node);
        this.body.append(node);
      }
      node.style.top = this.offsets.top(i) + 'px';
    }
    this.#pin(this.offsets.indexAt(top));
  }

  #make(row) {
    const made = [];
    const mark = (node, item) => {
      const name = item.kind + ' ' + item.id;
      node.classList.add('item');
      node.inspected = item;
      this.nodes.set(name, [...(this.nodes.get(name) ?? []), node]);
      this.#paint(node, item);
      made.push([name, node]);
    };
    const act = { toggle: (id) => this.toggle(id), openRun: (id) => this.app.showRun(id) };
    const inner = row.type === 'card' ? drawCard(this.app.model, row, mark) : drawStrip(this.app.model, row, mark, act);
    const node = el('div', { class: `row row-${row.type}`, style: { height: row.height + 'px', '--depth': String(row.depth) } }, inner);
    node.made = made;
    return node;
  }

  #take(row, node) {
    node.remove();
    this.drawn.delete(row);
    for (const [name, part] of node.made) {
      const rest = (this.nodes.get(name) ?? []).filter((n) => n !== part);
      if (rest.length > 0) this.nodes.set(name, rest); else this.nodes.delete(name);
    }
  }

  #clear() {
    for (const [row, node] of this.drawn) this.#take(row, node);
  }

  #paint(node, item) {
    const { selected, found } = this.app;
    node.classList.toggle('selected', selected?.kind === item.kind && selected.id === item.id);
    node.classList.toggle('found', found.query !== '' && found.set.has(item.kind + ' ' + item.id));
  }

  #repaint() {
    for (const nodes of this.nodes.values()) for (const node of nodes) this.#paint(node, node.inspected);
  }

  // The header of the step in view stays in sight.
  #pin(index) {
    let i = index;
    while (i > 0 && this.rows[i]?.type !== 'step' && this.rows[i]?.type !== 'edge') i--;
    const row = this.rows[i];
    const shown = row?.type === 'step' && this.box.scrollTop > this.offsets.top(i) + 20;
    this.pinned.textContent = shown ? `Step ${row.span.step ?? ''}` : '';
    this.pinned.classList.toggle('on', shown);
  }

  #scrolled() {
    // Following only ever scrolls down: what goes up is somebody who wants to read.
    const { scrollTop, clientHeight } = this.box;
    if (this.follow && scrollTop < this.followed - 4 && scrollTop + clientHeight < this.offsets.total - 40) this.setFollow(false);
    if (!this.frame) {
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.draw();
        this.app.emit('scroll');
      });
    }
  }

  #resized() {
    const width = this.box.clientWidth;
    if (Math.abs(width - this.width) > 8) {
      this.parts.clear();
      this.build();
      this.#clear();
    }
    this.draw();
    this.app.emit('scroll');
  }

  #filtered() {
    const filters = JSON.stringify([this.app.found.filters.phase, this.app.found.filters.plugin, this.app.found.filters.kind, [...(this.app.found.filters.problems ?? [])]]);
    if (filters !== this.filters) {
      this.filters = filters;
      this.parts.clear();
      this.#clear();
      this.build();
    }
    this.#repaint();
  }

  #patched(what) {
    let touched = false;
    for (const id of what.tops) {
      for (const name of [id, 'edge/' + id]) if (this.parts.delete(name)) touched = true;
    }
    // Spans between steps are in groups that are named by their first.
    for (const id of this.parts.keys()) if (id.startsWith('edge/') && what.tops.size > 0) this.parts.delete(id);
    if (!touched && !what.runs.has(this.app.run)) return;
    const before = this.rows.length;
    this.build();
    const live = new Set(this.rows);
    for (const [row, node] of this.drawn) if (!live.has(row)) this.#take(row, node);
    this.draw();
    if (this.follow && this.rows.length >= before) this.#bottom();
  }

  setFollow(on) {
    this.follow = on;
    if (on) this.#bottom();
    this.app.emit('follow', on);
  }

  #bottom() {
    this.box.scrollTop = this.offsets.total;
    this.followed = this.box.scrollTop;
    this.draw();
  }

  toggle(id, on = !this.folded.has(id)) {
    if (on) this.folded.add(id); else this.folded.delete(id);
    this.parts.delete(id);
    this.build();
  }

  /** toggleAll folds every step, or opens all if all are folded. */
  toggleAll() {
    const steps = this.groups.filter((g) => g.kind === 'step');
    const fold = steps.some((g) => !this.folded.has(g.id));
    const top = this.rows[this.offsets.indexAt(this.box.scrollTop)]?.group ?? this.#groupAt(this.offsets.indexAt(this.box.scrollTop));
    this.folded = new Set(fold ? steps.map((g) => g.id) : []);
    this.parts.clear();
    this.build();
    const at = this.rows.findIndex((row) => row.group === top || row.id === top?.id);
    if (at > 0) this.box.scrollTop = this.offsets.top(at);
    this.draw();
    return fold;
  }

  #groupAt(index) {
    for (let i = index; i >= 0; i--) if (this.rows[i]?.group) return this.rows[i].group;
    return undefined;
  }

  #clicked(event) {
    let node = event.target;
    while (node && node !== this.box && !node.inspected) node = node.parentElement;
    if (node?.inspected) this.app.select(node.inspected, { scroll: false, tab: this.app.tab === 'state' ? 'state' : 'details' });
  }

  #selected(how) {
    this.#repaint();
    const item = this.app.selected;
    if (item && how.scroll !== false) this.reveal(item);
    this.said.textContent = item ? this.#say(item) : '';
    if (item) this.box.setAttribute('aria-activedescendant', 'timeline-current'); else this.box.removeAttribute('aria-activedescendant');
  }

  // What assistive technology says of the selected thing; sighted people see it in the row.
  #say(item) {
    const thing = this.app.thing(item);
    if (item.kind === 'commit') return `Commit of revision ${thing.rev}`;
    if (item.kind !== 'span') return line(thing.tool ?? thing.effect ?? '', 80);
    const name = thing.kind === 'phase' ? phaseName(thing.phase ?? thing.name) : thing.kind === 'step' ? `Step ${thing.step}` : owner(thing.plugin, thing.hook ?? thing.name) || line(thing.name, 80);
    const row = this.rows[this.where.get(item.id)];
    this.said.setAttribute('aria-level', thing.kind === 'step' ? '1' : row?.id === item.id ? '2' : '3');
    if (thing.kind === 'step') this.said.setAttribute('aria-expanded', String(!this.folded.has(thing.id))); else this.said.removeAttribute('aria-expanded');
    return `${thing.kind} ${name}, ${status(thing.status).word}, ${thing.end === undefined ? 'running' : duration(thing.end - thing.start)}`;
  }

  /** reveal scrolls to an item, opening its step if that is folded. */
  reveal(item) {
    const index = this.#rowOf(item);
    if (index === undefined) return;
    const row = this.rows[index];
    const within = this.#offsetIn(row, item);
    const top = this.offsets.top(index) + within;
    const view = this.box.clientHeight;
    if (top < this.box.scrollTop + 30 || top + 40 > this.box.scrollTop + view) {
      if (this.follow) this.setFollow(false);
      this.box.scrollTop = Math.max(0, row.height < view - 60 ? this.offsets.top(index) - Math.min(60, (view - row.height) / 2) : top - view / 3);
      this.draw();
    }
  }

  #rowOf(item) {
    const thing = this.app.thing(item);
    const span = item.kind === 'span' ? thing : this.app.model.spans.get(thing?.span ?? thing?.phase_span);
    if (!span) return undefined;
    const line = this.app.model.ancestors(span);
    const step = line.find((s) => this.folded.has(s.id));
    if (step) this.toggle(step.id, false);
    for (const s of line) {
      const at = this.where.get(s.id);
      if (at !== undefined) return at;
    }
    return undefined;
  }

  #offsetIn(row, item) {
    if (row.type !== 'card') return 0;
    for (const block of row.card.blocks) {
      if (block.lanes) {
        for (const lane of block.lanes) if (lane.bars.some((b) => b.span.id === item.id)) return block.y + lane.y;
      } else if (block.items.some((i) => i.kind === item.kind && i.id === item.id)) return block.y;
    }
    return 0;
  }

  /** move selects the item so many before or behind the selected one. */
  move(by) {
    const item = this.app.selected;
    let row = item ? this.#rowOf(item) : undefined;
    if (row === undefined) {
      row = this.offsets.indexAt(this.box.scrollTop);
      while (row < this.rows.length - 1 && this.rows[row].items.length === 0) row++;
      const first = this.rows[row]?.items[0];
      if (first) this.app.select(first);
      return;
    }
    let at = Math.max(0, this.rows[row].items.findIndex((i) => i.kind === item.kind && i.id === item.id)) + by;
    while (row >= 0 && row < this.rows.length) {
      const items = this.rows[row].items;
      if (at >= 0 && at < items.length) {
        this.app.select(items[at]);
        return;
      }
      if (at < 0) {
        row--;
        at += this.rows[row]?.items.length ?? 0;
      } else {
        at -= items.length;
        row++;
      }
    }
  }

  /** moveStep selects the step so many before or behind. */
  moveStep(by) {
    const index = this.app.selected ? this.#rowOf(this.app.selected) : undefined;
    const at = index ?? this.offsets.indexAt(this.box.scrollTop);
    for (let i = at + by; i >= 0 && i < this.rows.length; i += by) {
      if (this.rows[i].type === 'step') {
        this.app.select(this.rows[i].items[0]);
        this.box.scrollTop = this.offsets.top(i) - 4;
        return;
      }
    }
  }

  /** edge selects the first or the last item. */
  edge(last) {
    const rows = this.rows.filter((row) => row.items.length > 0);
    const items = (last ? rows.at(-1) : rows[0])?.items;
    if (items) this.app.select(last ? items.at(-1) : items[0]);
  }

  /** selectedStep is the step that the selected thing is, if it is one. */
  selectedStep() {
    const thing = this.app.thing(this.app.selected);
    return this.app.selected?.kind === 'span' && thing?.kind === 'step' ? thing.id : undefined;
  }

  /** window is the range of time of what is in view. */
  window() {
    const [first, behind] = this.offsets.range(this.box.scrollTop, this.box.scrollTop + this.box.clientHeight);
    let [from, to] = [Infinity, -Infinity];
    for (const row of this.rows.slice(first, behind)) {
      for (const span of row.spans ?? (row.span ? [row.span] : [])) {
        if (row.type === 'step' && !row.folded) { from = Math.min(from, span.start); continue; }
        from = Math.min(from, span.start);
        to = Math.max(to, span.end ?? this.app.model.end);
      }
    }
    return from === Infinity ? undefined : [from, Math.max(from, to)];
  }

  /** showTime scrolls to what happened at a time. */
  showTime(time) {
    let best = 0;
    this.rows.forEach((row, i) => {
      const span = row.span ?? row.spans?.[0];
      if (span && span.start <= time) best = i;
    });
    if (this.follow) this.setFollow(false);
    this.box.scrollTop = Math.max(0, this.offsets.top(best) - 60);
    this.draw();
  }
}
