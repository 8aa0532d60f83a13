/** All documents of the page, kept up to date by one event stream. */

/** @import {Answers, Move, Node, Reservation, Status, Window} from '../documents' */

/** @type {Map<string, Reservation>} */ export const reservations = new Map();
/** @type {Map<string, Reservation>} */ export const past = new Map();
/** @type {Map<string, Node>} */ export const nodes = new Map();
/** @type {Map<string, Move>} */ export const moves = new Map();
/** @type {Map<string, Window>} */ export const windows = new Map();
/** @type {Map<string, Status>} */ export const status = new Map();
/** The keys of the reservations on each node. @type {Map<string, Set<string>>} */ export const onNode = new Map();

/** The first keys of node labels. @type {Set<string>} */ export const labels = new Set();
const MOST_LABELS = 300;

/** @type {Record<string, Map<string, any>>} */
const KINDS = { reservations, past, nodes, moves, windows, status };

/** Whether the process that serves this page answers. */
export let isConnected = false;
/** Whether everything has been read once. */
export let isComplete = false;

let ahead = 0; // Milliseconds by which Reserver's clock is ahead of the browser's.
const changed = new EventTarget();

/** The time by Reserver's clock, in unix milliseconds. */
export const now = () => Date.now() + ahead;

/** Call `act` after each batch of changes, until the signal aborts. @param {() => void} act @param {AbortSignal} signal */
export function onChange(act, signal) {
  changed.addEventListener('change', act, { signal });
}

/** A present or past reservation. @param {string} key */
export const find = (key) => reservations.get(key) ?? past.get(key);

/** The reservations of a node, by their keys. @param {string} node */
export const heldOn = (node) => [...(onNode.get(node) ?? [])].flatMap((key) => { const one = find(key); return one ? [/** @type {[string, Reservation]} */ ([key, one])] : []; });

/** @param {string} key @param {Reservation|undefined} before @param {Reservation|null} after */
function index(key, before, after) {
  for (const [node] of before?.nodes ?? []) onNode.get(node)?.delete(key);
  for (const [node] of after?.nodes ?? []) {
    const there = onNode.get(node) ?? new Set();
    onNode.set(node, there.add(key));
  }
}

/** @param {Record<string, string>} found */
function know(found) {
  for (const key in found) if (key !== 'kubernetes.io/hostname' && labels.size < MOST_LABELS) labels.add(key);
}

/** @param {MessageEvent<string>} message */
function take(message) {
  const { now: sent, reset, complete, ...changes } = JSON.parse(message.data);
  ahead = sent - Date.now();
  isConnected = true;
  if (reset) {
    for (const kind of Object.values(KINDS)) kind.clear();
    onNode.clear();
    labels.clear();
  }
  for (const [name, documents] of Object.entries(changes)) {
    const kind = KINDS[name];
    if (!kind) continue; // A kind of a newer server.
    for (const [key, one] of Object.entries(documents)) {
      if (kind === reservations || kind === past) index(key, kind.get(key), one);
      if (kind === nodes && one) know(one.labels);
      if (one === null) kind.delete(key);
      else kind.set(key, one);
    }
  }
  if (complete) isComplete = true;
  changed.dispatchEvent(new Event('change'));
}

const SILENCE = 25_000; // Milliseconds: more than two heartbeats.

/** Open the stream; the browser resumes a broken one, and a silent one is opened again. */
export function connect() {
  const stream = new EventSource('api/stream');
  let heard = performance.now();
  const watch = setInterval(() => { if (performance.now() - heard > SILENCE) again(); }, 5000);
  function again() {
    clearInterval(watch);
    stream.close();
    lose();
    setTimeout(connect, 1000);
  }
  stream.addEventListener('message', (message) => { heard = performance.now(); take(message); });
  stream.addEventListener('error', () => { if (stream.readyState === EventSource.CLOSED) again(); else lose(); });
}

function lose() {
  isConnected = false;
  changed.dispatchEvent(new Event('change'));
}

/** Request the document of a view.
 * @template {keyof Answers} View @param {View} view @param {Record<string, string>} [query] @param {AbortSignal} [signal]
 * @returns {Promise<Answers[View]>} */
export async function ask(view, query = {}, signal) {
  const answer = await fetch(`api/${view}?${new URLSearchParams(query)}`, { signal });
  const found = await answer.json().catch(() => ({ error: `${answer.status} ${answer.statusText}` }));
  if (!answer.ok) throw new Error(found.error ?? answer.statusText);
  return found;
}

const SHARE = 40;
const LATEST = 10_000;

/** Poll while the page is visible, less often if an answer takes long.
 * @param {() => Promise<void>} read @param {number} pause in milliseconds @param {AbortSignal} signal */
export async function repeat(read, pause, signal) {
  while (!signal.aborted) {
    const began = performance.now();
    await read();
    const least = Math.max(pause, Math.min(SHARE * (performance.now() - began), LATEST));
    do await new Promise((done) => setTimeout(done, least)); while (document.hidden && !signal.aborted);
  }
}
