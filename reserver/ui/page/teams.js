/** Teams: what each namespace held over a week, how much nobody used, and its quota. */

import { ask } from './store.js';
import { h } from './dom.js';
import { round } from './format.js';

/** @param {HTMLElement} main @param {import('./main.js').Place} place */
export function view(main, { query, signal, go }) {
  let resource = query.get('resource') ?? 'cpu';
  const answer = h('div', { class: 'answer' }, h('p', { class: 'empty' }, 'Summing up a week …'));
  const offered = [...new Set(['cpu', 'memory', resource])];
  main.append(h('div', { class: 'toolbar' }, h('label', {}, 'Resource ', h('input', { list: 'resources', value: resource, maxlength: 300, onchange: (/** @type {any} */ e) => { resource = e.target.value.trim() || 'cpu'; go({ resource }); read(); } })),
    h('datalist', { id: 'resources' }, ...offered.map((each) => h('option', { value: each })))), answer);

  async function read() {
    try {
      const found = await ask('teams', { resource }, signal);
      answer.replaceChildren(...shown(found));
    } catch (/** @type {any} */ error) {
      if (!signal.aborted) answer.replaceChildren(h('p', { class: 'problem', role: 'alert' }, error.message));
    }
  }
  read();
  const again = setInterval(read, 60_000);
  signal.addEventListener('abort', () => clearInterval(again));
}

/** @param {any} found */
function shown(found) {
  /** @type {Map<string, {used: number, unused: number, open: number}>} */ const teams = new Map();
  for (const { namespace, hours } of found.owners) {
    const sums = teams.get(namespace) ?? { used: 0, unused: 0, open: 0 };
    for (const name of Object.keys(sums)) sums[name] += hours[name] ?? 0;
    teams.set(namespace, sums);
  }
  const total = (/** @type {any} */ sums) => sums.used + sums.unused + sums.open;
  const most = Math.max(1e-9, ...[...teams.values()].map(total));
  /** @type {Map<string, any[]>} */ const quotas = new Map();
  for (const each of found.quotas) quotas.set(each.namespace, [...(quotas.get(each.namespace) ?? []), each]);
  const names = [...new Set([...teams.keys(), ...quotas.keys()])].sort((a, b) => total(teams.get(b) ?? { used: 0, unused: 0, open: 0 }) - total(teams.get(a) ?? { used: 0, unused: 0, open: 0 }) || a.localeCompare(b));
  if (!names.length) return [h('p', { class: 'empty' }, `No ${found.resource} was held in the last week.`)];
  const unit = `${found.unit} × hours`;
  return [
    h('p', {}, `${found.resource} held in the last seven days, in ${unit}: claimed in the end, released or expired without a claim, and still open.`),
    h('ul', { class: 'legend' }, ...['used', 'unused', 'open'].map((name) => h('li', {}, h('span', { class: `swatch ${name}`, 'aria-hidden': 'true' }), name))),
    h('div', { class: 'wide', tabindex: '0' }, h('table', {},
      h('thead', {}, h('tr', {}, ...['Namespace', 'Held', '', 'Used', 'Unused', 'Open', 'Quota'].map((each) => h('th', { scope: 'col' }, each || h('span', { class: 'hidden' }, 'Bar'))))),
      h('tbody', {}, ...names.map((name) => {
        const sums = teams.get(name) ?? { used: 0, unused: 0, open: 0 };
        const limits = (quotas.get(name) ?? []).flatMap((quota) => Object.keys(quota.hard).filter((key) => key.endsWith(found.resource) || key === 'reservations')
          .map((key) => `${key} ${quota.used[key] ?? 0} of ${quota.hard[key]}`));
        return h('tr', {}, h('th', { scope: 'row' }, name), h('td', {}, round(total(sums))),
          h('td', {}, h('span', { class: 'stack', 'aria-hidden': 'true' }, ...['used', 'unused', 'open'].map((key) => h('i', { class: key, style: { width: `${sums[key] / most * 100}%` } })))),
          ...['used', 'unused', 'open'].map((key) => h('td', {}, round(sums[key]))), h('td', {}, limits.join('; ') || '–'));
      })))),
  ];
}
