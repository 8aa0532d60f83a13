/** Health: what `reserver doctor` says, and how the process is that answers. */

import { ask, repeat } from './store.js';
import { command, h } from './dom.js';

/** @param {HTMLElement} main @param {import('./main.js').Place} place */
export function view(main, { signal }) {
  const answer = h('div', { class: 'answer' }, h('p', { class: 'empty' }, 'Checking …'));
  main.append(answer);
  async function read() {
    try {
      answer.replaceChildren(...shown(await ask('health', {}, signal)));
    } catch (/** @type {any} */ error) {
      if (!signal.aborted) answer.replaceChildren(h('p', { class: 'problem', role: 'alert' }, error.message));
    }
  }
  repeat(read, 30_000, signal);
}

/** @param {any} found */
function shown(found) {
  const mark = (/** @type {boolean} */ good) => h('span', { class: good ? 'good' : 'bad' }, good ? '✓ ok' : '✗ to do');
  const watches = (found.watches ?? []).filter?.((/** @type {any} */ each) => !each.absent) ?? [];
  const certificates = (found.metrics ?? []).filter((/** @type {string} */ each) => each.startsWith('reserver_certificate_expiry'));
  const leader = (found.metrics ?? []).find((/** @type {string} */ each) => each.startsWith('leader_election_master_status'));
  return [
    h('section', {}, h('h2', {}, 'Checks'), h('table', {},
      h('thead', {}, h('tr', {}, ...['Check', 'Result', 'Found', 'Remedy'].map((each) => h('th', { scope: 'col' }, each)))),
      h('tbody', {}, ...found.checks.map((/** @type {any} */ each) => h('tr', {}, h('th', { scope: 'row' }, each.check), h('td', {}, mark(each.is_ok)), h('td', {}, each.said), h('td', {}, each.remedy || '–'))))), command('reserver doctor')),
    found.problem ? h('p', { class: 'problem', role: 'alert' }, found.problem) : h('section', {}, h('h2', {}, 'The process that answers'),
      h('dl', {}, ...[['Version', found.versions['kube-reserver'] ?? Object.values(found.versions)[0]], ['Leads', leader?.endsWith(' 1.0') ? 'yes' : 'no'],
        ['Sees', `${found.nodes} nodes, ${found.pods} pods, ${found.reservations} reservations`], ['Not ready because', found.obstacles.join('; ')],
        ['Queues', Object.entries(found.queues ?? {}).map(([name, depth]) => `${name} ${depth}`).join(', ')]].flatMap(([name, value]) => value ? [h('dt', {}, name), h('dd', {}, value)] : []))),
    watches.length ? h('section', {}, h('h2', {}, 'Watches'), h('div', { class: 'wide', tabindex: '0' }, h('table', {}, h('thead', {}, h('tr', {}, ...['Collection', 'Current', 'Lists', 'Unreadable', 'Obstacle'].map((each) => h('th', { scope: 'col' }, each)))),
      h('tbody', {}, ...watches.map((/** @type {any} */ each) => h('tr', {}, h('th', { scope: 'row' }, each.collection), h('td', {}, mark(each.current)), h('td', {}, each.lists), h('td', {}, each.unreadable), h('td', {}, each.obstacle || '–'))))))) : '',
    h('section', {}, h('h2', {}, 'Certificates'), certificates.length ? h('ul', {}, ...certificates.map((/** @type {string} */ line) => {
      const [, file, seconds] = /file="([^"]*)"[^}]*} (.*)$/.exec(line) ?? [];
      const left = (Number(seconds) - Date.now() / 1000) / 86400;
      return h('li', {}, mark(left > 14), ` ${file}: ${Math.floor(left)} days left`);
    })) : h('p', { class: 'empty' }, 'None in use: the connection is on loopback.')),
  ];
}
