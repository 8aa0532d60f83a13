/** A pod: why it waits, which holds stand in its way and until when, and what would make room. */

import { ask, repeat, reservations } from './store.js';
import { command, fill, h, quoted } from './dom.js';
import { duration } from './format.js';

/** @param {HTMLElement} main @param {import('./main.js').Place} place */
export function view(main, { rest, signal }) {
  const input = /** @type {HTMLInputElement} */ (h('input', { name: 'pod', value: rest, placeholder: 'namespace/name', 'aria-label': 'Pod, as namespace/name', list: 'waiting', required: true, pattern: '[^/]+/[^/]+', maxlength: 520, autocomplete: 'off' }));
  const waiting = h('ul', { class: 'waiting' });
  const names = h('datalist', { id: 'waiting' });
  const answer = h('div', { class: 'answer', 'aria-live': 'polite' });
  main.append(
    h('form', { class: 'toolbar', onsubmit: (/** @type {Event} */ e) => { e.preventDefault(); location.hash = link(input.value.trim()); } }, h('label', {}, 'Pod ', input), names, h('button', {}, 'Explain')),
    answer, h('section', {}, h('h2', {}, 'Pods that wait because of what is held'), waiting));

  const link = (/** @type {string} */ name) => `#/pod/${name.split('/').map(encodeURIComponent).join('/')}`;

  async function list() {
    try {
      const { count, pods } = await ask('waiting', {}, signal);
      names.replaceChildren(...pods.map((/** @type {string} */ name) => h('option', { value: name })));
      fill(waiting, pods.map((/** @type {string} */ name) => h('li', {}, h('a', { href: link(name) }, name))),
        count > pods.length && h('li', {}, `and ${count - pods.length} more`), !count && h('li', { class: 'empty' }, 'None waits.'));
    } catch (error) { problem(waiting, error); }
  }

  async function explain() {
    if (!rest) return;
    try {
      const found = await ask('explain', { pod: rest }, signal);
      answer.replaceChildren(shown(found));
    } catch (error) { problem(answer, error); }
  }

  /** @param {HTMLElement} where @param {any} error */
  function problem(where, error) {
    if (!signal.aborted) where.replaceChildren(h('p', { class: 'problem', role: 'alert' }, error.message));
  }

  repeat(list, 5000, signal);
  repeat(explain, 5000, signal);
}

/** @param {any} found */
function shown(found) {
  const holds = (/** @type {string} */ title, /** @type {any[]} */ rows, more = 0) => rows?.length ? [h('h3', {}, title), h('table', {},
    h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Reservation'), h('th', { scope: 'col' }, 'Node'), h('th', { scope: 'col' }, 'Ends in'))),
    h('tbody', {}, ...rows.map((each) => h('tr', {},
      h('td', {}, h('a', { href: `#/reservations?id=${encodeURIComponent(key(each.reservation))}` }, each.reservation)), h('td', {}, each.node),
      h('td', {}, each.seconds_left === null || each.seconds_left === undefined ? 'no end' : duration(each.seconds_left)))))), more ? h('p', {}, `and ${more} more`) : null] : [];
  const first = found.in_the_way?.[0];
  return h('section', { class: 'details' },
    h('h2', {}, found.pod), h('p', { class: 'summary' }, found.summary),
    found.exempt && h('p', {}, 'Its priority is so high that no hold keeps it from anything.'),
    found.reasons?.length ? h('table', {},
      h('caption', {}, 'Why not'), h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Nodes'), h('th', { scope: 'col' }, 'Reason'), h('th', { scope: 'col' }, 'Such as'))),
      h('tbody', {}, ...found.reasons.map((/** @type {any} */ each) => h('tr', {}, h('td', {}, each.nodes), h('td', {}, each.reason), h('td', {}, each.examples.join(', ')))))) : null,
    ...holds('In its way', found.in_the_way, found.more_in_the_way), ...holds('Held for it', found.owns),
    found.pending?.length ? h('p', {}, 'Not held for it yet: ', found.pending.map((/** @type {any} */ each) => `${each.reservation} (${each.message})`).join('; ')) : null,
    first || found.reasons?.length ? h('div', { class: 'commands' }, h('h3', {}, 'What would make room'),
      command('reserver rebalance plan --make-room'), first && command(`reserver release ${quoted(first.reservation)}`)) : null);
}

/** The key of a reservation by what an explanation calls it. @param {string} name */
const key = (name) => (reservations.has(name) ? name : [...reservations.keys()].find((each) => each.endsWith(name)) ?? name);
