/** The page: one view at a time, chosen by the address. */

import * as store from './store.js';
import { h, say } from './dom.js';
import { clock, endsIn, time, zone } from './format.js';

/** @typedef {{query: URLSearchParams, rest: string, signal: AbortSignal, go: (changes: Record<string, string|null>) => void}} Place */

/** @typedef {{view: (main: HTMLElement, place: Place) => void}} View */

/** @type {Record<string, [string, () => Promise<View>]>} */
const VIEWS = {
  timeline: ['Timeline', () => import('./timeline.js')],
  reservations: ['Reservations', () => import('./reservations.js')],
  pod: ['A pod', () => import('./pod.js')],
  plan: ['A plan', () => import('./plan.js')],
  teams: ['Teams', () => import('./teams.js')],
  health: ['Health', () => import('./health.js')],
};

/** Optional sources, whose views show their problems themselves. */
const OPTIONAL = new Set(['moves', 'labels', 'windows', 'clock']);

const main = /** @type {HTMLElement} */ (document.getElementById('main'));
const nav = /** @type {HTMLElement} */ (document.querySelector('nav'));
const heading = /** @type {HTMLElement} */ (document.querySelector('h1'));
const state = /** @type {HTMLElement} */ (document.getElementById('state'));
let leaving = new AbortController();
let shown = '';

function read() {
  const [path, query] = location.hash.replace(/^#\/?/, '').split('?', 2);
  const [name, ...rest] = path.split('/').map(decoded);
  return { name: name in VIEWS ? name : 'timeline', rest: rest.join('/'), query: new URLSearchParams(query) };
}

/** @param {string} text */
function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

/** Change parts of the address without a new history entry. @param {Record<string, string|null>} changes */
function go(changes) {
  const { name, rest, query } = read();
  for (const [key, value] of Object.entries(changes)) value === null || value === '' ? query.delete(key) : query.set(key, value);
  const asked = query.size ? `?${query}` : '';
  history.replaceState(null, '', `#/${name}${rest ? `/${rest.split('/').map(encodeURIComponent).join('/')}` : ''}${asked}`);
  shown = location.hash;
}

async function show() {
  if (location.hash === shown && shown) return;
  shown = location.hash;
  const { name, rest, query } = read();
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  for (const link of nav.children) link.ariaCurrent = link.getAttribute('href') === `#/${name}` ? 'page' : null;
  const [title, load] = VIEWS[name];
  document.title = `${title} · Reserver`;
  heading.dataset.view = title;
  const { view } = await load();
  if (signal.aborted) return;
  main.className = name;
  main.replaceChildren();
  view(main, { query, rest, signal, go });
}

/** Show whether the page is up to date. */
function check() {
  const failing = [...store.status].filter(([what, each]) => each.problem && !OPTIONAL.has(what)).map(([, each]) => each);
  const problems = [...new Set(failing.map((each) => each.problem))];
  const since = Math.min(...failing.map((each) => each.since ?? Infinity));
  const offset = store.status.get('offset')?.seconds ?? 0;
  const kind = !store.isConnected ? 'lost' : problems.length ? 'warn' : 'good';
  const text = !store.isConnected
    ? 'Not connected: `reserver ui` does not answer. Where it has ended, start it again: its address is new.'
    : problems.length ? `${problems.join(' · ')} · shown as of ${clock(since)}, trying on`
    : store.isComplete ? `Live · times in ${zone()}` : 'Reading …';
  const drift = kind === 'good' && Math.abs(offset) > 2 ? ` · your clock is ${Math.abs(offset)} s ${offset > 0 ? 'behind' : 'ahead'}; times are Reserver's` : '';
  if (state.dataset.text === text + drift) return;
  state.dataset.text = text + drift;
  state.className = kind;
  state.textContent = text + drift;
}

for (const [name, [title]] of Object.entries(VIEWS)) nav.append(h('a', { href: `#/${name}` }, title));
store.onChange(check, new AbortController().signal);
addEventListener('hashchange', show);
addEventListener('beforeprint', () => { state.dataset.printed = time(store.now()); });
store.connect();
await show();
setInterval(() => {
  for (const each of document.querySelectorAll('time[data-ends]')) {
    const ends = Number(each.getAttribute('data-ends'));
    const text = endsIn(ends, store.now());
    if (each.textContent !== text) each.textContent = text;
    each.setAttribute('title', time(ends));
  }
}, 1000);
say('Reserver');
