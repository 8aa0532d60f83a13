/** Health: the findings of `reserver doctor`, and the state of the answering process. */

import { ask, now, repeat } from './store.js';
import { count } from './format.js';
import { command, fill, h, table } from './dom.js';

/** @import {Health, Watch} from '../documents' */

const SOON_DAYS = 14;

/** @param {HTMLElement} main @param {import('./main.js').Place} place */
export function view(main, { signal }) {
  const answer = h('div', { class: 'answer' }, h('p', { class: 'empty' }, 'Checking …'));
  main.append(answer);
  async function read() {
    try {
      fill(answer, shown(await ask('health', {}, signal)));
    } catch (/** @type {any} */ error) {
      if (!signal.aborted) fill(answer, h('p', { class: 'problem', role: 'alert' }, error.message));
    }
  }
  repeat(read, 30_000, signal);
}

/** @param {boolean} good */
const mark = (good) => h('span', { class: good ? 'good' : 'bad' }, good ? '✓ ok' : '✗ to do');

/** @param {Health} found */
function shown(found) {
  const checks = h('section', {}, h('h2', {}, 'Checks'),
    table(['Check', 'Result', 'Found', 'Remedy'], found.checks.map((each) => [each.check, mark(each.is_ok), each.said, each.remedy || '–'])), command('reserver doctor'));
  if (found.problem) return [checks, h('p', { class: 'problem', role: 'alert' }, found.problem)];
  const watches = Array.isArray(found.watches) ? found.watches.filter((each) => !each.absent) : [];
  return [checks, answering(found), watched(watches), certificates(found.metrics)];
}

/** @param {Health} found */
function answering({ versions, nodes, pods, reservations, obstacles, queues, metrics }) {
  const busy = Object.entries(queues).filter(([, depth]) => depth).map(([name, depth]) => `${name} ${depth}`);
  /** @type {[string, string|undefined][]} */
  const facts = [
    ['Version', versions['kube-reserver']],
    ['Leads', valued(metrics, 'leader_election_master_status').some(([, value]) => value) ? 'yes' : 'no'],
    ['Sees', [count(nodes, 'node'), count(pods, 'pod'), count(reservations, 'reservation')].join(', ')],
    ['Not ready because', obstacles.join('; ')],
    ['Queues', busy.join(', ') || 'all empty'],
    ['Calls by kube-scheduler', counted(metrics, 'reserver_extender_calls_total', ({ verb, outcome }) => `${verb} ${outcome}`) || 'none yet'],
    ['Calls to the API server', counted(metrics, 'reserver_client_requests_total', ({ code }) => code)],
  ];
  return h('section', {}, h('h2', {}, 'The process that answers'),
    h('dl', {}, ...facts.flatMap(([name, value]) => (value ? [h('dt', {}, name), h('dd', {}, value)] : []))));
}

/** @param {Watch[]} watches */
const watched = (watches) => watches.length > 0 && h('section', {}, h('h2', {}, 'Watches'),
  table(['Collection', 'Current', 'Lists', 'Unreadable', 'Obstacle'], watches.map((each) => [each.collection, mark(each.current), each.lists, each.unreadable, each.obstacle || '–'])));

/** @param {string[]} metrics */
function certificates(metrics) {
  const lines = valued(metrics, 'reserver_certificate_expiry').map(([{ file }, ends]) => {
    const left = Math.floor((ends * 1000 - now()) / 86_400_000);
    return h('li', {}, mark(left > SOON_DAYS), ` ${file}: ${left} days left`);
  });
  return h('section', {}, h('h2', {}, 'Certificates'), lines.length ? h('ul', { class: 'plain' }, ...lines) : h('p', { class: 'empty' }, 'None in use: the connection is on loopback.'));
}

/** The series of a metric: labels and value. @param {string[]} metrics @param {string} name @returns {[Record<string, string>, number][]} */
function valued(metrics, name) {
  return metrics.filter((line) => line.startsWith(name)).map((line) => {
    const labels = [...line.matchAll(/(\w+)="([^"]*)"/g)].map(([, label, value]) => [label, value]);
    return [Object.fromEntries(labels), Number(line.slice(line.lastIndexOf(' ')))];
  });
}

/** The sums of a counter, grouped by a text from its labels. @param {string[]} metrics @param {string} name @param {(labels: Record<string, string>) => string} word */
function counted(metrics, name, word) {
  /** @type {Map<string, number>} */ const sums = new Map();
  for (const [labels, value] of valued(metrics, name)) if (value) sums.set(word(labels), (sums.get(word(labels)) ?? 0) + value);
  return [...sums].sort().map(([each, sum]) => `${each}: ${sum.toLocaleString()}`).join(', ');
}
