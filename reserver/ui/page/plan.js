/** A plan: moves in order, nodes before and after; and the moves under way. */

import * as store from './store.js';
import { command, h, quoted } from './dom.js';

/** @type {Record<string, [string, string]>} */
const GOALS = {
  'make-room': ['Make room for pods that wait', '--make-room'],
  defragment: ['Empty as many nodes as possible', '--defragment'],
  policy: ['Follow the policy', '--policy-config-file'],
};

/** @param {HTMLElement} main @param {import('./main.js').Place} place */
export function view(main, { query, signal, go }) {
  const live = h('div', {});
  const answer = h('div', { class: 'answer', 'aria-live': 'polite' });
  main.append(
    h('section', {}, h('h2', {}, 'Moves under way'), live),
    h('section', {}, h('h2', {}, 'Plan'), h('p', {}, 'A plan changes nothing. To carry it out, copy its command.'),
      h('div', { class: 'toolbar' }, ...Object.entries(GOALS).map(([name, [title]]) => h('button', { type: 'button', onclick: () => plan(name) }, title))), answer));

  /** @param {string} goal */
  async function plan(goal) {
    go({ goal });
    answer.replaceChildren(h('p', { class: 'empty' }, 'Reading the cluster, and planning …'));
    try {
      const found = await store.ask('plan', { goal }, signal);
      answer.replaceChildren(...shown(found));
    } catch (/** @type {any} */ error) {
      if (!signal.aborted) answer.replaceChildren(h('p', { class: 'problem', role: 'alert' }, error.message, goal === 'policy' && ': start the page with reserver ui --policy-config-file FILE'));
    }
  }

  function drawMoves() {
    const found = [...store.moves.values()].sort((a, b) => b.made.localeCompare(a.made));
    const said = JSON.stringify(found);
    if (live.dataset.shown === said) return;
    live.dataset.shown = said;
    live.replaceChildren(found.length ? table(['Pod', 'From', 'To', 'Phase', 'Waits for'], found.slice(0, 200).map((each) =>
      [`${each.namespace}/${each.pod}`, each.from || '–', each.to || '–', `${each.phase || 'New'}${each.paused ? ', paused' : ''}`, [each.reason, each.message].filter(Boolean).join(': ') || '–'])) : h('p', { class: 'empty' }, store.status.get('moves')?.problem || 'No pod moves now.'));
    if (found.length > 200) live.append(h('p', {}, `and ${found.length - 200} more: reserver moves -A`));
  }

  store.onChange(drawMoves, signal);
  drawMoves();
  if (GOALS[query.get('goal') ?? '']) plan(String(query.get('goal')));
}

/** @param {string[]} titles @param {any[][]} rows */
function table(titles, rows) {
  return h('div', { class: 'wide', tabindex: '0' }, h('table', {}, h('thead', {}, h('tr', {}, ...titles.map((each) => h('th', { scope: 'col' }, each)))),
    h('tbody', {}, ...rows.map((row) => h('tr', {}, ...row.map((each) => h('td', {}, each)))))));
}

/** @param {any} found */
function shown(found) {
  const changed = found.nodes.filter((/** @type {any} */ each) => JSON.stringify(each.before) !== JSON.stringify(each.after));
  const flag = GOALS[found.goal][1];
  return [
    h('p', { class: 'summary' }, `${found.moves.length} moves${found.emptied.length ? `; empty afterwards: ${found.emptied.join(', ')}` : ''}${found.landings.length ? `; room for ${found.landings.map((/** @type {any} */ each) => `${each.namespace}/${each.pod} on ${each.node}`).join(', ')}` : ''}`),
    ...found.notes.map((/** @type {string} */ each) => h('p', {}, each)),
    found.moves.length ? table(['', 'Pod', 'From', 'To', 'Why'], found.moves.slice(0, 500).map((/** @type {any} */ each, /** @type {number} */ at) => [at + 1, `${each.namespace}/${each.pod}`, each.from, each.to || '–', `${each.strategy}: ${each.reason}`])) : '',
    changed.length ? table(['Node', 'CPU before', 'CPU after', 'Memory before', 'Memory after'], changed.slice(0, 200).map((/** @type {any} */ each) => [each.node, ...['cpu', 'memory'].flatMap((name) => [bar(each, each.before, name), bar(each, each.after, name)])])) : '',
    found.kept.length ? h('details', {}, h('summary', {}, `${found.kept.length + found.moreKept} pods stay`), table(['Pod', 'Node', 'Why'], found.kept.slice(0, 200).map((/** @type {any} */ each) => [`${each.namespace}/${each.pod}`, each.node || 'pending', each.why]))) : '',
    found.moves.length ? command(found.goal === 'policy' ? `reserver rebalance run --policy-config-file ${quoted(found.policy)}` : `reserver rebalance ${found.goal === 'make-room' ? 'run' : 'plan'} ${flag}`) : '',
  ];
}

/** @param {any} node @param {Record<string, string>} amounts @param {string} name */
function bar(node, amounts, name) {
  const number = (/** @type {string|undefined} */ text) => parse(text ?? '0');
  const whole = number(node.allocatable[name]) || 1;
  const meter = h('span', { class: 'meter', 'aria-hidden': 'true' },
    h('i', { class: 'used', style: { width: `${Math.min(100, number(amounts[name]) / whole * 100)}%` } }),
    h('i', { class: 'held', style: { width: `${Math.min(100, number(node.held[name]) / whole * 100)}%` } }));
  return h('span', { title: `${amounts[name] ?? 0} of ${node.allocatable[name] ?? 0}, ${node.held[name] ?? 0} held` }, meter, ` ${amounts[name] ?? 0}`);
}

const UNITS = { m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50 };

/** A Kubernetes quantity as a number. @param {string} text */
function parse(text) {
  const [, value, unit] = /^([\d.e+-]+)([a-zA-Z]*)$/.exec(text) ?? [];
  return Number(value ?? 0) * (UNITS[unit] ?? 1);
}
