/** One reservation: its details, and the commands that change it. */

import { lent } from './bars.js';
import { heldOn, nodes, now } from './store.js';
import { command, h, quoted } from './dom.js';
import { amount, endsIn, time } from './format.js';

/** @import {Reservation, Window} from '../documents' */

/** The glyph and the words for each drawing style of a reservation. @type {Record<string, [string, string]>} */
export const SHAPES = {
  held: ['■', 'In force'],
  noroom: ['▨', 'No room on its node'],
  placeless: ['┄', 'Waits for room or quota'],
  later: ['□', 'Not started'],
  claimed: ['✓', 'Claimed'],
  over: ['·', 'Over'],
  broken: ['!', 'Cannot be in force'],
};

/** The state in plain words. @param {Reservation} one */
export function stateOf({ shape, words }) {
  if (shape === 'placeless') return words.includes('over quota') ? 'Waits for its quota' : 'Waits for room';
  return (SHAPES[shape] ?? SHAPES.broken)[1];
}

/** @param {Window} one */
export const maintained = (one) => `${one.name}, maintenance: emptied from ${time(one.drains)}, begins ${time(one.starts)}, ends ${time(one.ends)}${one.progress ? `; ${one.progress}` : ''}`;

/** @param {Window} one */
export function maintenance(one) {
  /** @type {[string, string][]} */
  const rows = [['Emptied from', time(one.drains)], ['Begins', time(one.starts)], ['Ends', time(one.ends)], ['Nodes', one.progress]];
  return h('section', { class: 'details', 'aria-label': `Maintenance window ${one.name}` },
    h('h2', {}, `${one.name} `, h('span', { class: 'tag' }, 'maintenance window')),
    h('dl', {}, ...rows.flatMap(([name, value]) => (value ? [h('dt', {}, name), h('dd', {}, value)] : []))),
    h('div', { class: 'commands' }, command(`kubectl describe maintenancewindow ${quoted(one.name)}`)));
}

/** A countdown, which main.js keeps current. @param {number|null|undefined} ends */
export function countdown(ends) {
  if (ends === null || ends === undefined) return h('span', {}, 'no end');
  return h('time', { 'data-ends': ends, datetime: new Date(ends).toISOString(), title: time(ends) }, endsIn(ends, now()));
}

/** @param {Reservation} one */
export function summary(one) {
  const where = one.nodes.map(([node, slots]) => (slots > 1 ? `${node} ×${slots}` : node)).join(', ');
  const claimed = one.claimed ? `, ${one.claimed} of ${one.slots} claimed` : '';
  return `${one.name} for ${one.owners || 'nobody'}: ${one.holds}${one.slots > 1 ? ` ×${one.slots}` : ''}${where ? ` on ${where}` : ''}, ${stateOf(one).toLowerCase()}${claimed}, ends ${one.ends ? time(one.ends) : 'never'}`;
}

/** @param {Reservation} one @param {number} begin @param {number} end */
export const whenComing = (one, begin, end) => `${one.name} for ${one.owners || 'nobody'}, recurs: ${time(begin)}, ends ${time(end)}${one.nodes.length ? '' : ', its node is chosen then'}`;

/** The amounts that pods borrow from it, by node. @param {Reservation} one */
function borrowed(one) {
  if (typeof one.lends !== 'number') return '';
  const each = one.nodes.flatMap(([name]) => {
    const node = nodes.get(name);
    const part = Object.entries(node ? lent(node, heldOn(name)).get(one.id) ?? {} : {});
    return part.length ? [`${part.map(([resource, taken]) => (resource === 'cpu' || /memory|storage/.test(resource) ? amount(resource, taken) : `${resource} ${taken}`)).join(', ')} on ${name}`] : [];
  });
  return `${each.join('; ') || 'nothing now'}, to pods of a priority below ${one.lends}`;
}

/** @param {Reservation} one @param {number} [comes] the start of the selected occurrence of a recurring reservation */
export function details(one, comes) {
  const [glyph] = SHAPES[one.shape] ?? SHAPES.broken;
  /** @param {string} name @param {any} value */
  const row = (name, value) => value ? [h('dt', {}, name), h('dd', {}, value)] : [];
  const isPast = one.shape === 'over' && !one.starts && one.words !== 'Expired';
  return h('section', { class: 'details', 'aria-label': `Reservation ${one.name}` },
    h('h2', {}, h('span', { class: `mark ${one.shape}`, 'aria-hidden': 'true' }, glyph), ` ${one.name}`, one.isSeat && h('span', { class: 'tag' }, 'seat of a move'), comes && h('span', { class: 'tag' }, `recurs ${time(comes)}`)),
    h('dl', {},
      row('State', `${stateOf(one)}${one.words ? ` (${one.words})` : ''}${one.why ? `: ${one.why}` : ''}`),
      row('For', one.owners),
      row('Holds', `${one.holds}${one.slots > 1 ? `, ${one.slots} slots` : ''}`),
      row('Claimed', one.claimed ? `${one.claimed} of ${one.slots}: ${one.claims.join(', ')}${one.claimed > one.claims.length ? ', …' : ''}` : ''),
      row('Lent', borrowed(one)),
      row('Nodes', one.nodes.map(([node, slots]) => (slots > 1 ? `${node} ×${slots}` : node)).join(', ')),
      row('From', time(one.starts ?? one.since)),
      row(isPast ? 'Ended' : 'Until', isPast ? time(one.ends) : h('span', {}, one.ends ? `${time(one.ends)} (` : '', countdown(one.ends), one.ends ? ')' : '')),
      row('Every', one.every), row('Then', (one.coming ?? []).map(([begin, end]) => `${time(begin)} to ${time(end)}`).join('; ')),
      row('Why', one.description), row('By', one.author), row('Id', h('code', {}, one.id))),
    !isPast && h('div', { class: 'commands' },
      command(one.every ? `reserver skip ${quoted(one.id)}` : `reserver extend ${quoted(one.id)} --ttl 2h`),
      command(`reserver release ${quoted(one.id)}`)));
}
