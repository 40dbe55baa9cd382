// How numbers, times, names and statuses are said. No drawing here.

// Characters that reorder or hide others are shown by their number.
const tricky = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

/** clean makes any string of a recording fit to be shown, at most so many characters long. */
export function clean(value, limit = 300) {
  let text = typeof value === 'string' ? value : value === undefined ? '' : String(value);
  const long = text.length > limit;
  if (long) text = text.slice(0, limit).replace(/[\ud800-\udbff]$/, '');
  text = text.replace(tricky, (c) => `\u2039U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}\u203a`);
  return long ? text + '\u2026' : text;
}

/** line is clean on one line. */
export const line = (value, limit) => clean(value, limit).replace(/[\s\n]+/g, ' ');

/** duration says a time in microseconds. */
export function duration(us) {
  if (!(us >= 0)) return '';
  if (us === 0) return '0 \u00b5s';
  if (us < 10) return `${round(us, 1)} \u00b5s`;
  if (us < 1000) return `${Math.round(us)} \u00b5s`;
  if (us < 1e6) return `${round(us / 1e3, us < 1e5 ? 1 : 0)} ms`;
  if (us < 60e6) return `${round(us / 1e6, 2)} s`;
  if (us < 3600e6) return `${Math.floor(us / 60e6)} min ${Math.round((us % 60e6) / 1e6)} s`;
  return `${Math.floor(us / 3600e6)} h ${Math.round((us % 3600e6) / 60e6)} min`;
}

const round = (n, digits) => String(Number(n.toFixed(digits)));

/** count says n things: "1 conflict", "2 conflicts". */
export const count = (n, one, many = one + 's') => `${number(n)} ${n === 1 ? one : many}`;

/** number says a number with its thousands apart. */
export const number = (n) => String(n).replace(/\B(?=(\d{3})+(?!\d))/g, ',');

/** size says a number of bytes. */
export function size(n) {
  if (n < 1024) return count(n, 'byte');
  return n < 1 << 20 ? `${round(n / 1024, 1)} KiB` : `${round(n / (1 << 20), 1)} MiB`;
}

/** phaseName says a phase's text form: before_inference is "Before inference". */
export function phaseName(phase) {
  const text = line(phase, 60).replace(/_/g, ' ');
  return text ? text[0].toUpperCase() + text.slice(1) : '';
}

// The name of a hook without one is its plugin, its phase and its number. The first needs none.
const numbered = /^(?:run_start|step_start|before_inference|after_inference|tool_gate|before_tool_execute|after_tool_execute|step_end|run_end)\/(?:0$|(?=\d+$))/;

/** owner says plugin and hook (or gate, or action) of a span or a write. */
export function owner(plugin, hook) {
  const named = typeof hook === 'string' && plugin && hook.startsWith(plugin + '/') ? hook.slice(plugin.length + 1).replace(numbered, '') : hook;
  const [p, h] = [line(plugin, 80), line(named, 80)];
  return p && h && p !== h ? `${p} \u00b7 ${h}` : p || h;
}

/** slot says a key, and its entry if it is a table's. */
export const slot = (key, entry) => (entry === undefined ? line(key, 120) : `${line(key, 120)}[${line(entry, 80)}]`);

// Each status has a word, a sign that is not a colour, and a tone of the style sheet.
const statuses = new Map(Object.entries({
  open: ['running', '\u25cb', 'calm'], running: ['running', '\u25cb', 'calm'], ok: ['ok', '', ''], done: ['done', '', ''],
  conflict: ['lost a conflict', '\u2260', 'warn'], retried: ['retried', '\u21bb', 'warn'],
  skipped: ['skipped', '\u2298', 'warn'], warning: ['warning', '!', 'warn'], failed: ['failed', '\u2717', 'bad'], error: ['failed', '\u2717', 'bad'],
  dropped: ['dropped', '\u2717', 'bad'], approve: ['approve', '\u2713', 'good'], block: ['block', '\u2715', 'bad'],
  blocked: ['blocked', '\u2715', 'bad'], denied: ['denied', '\u2715', 'bad'],
  ask: ['ask', '?', 'calm'], suspend: ['suspend', '\u2016', 'calm'], waiting: ['waiting', '\u2016', 'calm'],
  abstain: ['abstain', '\u2013', ''], edit: ['edit', '\u270e', 'warn'], substituted: ['substituted', '\u21c4', 'calm'],
  set_result: ['set result', '\u21c4', 'calm'], cancelled: ['cancelled', '\u2298', 'warn'], timed_out: ['timed out', '\u2298', 'bad'],
}));

/** status gives the word, the sign and the tone of a status. */
export function status(name) {
  const known = statuses.get(name);
  if (known) return { word: known[0], sign: known[1], tone: known[2] };
  return { word: line(name, 40).replace(/_/g, ' '), sign: '', tone: '' };
}

/** json writes a value on lines of its own. */
export const json = (value) => (value === undefined ? '' : JSON.stringify(value, null, 2));

/** brief writes a value on one line, cut. */
export function brief(value, limit = 80) {
  if (value === undefined) return 'nothing';
  if (typeof value === 'string') return JSON.stringify(line(value, limit));
  if (Array.isArray(value) && value.length > 20) return count(value.length, 'element');
  return line(JSON.stringify(value), limit);
}
