/** Teams: the held and unused amounts of each namespace over a week, its quota, and the tenants' ceiling. */

import { ask, repeat } from './store.js';
import { fill, h, table } from './dom.js';
import { amount, byName, parse, round, time } from './format.js';

/** @import {Fate, Teams} from '../documents' */

/** @type {Fate[]} */ const FATES = ['used', 'unused', 'open'];
const MEANINGS = { used: 'claimed in the end', unused: 'released or expired without a claim', open: 'not claimed yet' };

/** @param {HTMLElement} main @param {import('./main.js').Place} place */
export function view(main, { query, signal, go }) {
  let resource = query.get('resource') ?? 'cpu';
  const answer = h('div', { class: 'answer' }, h('p', { class: 'empty' }, 'Summing up a week …'));
  const offered = [...new Set(['cpu', 'memory', 'nvidia.com/gpu', resource])];
  const change = (/** @type {any} */ event) => { resource = event.target.value.trim() || 'cpu'; go({ resource }); read(); };
  main.append(h('div', { class: 'toolbar' }, h('label', {}, 'Resource ', h('input', { list: 'resources', value: resource, maxlength: 300, onchange: change })),
    h('datalist', { id: 'resources' }, ...offered.map((each) => h('option', { value: each })))), answer);

  async function read() {
    try {
      const found = await ask('teams', { resource }, signal);
      fill(answer, shown(found));
    } catch (/** @type {any} */ error) {
      if (!signal.aborted) fill(answer, h('p', { class: 'problem', role: 'alert' }, error.message));
    }
  }
  repeat(read, 60_000, signal);
}

/** @param {Teams} found */
function shown(found) {
  /** @type {Map<string, Record<Fate, number>>} */ const teams = new Map();
  const of = (/** @type {string} */ name) => teams.get(name) ?? { used: 0, unused: 0, open: 0 };
  for (const { namespace, hours } of found.owners) {
    const sums = of(namespace);
    for (const fate of FATES) sums[fate] += hours[fate] ?? 0;
    teams.set(namespace, sums);
  }
  const held = (/** @type {string} */ name) => FATES.reduce((sum, fate) => sum + of(name)[fate], 0);
  const names = [...new Set([...teams.keys(), ...found.quotas.map((each) => each.namespace)])].sort((a, b) => held(b) - held(a) || byName(a, b));
  if (!names.length) return [h('p', { class: 'empty' }, `No ${found.resource} was held in the last week. Holds show up here as soon as reserver create has made one.`)];
  const most = Math.max(1e-9, ...names.map(held));
  const row = (/** @type {string} */ name) => [
    name || 'All tenants: their ceiling', round(held(name)), stack(of(name), most), ...FATES.map((fate) => round(of(name)[fate])), quotas(found, name)];
  return h('section', {},
    h('h2', {}, `${found.resource} held in the last seven days, in ${found.unit} × hours`),
    h('ul', { class: 'legend' }, ...FATES.map((fate) => h('li', {}, h('span', { class: `swatch ${fate}`, 'aria-hidden': 'true' }), `${fate}: ${MEANINGS[fate]}`))),
    week(found),
    table(['Namespace', 'Held', 'Parts', 'Used', 'Unused', 'Open', 'Quota'], names.map(row)));
}

/** The mean of each part of the week. @param {Teams} found */
function week({ overTime, resource, unit }) {
  const total = (/** @type {Record<Fate, number>} */ part) => FATES.reduce((sum, fate) => sum + part[fate], 0);
  const most = Math.max(1e-9, ...overTime.map(total));
  const said = (/** @type {string} */ begin) => time(Date.parse(begin));
  return h('figure', { class: 'week' },
    h('figcaption', {}, `${resource} held over the week, at its peak ${round(most)} ${unit}`),
    h('div', { class: 'columns', role: 'list' }, ...overTime.map((part) => {
      const words = `${said(part.begin)}: ${FATES.map((fate) => `${fate} ${round(part[fate])}`).join(', ')}`;
      return h('div', { role: 'listitem', 'aria-label': words, title: words },
        ...[...FATES].reverse().map((fate) => h('i', { class: fate, style: { height: `${part[fate] / most * 100}%` } })));
    })),
    h('div', { class: 'days', 'aria-hidden': 'true' }, h('span', {}, overTime.length ? said(overTime[0].begin) : ''), h('span', {}, 'now')));
}

/** @param {Record<Fate, number>} sums @param {number} most */
const stack = (sums, most) => h('span', { class: 'stack', 'aria-hidden': 'true' }, ...FATES.map((fate) => h('i', { class: fate, style: { width: `${sums[fate] / most * 100}%` } })));

/** @param {number} share */
const meter = (share) => h('span', { class: `meter${share >= 1 ? ' full' : ''}`, 'aria-hidden': 'true' }, h('i', { class: 'used', style: { width: `${Math.min(100, share * 100)}%` } }));

/** The remaining room of each quota of a namespace. @param {Teams} found @param {string} namespace */
function quotas(found, namespace) {
  const lines = found.quotas.filter((each) => each.namespace === namespace).flatMap(({ hard, used }) => Object.keys(hard)
    .filter((key) => key.endsWith(found.resource) || key === 'reservations')
    .map((key) => h('div', { class: 'quota' }, meter(parse(used[key]) / (parse(hard[key]) || 1)), ` ${key}: ${shownAs(key, used[key])} of ${shownAs(key, hard[key])}`)));
  return lines.length ? lines : '–';
}

/** @param {string} key such as held.cpu @param {string|undefined} text */
function shownAs(key, text) {
  if (key.endsWith('memory') || key.endsWith('storage')) return amount('memory', parse(text));
  return round(parse(text));
}
