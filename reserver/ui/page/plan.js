/** A plan: moves in order with their progress, and nodes before and after. */

import * as store from './store.js';
import { command, fill, h, quoted, table } from './dom.js';
import { count, parse } from './format.js';

/** @import {Move, NodeUse, Plan, PlannedMove} from '../documents' */

/** @type {Record<string, string>} */
const GOALS = {
  'make-room': 'Make room for pods that wait',
  defragment: 'Empty as many nodes as possible',
  policy: 'Follow the policy',
};
/** The meaning of a plan without moves, by goal. @type {Record<string, string>} */
const NOTHING = {
  'make-room': 'No move would make room for a pod that waits.',
  defragment: 'No further node can be emptied.',
  policy: 'The policy finds nothing to move.',
};
const ENDED = ['Succeeded', 'Failed', 'Aborted'];
const MOST = 200;

/** @param {HTMLElement} main @param {import('./main.js').Place} place */
export function view(main, { query, signal, go }) {
  const live = h('div', {});
  const answer = h('div', { class: 'answer', 'aria-live': 'polite' });
  /** @type {Plan|null} */ let found = null;
  const buttons = Object.entries(GOALS).map(([name, title]) => h('button', { type: 'button', 'data-goal': name, onclick: () => plan(name) }, title));
  main.append(
    h('section', {}, h('h2', {}, 'Moves'), live),
    h('section', {}, h('h2', {}, 'Plan'), h('p', {}, 'A plan changes nothing. To carry it out, copy its command; each move then shows here how far it is.'),
      h('div', { class: 'toolbar' }, ...buttons), answer));

  /** @param {string} goal */
  async function plan(goal) {
    go({ goal });
    for (const each of buttons) each.ariaPressed = String(each.dataset.goal === goal);
    found = null;
    fill(answer, h('p', { class: 'empty' }, 'Reading the cluster, and planning …'));
    try {
      found = await store.ask('plan', { goal }, signal);
      fill(answer, shown(found));
    } catch (/** @type {any} */ error) {
      if (!signal.aborted) fill(answer, h('p', { class: 'problem', role: 'alert' }, error.message, goal === 'policy' && ': start the page with reserver ui --policy-config-file FILE'));
    }
  }

  function drawMoves() {
    const moves = [...store.moves.values()].sort((a, b) => Number(isOver(a)) - Number(isOver(b)) || b.made.localeCompare(a.made) || a.name.localeCompare(b.name));
    const text = JSON.stringify([moves, store.status.get('moves')]);
    if (live.dataset.shown === text) return;
    live.dataset.shown = text;
    fill(live, moves.length ? table(['Pod', 'From', 'To', 'Phase', 'Waits for'], moves.slice(0, MOST).map((each) => [`${each.namespace}/${each.pod}`, each.from || '–', each.to || '–', ...progress(each)]))
      : h('p', { class: 'empty' }, store.status.get('moves')?.problem || 'No pod moves now.'),
    moves.length > MOST && h('p', {}, `and ${moves.length - MOST} more: reserver moves -A`));
    for (const cell of answer.querySelectorAll('[data-pod]')) fill(/** @type {HTMLElement} */ (cell), sinceThen(cell.getAttribute('data-pod') ?? ''));
  }

  store.onChange(drawMoves, signal);
  drawMoves();
  if (GOALS[query.get('goal') ?? '']) plan(String(query.get('goal')));
}

/** @param {Move} one */
const isOver = (one) => ENDED.includes(one.phase);

/** The phase of a move, and the reason for waiting. @param {Move} one */
function progress(one) {
  const [mark, kind] = one.phase === 'Succeeded' ? ['✓', 'good'] : isOver(one) ? ['✗', 'bad'] : [one.paused ? '‖' : '→', ''];
  return [h('span', { class: `short ${kind}` }, `${mark} ${one.phase || 'New'}${one.paused ? ', paused' : ''}`), [one.reason, one.message].filter(Boolean).join(': ') || '–'];
}

/** The progress of a planned move: its latest PodMove. @param {string} pod */
function sinceThen(pod) {
  const [one] = [...store.moves.values()].filter((each) => `${each.namespace}/${each.pod}` === pod).sort((a, b) => b.made.localeCompare(a.made));
  if (!one) return 'planned';
  const [phase, why] = progress(one);
  return [phase, ' ', isOver(one) && one.phase === 'Succeeded' ? '' : why];
}

/** @param {Plan} found */
function shown(found) {
  const { moves, emptied, landings, kept, notes, nodes } = found;
  const changed = nodes.filter((each) => JSON.stringify(each.before) !== JSON.stringify(each.after));
  const room = landings.map((each) => `${each.namespace}/${each.pod} on ${each.node}`).join(', ');
  return [
    h('p', { class: 'summary' }, moves.length ? '' : NOTHING[found.goal], moves.length > 0 && `${count(moves.length, 'move')}${emptied.length ? `; empty afterwards: ${emptied.join(', ')}` : ''}${room ? `; room for ${room}` : ''}; cost ${found.cost}${found.gainPerMove === null ? '' : `, gain per move ${found.gainPerMove}`}`),
    ...notes.map((each) => h('p', {}, each)),
    moves.length > 0 && [
      table(['Pod', 'From', 'To', 'Why', 'Now'], moves.slice(0, MOST).map(plannedRow)),
      moves.length > MOST && h('p', {}, `and ${moves.length - MOST} more moves, which the command prints`),
      carriedOut(found)],
    changed.length > 0 && [
      h('h3', {}, 'Nodes before and after'),
      h('ul', { class: 'legend' }, ...['used', 'held'].map((name) => h('li', {}, h('span', { class: `swatch ${name === 'held' ? 'reserved' : name}`, 'aria-hidden': 'true' }), name === 'used' ? 'asked for by pods' : 'held by reservations'))),
      table(['Node', 'CPU before', 'CPU after', 'Memory before', 'Memory after'], changed.slice(0, MOST).map((each) =>
        [each.node, ...['cpu', 'memory'].flatMap((name) => [bar(each, each.before, name), bar(each, each.after, name)])]))],
    kept.length > 0 && h('details', { open: !moves.length }, h('summary', {}, `${count(kept.length + found.moreKept, 'pod')} ${kept.length + found.moreKept === 1 ? 'stays' : 'stay'}`),
      table(['Pod', 'Node', 'Why'], kept.slice(0, MOST).map((each) => [`${each.namespace}/${each.pod}`, each.node || 'pending', each.why]))),
  ];
}

/** @param {PlannedMove} one @param {number} at */
function plannedRow(one, at) {
  const pod = `${one.namespace}/${one.pod}`;
  return [`${at + 1}. ${pod}`, one.from, one.to || 'where it fits', `${one.strategy}: ${one.reason}${one.gain === null ? '' : ` (gain ${one.gain})`}${one.cost > 1 ? ` (cost ${one.cost})` : ''}`, h('span', { 'data-pod': pod }, ...[sinceThen(pod)].flat())];
}

/** The command that executes a plan, with PodMoves if they are enabled. @param {Plan} found */
function carriedOut({ goal, policy }) {
  if (goal === 'defragment') return command('reserver rebalance run --defragment --mode reserve-first');
  const what = goal === 'policy' ? `--policy-config-file ${quoted(policy)}` : '--make-room';
  return command(`reserver rebalance run ${what}${store.status.get('moves')?.problem ? '' : ' --mode reserve-first'}`);
}

/** @param {NodeUse} node @param {Record<string, string>} amounts @param {string} name */
function bar(node, amounts, name) {
  const whole = parse(node.allocatable[name]) || 1;
  const part = (/** @type {string|undefined} */ text) => `${Math.min(100, parse(text) / whole * 100)}%`;
  const meter = h('span', { class: 'meter', 'aria-hidden': 'true' },
    h('i', { class: 'used', style: { width: part(amounts[name]) } }), h('i', { class: 'held', style: { width: part(node.held[name]) } }));
  return h('span', { class: 'short', title: `${amounts[name] ?? 0} of ${node.allocatable[name] ?? 0}, ${node.held[name] ?? 0} held` }, meter, ` ${amounts[name] ?? 0}`);
}
