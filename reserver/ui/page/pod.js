/** A pod: the reason why it is pending, the holds in its way, and ways to make room. */

import { ask, repeat, reservations } from './store.js';
import { command, fill, h, quoted, table } from './dom.js';
import { duration } from './format.js';

/** @import {Explanation, Hold} from '../documents' */

/** @param {HTMLElement} main @param {import('./main.js').Place} place */
export function view(main, { rest, signal }) {
  const input = /** @type {HTMLInputElement} */ (h('input', {
    name: 'pod', value: rest, placeholder: 'namespace/name', 'aria-label': 'Pod, as namespace/name', list: 'waiting',
    required: true, pattern: '[^/]+/[^/]+', maxlength: 520, autocomplete: 'off' }));
  const submit = (/** @type {Event} */ event) => { event.preventDefault(); location.hash = link(input.value.trim()); };
  const waiting = h('div', {});
  const names = h('datalist', { id: 'waiting' });
  const answer = h('div', { class: 'answer', 'aria-live': 'polite' });
  main.append(h('form', { class: 'toolbar', onsubmit: submit }, h('label', {}, 'Pod ', input), names, h('button', {}, 'Explain')),
    answer, h('section', {}, h('h2', {}, 'Pods that wait for held room'), waiting));

  async function list() {
    try {
      const { count, pods } = await ask('waiting', {}, signal);
      fill(names, pods.map((name) => h('option', { value: name })));
      fill(waiting, count ? h('ul', { class: 'plain' }, ...pods.map((name) => h('li', {}, h('a', { href: link(name) }, name))),
        count > pods.length && h('li', {}, `and ${count - pods.length} more`)) : h('p', { class: 'empty' }, 'No pod waits for room that is held. Write the name of any pod above.'));
    } catch (error) { problem(waiting, error); }
  }

  async function explain() {
    try {
      fill(answer, shown(await ask('explain', { pod: rest }, signal)));
    } catch (error) { problem(answer, error); }
  }

  /** @param {HTMLElement} where @param {any} error */
  function problem(where, error) {
    if (!signal.aborted) fill(where, h('p', { class: 'problem', role: 'alert' }, error.message));
  }

  repeat(list, 5000, signal);
  if (rest) repeat(explain, 5000, signal);
}

/** @param {string} name */
const link = (name) => `#/pod/${name.split('/').map(encodeURIComponent).join('/')}`;

/** @param {Explanation} found */
function shown(found) {
  const first = found.in_the_way.find((each) => !reservations.get(key(each.reservation))?.isSeat); // Releasing a seat would fail a move.
  return h('section', { class: 'details' },
    h('h2', {}, found.pod), h('p', { class: 'summary' }, found.summary),
    found.exempt && h('p', {}, 'Its priority is so high that no hold keeps it from anything.'),
    found.reasons.length > 0 && [
      h('h3', {}, 'Why not'), table(['Reason', 'Nodes', 'Such as'], found.reasons.map((each) => [each.reason, each.nodes, each.examples.join(', ')]))],
    found.reasons.length > 0 && !found.available && [
      h('h3', {}, 'What would make room'),
      h('div', { class: 'commands' }, command('reserver rebalance plan --make-room'), first && command(`reserver release ${quoted(first.reservation)}`),
        h('a', { href: '#/plan?goal=make-room' }, 'See that plan'))],
    holds('In its way', found.in_the_way, found.more_in_the_way), holds('Held for it', found.owns, 0),
    found.pending.length > 0 && h('p', {}, 'Not held for it yet: ', found.pending.map((each) => `${each.reservation} (${each.message})`).join('; ')));
}

/** @param {string} title @param {Hold[]} found @param {number} more */
function holds(title, found, more) {
  if (!found.length) return null;
  const rows = found.map((each) => [
    h('a', { href: `#/reservations?id=${encodeURIComponent(key(each.reservation))}` }, each.reservation), each.node,
    each.seconds_left === null ? 'no end' : duration(each.seconds_left)]);
  return [h('h3', {}, title), table(['Reservation', 'Node', 'Ends in'], rows), more > 0 && h('p', {}, `and ${more} more`)];
}

/** The key of a reservation by its name in an explanation. @param {string} name */
const key = (name) => (reservations.has(name) ? name : [...reservations.keys()].find((each) => each.endsWith(name)) ?? name);
