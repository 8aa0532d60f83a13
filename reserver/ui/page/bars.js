/** The bars of a node, and their positions in its row. No side effects. */

import { dominant } from './format.js';

/** @import {Amounts, Node, Reservation} from '../documents' */

/** @typedef {{key: string, top: number, height: number, begin: number, end: number, rank: number, lent: number}} Bar `rank`: in force, recurring or ended; `lent`: the borrowed share */

const [NOW, COMING, OVER] = [0, 1, 2];

const ROOM = 40; // Pixels: the height of a whole node.
const LEAST = 5; // Pixels: a smaller bar cannot be clicked.
const MOST = 200; // Bars of a row: more cannot be distinguished.

/** The bars of a node, without overlap while there is room, and the number of small bars left out.
 * @param {string} node @param {[string, Reservation][]} held @param {Node} [known]
 * @returns {{bars: Bar[], unseen: number}} */
export function layered(node, held, known) {
  const whole = known?.allocatable;
  const loans = known ? lent(known, held) : new Map();
  const all = held.flatMap(([key, one]) => {
    const slots = one.nodes.find(([name]) => name === node)?.[1] ?? 0;
    const share = dominant(one.amounts, whole) * slots;
    const height = Math.max(LEAST, Math.min(1, share) * ROOM);
    const part = share && dominant(loans.get(key) ?? {}, whole) / share;
    return spans(key, one).map((span) => ({ ...span, height, lent: span.rank === NOW ? Math.min(1, part) : 0 }));
  });
  const bars = all.length <= MOST ? all : all.sort((a, b) => a.rank - b.rank || b.height - a.height || a.begin - b.begin).slice(0, MOST);
  bars.sort((a, b) => a.begin - b.begin || (a.key < b.key ? -1 : 1));
  /** @type {Bar[]} */ let open = [];
  for (const bar of bars) {
    open = open.filter((other) => other.end > bar.begin).sort((a, b) => a.top - b.top);
    let top = 0;
    for (const other of open) if (top + bar.height > other.top && top < other.top + other.height) top = other.top + other.height;
    bar.top = Math.min(top, Math.max(0, ROOM - bar.height)); // Holds beyond the node's capacity overlap.
    open.push(bar);
  }
  return { bars, unseen: counted(all) - counted(bars) };
}

/** The number of reservations of bars. @param {Bar[]} bars */
const counted = (bars) => bars.filter(({ rank }) => rank !== COMING).length;

/** The bars of reservations without a node, each in its own lane.
 * @param {[string, Reservation][]} waiting
 * @returns {{bars: Bar[], unseen: number}} */
export function laned(waiting) {
  const bars = waiting.slice(0, MOST).flatMap(([key, one], at) => spans(key, one).map((span) => ({ ...span, top: (at % 4) * 8, height: 7 })));
  return { bars, unseen: Math.max(0, waiting.length - MOST) };
}

/** The occurrences of a reservation, one bar each; a claimed one holds nothing until its next occurrence.
 * @param {string} key @param {Reservation} one
 * @returns {Bar[]} */
function spans(key, one) {
  const plain = { top: 0, height: LEAST, lent: 0 };
  const present = { ...plain, key, begin: one.starts ?? one.since ?? 0, end: one.ends ?? Infinity, rank: one.shape === 'over' ? OVER : NOW };
  const coming = (one.coming ?? []).map(([begin, end]) => ({ ...plain, key: `${key} ${begin}`, begin, end, rank: COMING }));
  return one.shape === 'claimed' ? coming : [present, ...coming];
}

/** The borrowed amounts of each hold of a node: holds for the lowest priorities lend first, as in Reserver.
 * @param {Node} node @param {[string, Reservation][]} held
 * @returns {Map<string, Amounts>} */
export function lent(node, held) {
  /** @type {Map<string, Amounts>} */ const found = new Map();
  const left = { ...node.borrowed };
  const lenders = held.filter(([, one]) => typeof one.lends === 'number' && one.shape === 'held');
  for (const [key, one] of lenders.sort(([a, { lends: x }], [b, { lends: y }]) => Number(x) - Number(y) || (a < b ? -1 : 1))) {
    // Claimed slots lend nothing; with several nodes the document does not have their nodes.
    const slots = Math.min(one.nodes.find(([name]) => name === node.name)?.[1] ?? 0, one.slots - one.claimed);
    for (const [resource, amount] of Object.entries(one.amounts)) {
      const taken = Math.min(left[resource] ?? 0, amount * slots);
      if (taken <= 0) continue;
      left[resource] -= taken;
      found.set(key, { ...found.get(key), [resource]: taken });
    }
  }
  return found;
}
