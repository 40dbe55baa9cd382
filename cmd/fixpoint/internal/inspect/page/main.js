// Puts the parts of the page together.

import { App } from './app.js';
import { Details } from './details.js';
import { byId } from './dom.js';
import { Find } from './find.js';
import { Keys } from './keys.js';
import { Lists } from './lists.js';
import { Minimap } from './minimap.js';
import { Model } from './model.js';
import { RunList } from './runs.js';
import { Slider } from './slider.js';
import { explain, open } from './source.js';
import { StatePane } from './statepane.js';
import { Tabs } from './tabs.js';
import { Theme } from './theme.js';
import { Timeline } from './timeline.js';
import { count, line } from './words.js';

const app = new App(new Model({}));
const theme = new Theme(app);
const tabs = new Tabs(app);
const runs = new RunList(app);
const timeline = new Timeline(app);
const minimap = new Minimap(app, timeline);
const find = new Find(app);
const details = new Details(app);
const slider = new Slider(app);
const parts = { timeline, find, slider, theme, tabs, minimap, details, state: new StatePane(app), lists: new Lists(app) };
const keys = new Keys(app, parts);

/** inspector is for whoever looks at the page from a console or a test. */
window.inspector = { app, keys, ...parts };

function show(view) {
  performance.mark('inspector-view');
  const { run, selected } = app;
  const model = new Model(view);
  app.model = model;
  find.use(model);
  app.run = undefined;
  byId('source').textContent = line(model.source, 200);
  runs.draw();
  const first = model.runs.has(run) ? run : model.order[0]?.id;
  if (first !== undefined) app.showRun(first); else timeline.build();
  wanted = selected ?? wanted;
  restore();
  details.draw();
  tabs.draw();
  banner();
  connection('open');
  painted('inspector-painted');
  if (!model.more) painted('inspector-complete');
}

const painted = (name) => requestAnimationFrame(() => requestAnimationFrame(() => performance.mark(name)));

// What was selected before the connection was lost may come late in a long view.
let wanted;
function restore() {
  if (!wanted || (!app.thing(wanted) && app.model.more)) return;
  if (app.thing(wanted)) app.select(wanted);
  wanted = undefined;
}

function merge(patches) {
  const all = { runs: new Set(), tops: new Set() };
  for (const patch of patches) {
    const changed = app.model.apply(patch);
    for (const id of changed.runs) all.runs.add(id);
    for (const id of changed.tops) all.tops.add(id);
  }
  app.changed(all);
  restore();
  if (patches.some((patch) => patch.more === false)) painted('inspector-complete');
  banner();
  connection('open');
}

function banner() {
  const { dropped, notes } = app.model;
  const missing = dropped > 0 ? `\u26a0 ${count(dropped, 'event is', 'events are')} missing: parts of this page may be incomplete. ` : '';
  byId('banner').textContent = missing + (dropped > 0 && notes.length > 0 ? line(notes[0], 200) : '');
  byId('banner').hidden = missing === '';
}

let lost = false;
function connection(word) {
  if (word === 'lost' || word === 'ended') lost = word === 'lost';
  if (word === 'open') lost = false;
  const live = byId('live');
  const text = lost ? 'connection lost, trying again' : app.model.more ? 'loading' : app.model.live ? 'live' : 'recorded';
  if (live.textContent !== text) live.textContent = text;
  live.classList.toggle('on', app.model.live && !lost);
  live.classList.toggle('lost', lost);
  byId('follow').hidden = !app.model.live;
}

byId('follow').addEventListener('click', () => timeline.setFollow(!timeline.follow));
byId('fold').addEventListener('click', () => timeline.toggleAll());
app.on('follow', (on) => byId('follow').setAttribute('aria-pressed', String(on)));

if (byId('view').dataset.events) app.explain = explain;
open({
  view: (view) => {
    show(view);
    if (app.model.live) timeline.setFollow(true);
  },
  patches: merge,
  state: connection,
});
