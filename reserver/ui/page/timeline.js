/** The timeline: the holds of each node over time. */

import * as store from './store.js';
import { h, say, virtual } from './dom.js';
import { byName, clock, count, date, day, dominant, percent } from './format.js';
import { laned, layered } from './bars.js';
import { SHAPES, details, maintained, maintenance, summary, whenComing } from './reservation.js';

const HOUR = 3_600_000;
/** @type {Record<string, [string, number, number]>} span, and the distance of two ticks */
const RANGES = { hour: ['Hour', HOUR, HOUR / 6], day: ['Day', 24 * HOUR, 3 * HOUR], week: ['Week', 168 * HOUR, 24 * HOUR], month: ['Month', 744 * HOUR, 96 * HOUR] };
/** @type {Record<string, string>} */
const SORTS = { held: 'most held', free: 'least held', name: 'name' };
const ROW = 44;
const PRINTED = 22;
const BEFORE_NOW = 0.25;
const WINDOW = 'window '; // Prefix of a maintenance window's key; the key of a reservation has no space.

/** The reservation of a bar, and the start of its occurrence if it recurs. @param {string} key @returns {[Reservation|undefined, number|undefined]} */
function ofBar(key) {
  const [name, begin] = key.split(' ');
  return [store.find(name), begin ? Number(begin) : undefined];
}

/** @import {Reservation, Window} from '../documents' */
/** @import {Bar} from './bars.js' */

/** @param {HTMLElement} main @param {import('./main.js').Place} place */
export function view(main, { query, signal, go }) {
  let range = RANGES[query.get('range') ?? ''] ? String(query.get('range')) : 'day';
  let sort = SORTS[query.get('sort') ?? ''] ? String(query.get('sort')) : 'held';
  let group = query.get('group') ?? '';
  let sought = query.get('q') ?? '';
  let at = Number(query.get('at')) || 0; // The left edge; 0 follows the present.
  let pinned = query.get('id') ?? '';
  let isRevealed = !pinned;
  /** @typedef {{title: string, node?: string, key: string, placeless?: [string, Reservation][]}} Row */
  /** @type {Row[]} */ let rows = [];
  /** @type {Map<string, {bars: Bar[], unseen: number}>} */ const layouts = new Map();

  let width = 0; // Of the axis, in pixels: reading it while rows are drawn would cost a layout for each.

  const span = () => RANGES[range][1];
  const left = () => at || store.now() - BEFORE_NOW * span();
  const x = (/** @type {number} */ moment) => (moment - left()) / span();

  const axis = h('div', { class: 'axis', 'aria-hidden': 'true' });
  const lines = h('div', { class: 'lines', 'aria-hidden': 'true' });
  const box = h('div', { class: 'rows', role: 'list', 'aria-label': 'Nodes', tabindex: '-1' });
  const aside = h('aside', { 'aria-label': 'Details' });
  const total = h('span', { class: 'count' });
  const hint = h('span', { class: 'hint' });
  const groups = h('select', { 'aria-label': 'Group by', onchange: (/** @type {any} */ e) => { group = e.target.value; go({ group }); arrange(); } });
  const toolbar = h('div', { class: 'toolbar', role: 'toolbar', 'aria-label': 'Timeline' },
    h('div', { class: 'segments', role: 'group', 'aria-label': 'Range' }, ...Object.entries(RANGES).map(([name, [word]]) =>
      h('button', { type: 'button', 'data-range': name, onclick: () => { at &&= at + span() / 2 - RANGES[name][1] / 2; range = name; go({ range, at: at ? String(Math.round(at)) : null }); redraw(); } }, word))),
    h('div', { class: 'segments', role: 'group', 'aria-label': 'Time' },
      h('button', { type: 'button', 'aria-label': 'Earlier', onclick: () => pan(-0.5) }, '‹'),
      h('button', { type: 'button', onclick: () => { at = 0; go({ at: null }); redraw(); } }, 'Now'),
      h('button', { type: 'button', 'aria-label': 'Later', onclick: () => pan(0.5) }, '›')),
    h('label', {}, 'Group ', groups),
    h('label', {}, 'Sort ', h('select', { 'aria-label': 'Sort by', onchange: (/** @type {any} */ e) => { sort = e.target.value; go({ sort }); arrange(); } },
      ...Object.entries(SORTS).map(([name, word]) => h('option', { value: name, selected: name === sort }, word)))),
    h('input', { type: 'search', placeholder: 'Find a node or reservation', 'aria-label': 'Find a node or reservation', value: sought, oninput: (/** @type {any} */ e) => { sought = e.target.value; go({ q: sought }); arrange(); } }),
    hint, total);
  const shapes = [...Object.entries(SHAPES).filter(([name]) => name !== 'claimed'), ['coming', ['', 'Recurs']], ['seat', ['⇢', 'Seat of a move']], ['lent', ['', 'Lent to pods']], ['window', ['', 'Maintenance']], ['window planned', ['', 'Maintenance to come']]];
  const legend = h('ul', { class: 'legend', 'aria-label': 'Legend' }, ...shapes.map(([name, [, word]]) =>
    h('li', {}, h('span', { class: `swatch ${name}`, 'aria-hidden': 'true' }), word)));
  main.append(toolbar, h('div', { class: 'chart' }, h('div', { class: 'head' }, h('span', { class: 'corner' }, 'Node'), axis), lines, box), legend, aside);
  const list = virtual(box, ROW, PRINTED, render);
  signal.addEventListener('abort', list.close);

  /** @param {number} part */
  function pan(part) {
    at = left() + part * span();
    go({ at: String(Math.round(at)) });
    redraw();
  }

  /** Scroll to the reservation of the address, once its document and node are read. */
  function reveal() {
    if (isRevealed || !store.isComplete) return;
    const nodes = new Set(ofBar(pinned)[0]?.nodes.map(([node]) => node));
    const row = rows.findIndex(({ node }) => node && nodes.has(node) && store.nodes.has(node));
    isRevealed = row >= 0;
    if (isRevealed) list.reveal(row);
  }

  /** @param {string} node */
  function layout(node) {
    const known = layouts.get(node);
    if (known) return known;
    const found = layered(node, store.heldOn(node), store.nodes.get(node));
    layouts.set(node, found);
    return found;
  }

  /** @param {string} node */
  const heldShare = (node) => {
    const one = store.nodes.get(node);
    return one ? dominant(one.held, one.allocatable) : 0;
  };

  /** Compute the rows. */
  function arrange() {
    const wanted = sought.trim().toLowerCase();
    const names = new Set(store.nodes.keys());
    for (const [node, keys] of store.onNode) if (keys.size && [...keys].some((key) => store.reservations.has(key))) names.add(node);
    const matches = (/** @type {string} */ node) => !wanted || node.toLowerCase().includes(wanted)
      || [...(store.onNode.get(node) ?? [])].some((key) => `${store.find(key)?.name} ${store.find(key)?.owners}`.toLowerCase().includes(wanted));
    const shares = new Map([...names].filter(matches).map((node) => [node, heldShare(node)]));
    const order = [...shares.keys()].sort((a, b) => (sort === 'name' ? 0 : ((shares.get(b) ?? 0) - (shares.get(a) ?? 0)) * (sort === 'held' ? 1 : -1)) || byName(a, b));
    rows = [];
    const placeless = [...store.reservations].filter(([, one]) => !one.nodes.length && ['placeless', 'later', 'broken'].includes(one.shape)
      && (!wanted || `${one.name} ${one.owners}`.toLowerCase().includes(wanted)));
    if (placeless.length) rows.push({ title: `${placeless.length} unplaced`, key: 'placeless', placeless });
    if (group) {
      /** @type {Map<string, string[]>} */ const by = new Map();
      for (const node of order) {
        const label = store.nodes.get(node)?.labels[group] ?? '';
        by.set(label, [...(by.get(label) ?? []), node]);
      }
      for (const [label, members] of [...by].sort(([a], [b]) => byName(a, b))) {
        rows.push({ title: `${label || `no ${group}`}: ${count(members.length, 'node')}`, key: `group ${label}` });
        for (const node of members) rows.push({ title: node, node, key: node });
      }
    } else for (const node of order) rows.push({ title: node, node, key: node });
    total.textContent = `${count(order.length, 'node')}, ${count(store.reservations.size, 'reservation')}`;
    offerGroups();
    redraw();
    reveal();
  }

  function offerGroups() {
    const [labels, windows] = ['labels', 'windows'].map((what) => store.status.get(what)?.problem);
    hint.textContent = labels ? `No labels to group by: ${labels}` : windows ? `No maintenance shown: ${windows}` : '';
    const keys = new Set(group ? [group, ...store.labels] : store.labels);
    const wanted = ['', ...[...keys].sort((a, b) => Number(b.includes('zone')) - Number(a.includes('zone')) || a.localeCompare(b))];
    if (groups.dataset.keys === wanted.join()) return;
    groups.dataset.keys = wanted.join();
    const ends = wanted.map((key) => key.slice(key.lastIndexOf('/') + 1));
    const short = (/** @type {string} */ key) => { const end = ends[wanted.indexOf(key)]; return ends.indexOf(end) === ends.lastIndexOf(end) ? end : key; };
    groups.replaceChildren(...wanted.map((key) => h('option', { value: key, selected: key === group }, short(key) || 'none')));
  }

  /** @param {number} number */
  function render(number) {
    const row = rows[number];
    if (!row.node && !row.placeless) return h('div', { class: 'row group', role: 'listitem', 'data-row': number }, h('h2', { class: 'label' }, row.title));
    const held = row.node ? heldShare(row.node) : 0;
    const track = h('div', { class: 'track' });
    const known = row.node ? store.nodes.has(row.node) : true;
    const { bars, unseen: more } = row.node ? layout(row.node) : laned(row.placeless ?? []);
    for (const name of store.nodes.get(row.node ?? '')?.windows ?? []) {
      const one = store.windows.get(name);
      if (one && x(one.ends) > 0 && x(one.drains) < 1) track.append(windowBar(one));
    }
    for (const bar of bars) {
      const from = x(bar.begin), to = x(bar.end);
      if (to < 0 || from > 1) continue;
      const [one, comes] = ofBar(bar.key);
      if (!one) continue;
      const begin = Math.max(0, from), end = Math.min(1, to);
      const words = comes === undefined ? `${summary(one)}${bar.lent ? `, ${percent(bar.lent)} lent` : ''}` : whenComing(one, bar.begin, bar.end);
      track.append(h('button', {
        type: 'button', 'data-key': bar.key, 'aria-label': words, 'aria-pressed': String(pinned === bar.key), tabindex: '-1',
        class: `bar ${comes === undefined ? one.shape : 'coming'}${one.isSeat ? ' seat' : ''}${to > 1 ? ' endless' : ''}${from < 0 ? ' begun' : ''}`,
        style: { left: `${begin * 100}%`, width: `max(3px, ${(end - begin) * 100}%)`, top: `${bar.top}px`, height: `${bar.height}px` },
      }, bar.lent > 0 && h('i', { class: 'lent', style: { height: `${bar.lent * 100}%` } }), bar.height > 11 && (end - begin) * width > 40 ? h('span', { 'aria-hidden': 'true' }, `${comes === undefined ? '' : '↻ '}${one.name}${one.claimed && comes === undefined ? ` ${one.claimed}/${one.slots}` : ''}`) : null));
    }
    const words = row.node ? `${row.title}, ${known ? `${percent(held)} held` : 'no such node'}${more ? `; ${more} more in the view of reservations` : ''}` : row.title;
    return h('div', { class: `row${row.node ? '' : ' waiting'}${known ? '' : ' unknown'}`, role: 'listitem', 'aria-label': words, 'data-row': number },
      h('div', { class: 'label', title: words }, h('span', { class: 'name' }, row.title), row.node && h('span', { class: 'share' }, more > 0 && h('a', { href: `#/reservations?q=${encodeURIComponent(row.node)}` }, `+${more.toLocaleString()}`), ' ', known ? percent(held) : 'gone')), track);
  }

  /** @param {Window} one */
  function windowBar(one) {
    const from = Math.max(0, x(one.drains)), to = Math.min(1, x(one.ends)), begin = Math.max(from, x(one.starts));
    return h('button', {
      type: 'button', class: `bar window${one.drains > store.now() ? ' planned' : ''}`, 'data-key': WINDOW + one.name, 'aria-label': maintained(one), 'aria-pressed': String(pinned === WINDOW + one.name), tabindex: '-1',
      style: { left: `${from * 100}%`, width: `max(3px, ${(to - from) * 100}%)`, '--begin': `${(begin - from) / Math.max(1e-9, to - from) * 100}%` },
    }, (to - from) * width > 80 ? h('span', { 'aria-hidden': 'true' }, one.name) : null);
  }

  function ticks() {
    let distance = RANGES[range][2];
    width = axis.clientWidth;
    while (width && (distance / span()) * width < 76) distance *= 2;
    const offset = new Date(left()).getTimezoneOffset() * 60_000;
    const first = Math.ceil((left() - offset) / distance) * distance + offset;
    axis.replaceChildren();
    const marks = h('div', {});
    lines.replaceChildren(marks);
    const present = x(store.now());
    for (let moment = first; moment < left() + span(); moment += distance) {
      const midnight = new Date(moment).getHours() === 0 && new Date(moment).getMinutes() === 0;
      const where = { style: { left: `${x(moment) * 100}%` } };
      const isHidden = Math.abs(x(moment) - present) * width < 84 && x(moment) < present + 0.01; // Behind the word “now”.
      const text = range === 'month' ? date(moment) : range === 'week' || midnight ? day(moment) : clock(moment);
      const isCut = (1 - x(moment)) * width < 8 + 7 * text.length;
      if (!isHidden && !isCut) axis.append(h('span', where, text));
      marks.append(h('i', where));
    }
    if (present >= 0 && present <= 1) {
      axis.append(h('b', { style: { left: `${present * 100}%` } }, 'now'));
      marks.append(h('b', { style: { left: `${present * 100}%` } }));
    }
  }

  function redraw() {
    for (const button of toolbar.querySelectorAll('[data-range]')) button.ariaPressed = String(button.getAttribute('data-range') === range);
    ticks();
    list.reset(rows.length);
    const first = box.querySelector('.bar');
    if (first && !box.querySelector('.bar[tabindex="0"]')) first.setAttribute('tabindex', '0');
    if (store.isComplete && !rows.length) {
      box.querySelector('.empty')?.remove();
      box.append(h('p', { class: 'empty' }, sought ? `No node or reservation has “${sought}” in its name.` : 'There are no nodes yet.'));
    } else box.querySelector('.empty')?.remove();
    tell(pinned);
  }

  /** Show the details of a reservation. @param {string} key */
  function tell(key) {
    const planned = key.startsWith(WINDOW) ? store.windows.get(key.slice(WINDOW.length)) : undefined;
    const [held, comes] = ofBar(key);
    const one = planned ?? held;
    if (aside.dataset.key === key && one && aside.dataset.shown === JSON.stringify(one)) return;
    aside.dataset.key = key;
    aside.dataset.shown = JSON.stringify(one);
    aside.replaceChildren(planned ? maintenance(planned) : held ? details(held, comes) : h('p', { class: 'hint' }, store.reservations.size || !store.isComplete ? 'Point at a bar, or walk through them with the arrow keys, for owner, amount and end.' : 'Nothing is held. What reserver create makes shows up here.'));
  }

  const bar = (/** @type {Event} */ event) => /** @type {HTMLElement|null} */ (/** @type {HTMLElement} */ (event.target).closest('.bar'));
  box.addEventListener('pointerover', (event) => { const one = bar(event); if (one) tell(one.dataset.key ?? ''); });
  box.addEventListener('focusin', (event) => { const one = bar(event); if (one) tell(one.dataset.key ?? ''); });
  box.addEventListener('click', (event) => {
    const one = bar(event);
    pinned = one && pinned !== one.dataset.key ? one.dataset.key ?? '' : '';
    go({ id: pinned });
    for (const each of box.querySelectorAll('.bar')) each.ariaPressed = String(each.getAttribute('data-key') === pinned);
    tell(pinned);
  });
  box.addEventListener('keydown', (event) => {
    const one = bar(event);
    if (!one || !event.key.startsWith('Arrow')) return;
    event.preventDefault();
    const next = event.key === 'ArrowLeft' || event.key === 'ArrowRight' ? beside(one, event.key === 'ArrowRight') : below(one, event.key === 'ArrowDown');
    if (!next) return;
    one.tabIndex = -1;
    next.tabIndex = 0;
    next.focus({ preventScroll: true });
  });

  /** @param {Element|null|undefined} row @returns {HTMLElement[]} */
  const barsOf = (row) => [...(row?.querySelectorAll('.bar') ?? [])].map((each) => /** @type {HTMLElement} */ (each));

  /** @param {HTMLElement} one @param {boolean} later */
  function beside(one, later) {
    const bars = barsOf(one.parentElement).sort((a, b) => a.offsetLeft - b.offsetLeft || a.offsetTop - b.offsetTop);
    return bars[bars.indexOf(one) + (later ? 1 : -1)];
  }

  /** Whether a node has a visible bar, including bars of maintenance windows. @param {string} node */
  const isBusy = (node) => layout(node).bars.some((each) => x(each.end) > 0 && x(each.begin) < 1) || store.nodes.get(node)?.windows.some((name) => store.windows.has(name));

  /** @param {HTMLElement} one @param {boolean} down */
  function below(one, down) {
    let number = Number(one.closest('.row')?.getAttribute('data-row'));
    for (let tries = 0; tries < 500; tries++) {
      number += down ? 1 : -1;
      if (!rows[number]) return undefined;
      if (rows[number].node && !isBusy(rows[number].node ?? '')) continue;
      const bars = barsOf(list.reveal(number));
      if (bars.length) return bars.sort((a, b) => Math.abs(a.offsetLeft - one.offsetLeft) - Math.abs(b.offsetLeft - one.offsetLeft))[0];
    }
    return undefined;
  }

  let due = 0;
  store.onChange(() => {
    layouts.clear();
    due ||= setTimeout(() => { due = 0; arrange(); }, store.isComplete ? 200 : 50);
  }, signal);
  const tick = setInterval(() => { if (!at) redraw(); }, 30_000);
  signal.addEventListener('abort', () => { clearInterval(tick); clearTimeout(due); });
  addEventListener('resize', redraw, { signal });
  arrange();
  const [chosen] = ofBar(pinned);
  if (chosen) say(summary(chosen));
}
