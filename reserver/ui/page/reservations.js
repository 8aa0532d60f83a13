/** A table of all reservations. */

import * as store from './store.js';
import { command, h, quoted, virtual } from './dom.js';
import { byName } from './format.js';
import { SHAPES, countdown, details, stateOf } from './reservation.js';

/** @import {Reservation} from '../documents' */

/** @type {Record<string, [string, (one: Reservation) => string|number]>} */
const COLUMNS = {
  name: ['Name', (one) => one.name],
  state: ['State', stateOf],
  owners: ['For', (one) => one.owners],
  node: ['Node', (one) => one.nodes.map(([node]) => node).join(', ')],
  holds: ['One slot holds', (one) => one.holds],
  slots: ['Claimed', (one) => one.claimed / one.slots],
  ends: ['Ends in', (one) => one.ends ?? Infinity],
};

/** @param {HTMLElement} main @param {import('./main.js').Place} place */
export function view(main, { query, rest, signal, go }) {
  let sort = COLUMNS[query.get('sort') ?? ''] ? String(query.get('sort')) : 'ends';
  let down = query.get('order') === 'down';
  let sought = query.get('q') ?? '';
  let shape = query.get('state') ?? '';
  let chosen = query.get('id') ?? rest;
  /** @type {[string, Reservation][]} */ let rows = [];

  const box = h('div', { class: 'body', role: 'rowgroup', tabindex: '0', 'aria-label': 'Reservations' });
  const head = h('div', { class: 'row head', role: 'row' }, ...Object.entries(COLUMNS).map(([name, [title]]) =>
    h('div', { role: 'columnheader', 'data-column': name, class: name }, h('button', { type: 'button', onclick: () => { down = sort === name && !down; sort = name; go({ sort, order: down ? 'down' : null }); draw(); } }, title))));
  const table = h('div', { class: 'table', role: 'table', 'aria-label': 'Reservations' }, h('div', { role: 'rowgroup' }, head), box);
  const aside = h('aside', { 'aria-label': 'Details' });
  const count = h('span', { class: 'count', role: 'status' });
  main.append(
    h('div', { class: 'toolbar' },
      h('input', { type: 'search', value: sought, placeholder: 'Find by name, owner, node', 'aria-label': 'Find by name, owner, node', oninput: (/** @type {any} */ e) => { sought = e.target.value; go({ q: sought }); draw(); } }),
      h('label', {}, 'State ', h('select', { 'aria-label': 'State', onchange: (/** @type {any} */ e) => { shape = e.target.value; go({ state: shape }); draw(); } },
        h('option', { value: '' }, 'any'), ...Object.entries(SHAPES).map(([name, [, word]]) => h('option', { value: name, selected: name === shape }, word)))),
      count),
    h('div', { class: 'split' }, table, aside));
  const list = virtual(box, 34, 24, render);
  signal.addEventListener('abort', list.close);

  /** @param {number} number */
  function render(number) {
    const [key, one] = rows[number];
    const [glyph] = SHAPES[one.shape] ?? SHAPES.broken;
    const cell = (/** @type {string} */ name, /** @type {any[]} */ ...content) => h('div', { role: 'cell', class: name }, ...content);
    return h('div', { class: `row${key === chosen ? ' chosen' : ''}`, role: 'row', 'aria-rowindex': number + 2, onclick: () => choose(key) },
      cell('name', h('button', { type: 'button', 'data-key': key, 'aria-pressed': String(key === chosen), title: one.id }, one.name)),
      cell('state', h('span', { class: `mark ${one.shape}`, 'aria-hidden': 'true' }, glyph), h('span', { title: `${one.words}${one.why ? `: ${one.why}` : ''}` }, ` ${stateOf(one)}`)),
      cell('owners', h('span', { title: one.owners }, one.owners)),
      cell('node', COLUMNS.node[1](one) || '–'),
      cell('holds', h('span', { title: one.holds }, one.holds)),
      cell('slots', `${one.claimed} of ${one.slots}`),
      cell('ends', countdown(one.ends), one.every && h('span', { title: one.every }, ' ↻', h('span', { class: 'hidden' }, 'recurs'))));
  }

  /** @param {string} key */
  function choose(key) {
    chosen = chosen === key ? '' : key;
    go({ id: chosen });
    draw();
  }

  function draw() {
    const wanted = sought.trim().toLowerCase();
    const value = COLUMNS[sort][1];
    rows = [...store.reservations].filter(([, one]) => (!shape || one.shape === shape)
      && (!wanted || `${one.name} ${one.owners} ${one.namespace} ${one.nodes.join(' ')} ${stateOf(one)} ${one.words}`.toLowerCase().includes(wanted)));
    rows.sort(([, a], [, b]) => {
      const [x, y] = [value(a), value(b)];
      const order = typeof x === 'number' && typeof y === 'number' ? (x === y ? 0 : x - y) : byName(String(x), String(y));
      return (order || byName(a.id, b.id)) * (down ? -1 : 1);
    });
    for (const each of head.children) each.ariaSort = each.getAttribute('data-column') === sort ? (down ? 'descending' : 'ascending') : 'none';
    table.setAttribute('aria-rowcount', String(rows.length + 1));
    count.textContent = `${rows.length.toLocaleString()} of ${store.reservations.size.toLocaleString()}`;
    list.reset(rows.length);
    box.querySelector('.empty')?.remove();
    if (store.isComplete && !rows.length) box.append(h('p', { class: 'empty' }, store.reservations.size ? 'No reservation matches. ' : 'There are no reservations. ', !store.reservations.size && h('code', {}, 'reserver create --help')));
    const one = store.find(chosen);
    const said = JSON.stringify(one ?? [chosen, store.isComplete]);
    if (aside.dataset.shown !== said) {
      aside.dataset.shown = said;
      aside.replaceChildren(one ? details(one) : h('div', { class: 'hint' }, ...(chosen && store.isComplete ? [h('p', {}, `There is no reservation ${chosen} any more.`), command(`reserver history ${quoted(chosen)}`)] : ['Choose a reservation for its details.'])));
    }
  }

  let due = 0;
  store.onChange(() => { due ||= setTimeout(() => { due = 0; draw(); }, 200); }, signal);
  signal.addEventListener('abort', () => clearTimeout(due));
  draw();
}
