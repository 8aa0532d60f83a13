/** Amounts and times in words. */

const YEAR = 365 * 86400;

/** @param {number} seconds in its two largest units */
export function duration(seconds) {
  let left = Math.max(0, Math.round(seconds));
  if (left >= 2 * YEAR) return `${Math.floor(left / YEAR).toLocaleString()}y`;
  const least = left >= 86400 ? 3600 : left >= 3600 ? 60 : 1;
  left = Math.round(left / least) * least;
  const parts = [];
  for (const [unit, size] of /** @type {[string, number][]} */ ([['d', 86400], ['h', 3600], ['m', 60], ['s', 1]])) {
    const count = Math.floor(left / size);
    left %= size;
    if (count) parts.push(`${count}${unit}`);
  }
  return parts.slice(0, 2).join('') || '0s';
}

/** @param {number|null|undefined} ends @param {number} now */
export function endsIn(ends, now) {
  if (ends === null || ends === undefined) return 'no end';
  return ends > now ? duration((ends - now) / 1000) : 'over';
}

// Created once: creating one takes longer than drawing a row.
const THIS_YEAR = new Intl.DateTimeFormat(undefined, { weekday: 'short', day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });
const OTHER_YEAR = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', year: 'numeric', hour: '2-digit', minute: '2-digit' });
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const DAY = new Intl.DateTimeFormat(undefined, { weekday: 'short', day: 'numeric' });
const DATE = new Intl.DateTimeFormat(undefined, { weekday: 'short', day: 'numeric', month: 'short' });
const NAMES = new Intl.Collator(undefined, { numeric: true });

/** Natural order of names: worker-2 before worker-10. @type {(a: string, b: string) => number} */
export const byName = NAMES.compare;
export const clock = (/** @type {number} */ moment) => CLOCK.format(moment);
export const day = (/** @type {number} */ moment) => DAY.format(moment);
export const date = (/** @type {number} */ moment) => DATE.format(moment);

/** @param {number|null|undefined} moment */
export function time(moment) {
  if (moment === null || moment === undefined) return 'never';
  return (new Date(moment).getFullYear() === new Date().getFullYear() ? THIS_YEAR : OTHER_YEAR).format(moment);
}

/** @param {string} resource @param {number} amount in millicores, bytes or pieces */
export function amount(resource, amount) {
  if (resource === 'cpu') return `${round(amount / 1000)} CPU`;
  if (resource === 'memory' || resource === 'ephemeral-storage') return bytes(amount);
  return `${amount}`;
}

/** @param {number} amount */
function bytes(amount) {
  let unit = 0;
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  while (amount >= 1024 && unit < units.length - 1) { amount /= 1024; unit++; }
  return `${round(amount)} ${units[unit]}`;
}

/** @param {number} value */
export const round = (value) => (value > 0 && value < 0.05 ? '<0.1' : (value >= 100 ? Math.round(value) : Math.round(value * 10) / 10).toLocaleString());

/** A number with its noun, in singular or plural. @param {number} number @param {string} thing */
export const count = (number, thing) => `${number.toLocaleString()} ${thing}${number === 1 ? '' : 's'}`;

/** @param {number} share */
export const percent = (share) => `${Math.round(share * 100)} %`;

/** The time zone of the shown times. */
export const zone = () => Intl.DateTimeFormat().resolvedOptions().timeZone;

/** The largest share of a node's resources in amounts. @param {Record<string, number>} amounts @param {Record<string, number>} [of] */
export function dominant(amounts, of) {
  let most = 0;
  for (const [resource, amount] of Object.entries(amounts)) {
    const whole = of?.[resource] ?? 0;
    if (amount > 0) most = Math.max(most, whole > 0 ? amount / whole : 1);
  }
  return most;
}

/** @type {Record<string, number>} */
const UNITS = { m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50 };

/** A Kubernetes quantity as a number. @param {string|undefined} text */
export function parse(text) {
  const [, value, unit] = /^([\d.e+-]+)([a-zA-Z]*)$/.exec(text ?? '0') ?? [];
  return Number(value ?? 0) * (UNITS[unit ?? ''] ?? 1);
}
