/** The bars of a node: which it has, and where each stands in its row. Pure. */

import { dominant } from './format.js';

/** @import {Amounts, Node, Reservation} from '../documents' */

/** @typedef {{key: string, top: number, height: number, begin: number, end: number, rank: number, lent: number}} Bar `rank`: of what is in force, what recurs, what is over; `lent`: which share of it */

const [NOW, COMING, OVER] = [0, 1, 2];

const ROOM = 40; // Pixels: the height of a whole node.
const LEAST = 5; // Pixels: a bar that nobody can hit shows nothing.
const MOST = 200; // Of a row: with more nobody can tell them apart.

/** The bars of a node, of which none covers another while there is room, and how many small ones are left out.
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
    bar.top = Math.min(top, Math.max(0, ROOM - bar.height)); // What holds more than there is overlaps.
    open.push(bar);
  }
  return { bars, unseen: counted(all) - counted(bars) };
}

/** How many reservations that is. @param {Bar[]} bars */
const counted = (bars) => bars.filter(({ rank }) => rank !== COMING).length;

/** The bars of what has no node: each reservation has a lane.
 * @param {[string, Reservation][]} waiting
 * @returns {{bars: Bar[], unseen: number}} */
export function laned(waiting) {
  const bars = waiting.slice(0, MOST).flatMap(([key, one], at) => spans(key, one).map((span) => ({ ...span, top: (at % 4) * 8, height: 7 })));
  return { bars, unseen: Math.max(0, waiting.length - MOST) };
}

/** The times of a reservation, a bar each; what is claimed holds nothing until it recurs.
 * @param {string} key @param {Reservation} one
 * @returns {Bar[]} */
function spans(key, one) {
  const plain = { top: 0, height: LEAST, lent: 0 };
  const present = { ...plain, key, begin: one.starts ?? one.since ?? 0, end: one.ends ?? Infinity, rank: one.shape === 'over' ? OVER : NOW };
  const coming = (one.coming ?? []).map(([begin, end]) => ({ ...plain, key: `${key} ${begin}`, begin, end, rank: COMING }));
  return one.shape === 'claimed' ? coming : [present, ...coming];
}

/** What pods borrow of each hold of a node: of those that lend to the least important first, as Reserver counts it.
 * @param {Node} node @param {[string, Reservation][]} held
 * @returns {Map<string, Amounts>} */
export function lent(node, held) {
  /** @type {Map<string, Amounts>} */ const found = new Map();
  const left = { ...node.borrowed };
  const lenders = held.filter(([, one]) => typeof one.lends === 'number' && one.shape === 'held');
  for (const [key, one] of lenders.sort(([a, { lends: x }], [b, { lends: y }]) => Number(x) - Number(y) || (a < b ? -1 : 1))) {
    // Claimed slots lend nothing; where there are several nodes, none says on which of them these are.
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
