// Where the view comes from: from the page itself (a file, or a server that put it
// there), else from the server's events. Patches are merged once per frame.

/** explain asks the server for the explanations of a commit's changes: a list for each. */
export function explain(commit) {
  return fetch('commit?id=' + encodeURIComponent(commit.id))
    .then((answer) => (answer.ok ? answer.json() : Promise.reject(new Error(answer.statusText))))
    .then((full) => (full.changes ?? []).map((change) => change.why ?? []));
}

/** open calls on.view(view) once there is one, on.patches(list) for news, on.state(word). */
export function open(on) {
  const given = document.getElementById('view');
  const text = given.textContent.trim();
  let have = false;
  if (text !== '') {
    given.remove(); // its text may be long
    const view = JSON.parse(text);
    have = true;
    on.view(view);
    if (!view.live || !given.dataset.events) return;
  }
  if (given.dataset.events) follow(given.dataset.events, on, have);
}

function follow(url, on, have) {
  const events = new EventSource(url);
  let waiting = [];
  let frame = 0;
  let [live, more] = [true, false];
  const flush = () => {
    frame = 0;
    const list = waiting;
    waiting = [];
    on.patches(list);
  };
  // Frames do not come while the page is hidden; patches are not to pile up then.
  const later = () => (document.hidden ? setTimeout(flush, 250) : requestAnimationFrame(flush));
  events.addEventListener('view', (event) => {
    waiting = [];
    const view = JSON.parse(event.data);
    on.view(view);
    have = true;
    [live, more] = [view.live === true, view.more === true];
    if (!live && !more) end();
  });
  events.addEventListener('patch', (event) => {
    if (!have) return;
    const patch = JSON.parse(event.data);
    waiting.push(patch);
    if (!frame) frame = later();
    live = patch.live ?? live;
    more = patch.more ?? more;
    if (!live && !more) end();
  });
  events.addEventListener('open', () => on.state('open'));
  events.addEventListener('error', () => {
    on.state('lost');
    // A browser comes back by itself, except to a server that answered with an error.
    if (events.readyState === EventSource.CLOSED) setTimeout(() => follow(url, on, have), 2000);
  });
  const end = () => {
    events.close();
    on.state('ended');
  };
}
