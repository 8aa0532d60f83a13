/** The bars of a node: which it has, and where each stands in its row. Pure. */

import { dominant } from './format.js';

/** @import {Amounts, Reservation} from '../documents' */

/** @typedef {{key: string, top: number, height: number, begin: number, end: number, isOver: boolean}} Bar */

const ROOM = 40; // Pixels: the height of a whole node.
const LEAST = 5; // Pixels: a bar that nobody can hit shows nothing.
const MOST = 200; // Of a row: with more nobody can tell them apart.

/** The bars of a node, of which none covers another while there is room, and how many small ones are left out.
 * @param {string} node @param {[string, Reservation][]} held @param {Amounts} [whole] what the node has
 * @returns {{bars: Bar[], unseen: number}} */
export function layered(node, held, whole) {
  const all = held.filter(([, one]) => one.shape !== 'claimed').map(([key, one]) => {
    const slots = one.nodes.find(([name]) => name === node)?.[1] ?? 0;
    const height = Math.max(LEAST, Math.min(1, dominant(one.amounts, whole) * slots) * ROOM);
    return { key, top: 0, height, begin: one.starts ?? one.since ?? 0, end: one.ends ?? Infinity, isOver: one.shape === 'over' };
  });
  const bars = all.length <= MOST ? all : all.sort((a, b) => Number(a.isOver) - Number(b.isOver) || b.height - a.height || a.begin - b.begin).slice(0, MOST);
  bars.sort((a, b) => a.begin - b.begin || (a.key < b.key ? -1 : 1));
  /** @type {Bar[]} */ let open = [];
  for (const bar of bars) {
    open = open.filter((other) => other.end > bar.begin).sort((a, b) => a.top - b.top);
    let top = 0;
    for (const other of open) if (top + bar.height > other.top && top < other.top + other.height) top = other.top + other.height;
    bar.top = Math.min(top, Math.max(0, ROOM - bar.height)); // What holds more than there is overlaps.
    open.push(bar);
  }
  return { bars, unseen: all.length - bars.length };
}
