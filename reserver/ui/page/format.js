/** Amounts and times in words. */

/** @param {number} seconds in its two largest units */
export function duration(seconds) {
  let left = Math.max(0, Math.round(seconds));
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

/** @param {number|null|undefined} moment */
export function time(moment) {
  if (moment === null || moment === undefined) return 'never';
  return new Date(moment).toLocaleString(undefined, { weekday: 'short', day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });
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
export const round = (value) => (value >= 100 ? Math.round(value) : Math.round(value * 10) / 10).toLocaleString();

/** @param {number} share */
export const percent = (share) => `${Math.round(share * 100)} %`;

/** The zone of the times shown. */
export const zone = () => Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Of a node, the largest share that amounts take. @param {Record<string, number>} amounts @param {Record<string, number>} [of] */
export function dominant(amounts, of) {
  let most = 0;
  for (const [resource, amount] of Object.entries(amounts)) {
    const whole = of?.[resource] ?? 0;
    if (amount > 0) most = Math.max(most, whole > 0 ? amount / whole : 1);
  }
  return most;
}
