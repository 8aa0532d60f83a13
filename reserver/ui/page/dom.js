/** Creates elements from values; text is always set as text, so no name can become markup. */

/** @typedef {Node|string|number|null|undefined|false|Child[]} Child */

/**
 * @param {string} tag
 * @param {Record<string, any>} [props] attributes; `on…` are listeners, `style` sets CSS properties
 * @param {...Child} children
 * @returns {HTMLElement}
 */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'style') for (const [key, one] of Object.entries(value)) element.style.setProperty(key, String(one));
    else if (name === 'class') element.className = value;
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children.flat(5)) if (child || child === 0) element.append(child instanceof Node ? child : String(child));
  return element;
}

/** Replace the children of an element. @param {HTMLElement} element @param {...Child} children */
export function fill(element, ...children) {
  element.replaceChildren(...h('div', {}, ...children).childNodes);
}

/** A table; on a narrow screen each row is a list of its cells. @param {string[]} titles @param {Child[][]} rows the first cell is the heading of its row */
export function table(titles, rows) {
  const cell = (/** @type {Child} */ content, /** @type {number} */ at) => {
    const kind = { class: content === '–' ? 'none' : String(content).length < 24 && 'short' }; // Prevents a line break in `worker-12` at its hyphen.
    return at ? h('td', { 'data-title': titles[at], ...kind }, h('div', {}, content)) : h('th', { scope: 'row', ...kind }, content);
  };
  return h('div', { class: 'wide', tabindex: '0', role: 'group', 'aria-label': `Table: ${titles.join(', ')}` }, h('table', {}, h('thead', {}, h('tr', {}, ...titles.map((each) => h('th', { scope: 'col' }, each)))),
    h('tbody', {}, ...rows.map((row) => h('tr', {}, ...row.map(cell))))));
}

/** Announce a text to screen readers. @param {string} text */
export function say(text) {
  const region = document.getElementById('said');
  if (region) region.textContent = text;
}

/** A command to copy. @param {string} text */
export function command(text) {
  const button = h('button', {
    type: 'button', class: 'copy', 'aria-label': `Copy: ${text}`,
    onclick: async () => {
      await navigator.clipboard.writeText(text);
      button.textContent = 'Copied';
      say('Copied');
      setTimeout(() => { button.textContent = 'Copy'; }, 1500);
    },
  }, 'Copy');
  const words = text.split(' ').flatMap((word, at) => [at > 0 && ' ', h('span', {}, word)]); // Lines break only between words, not within `--ttl`.
  return h('div', { class: 'command' }, h('code', {}, ...words), button);
}

/** A word, quoted for a shell. @param {string} text */
export function quoted(text) {
  return /^[\w@%+=:,./[\]-]+$/.test(text) && !/[[\]]/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/**
 * Rows with elements only for the visible ones.
 *
 * @param {HTMLElement} box scrolls
 * @param {number} height of one row in pixels
 * @param {number} printed the most rows on a printed sheet, which shows the number of the others
 * @param {(index: number) => HTMLElement} render
 */
export function virtual(box, height, printed, render) {
  const space = h('div', { class: 'space' });
  const cut = h('p', { class: 'cut' });
  box.append(space);
  box.after(cut);
  box.style.setProperty('--printed', `${printed * height}px`);
  /** @type {Map<number, HTMLElement>} */
  const shown = new Map();
  let count = 0;
  let asked = 0;

  function draw() {
    asked = 0;
    const first = Math.max(0, Math.floor(box.scrollTop / height) - 4);
    const last = Math.min(count, Math.ceil((box.scrollTop + box.clientHeight) / height) + 4);
    for (const [index, row] of shown) {
      if (index >= first && index < last) continue;
      if (row.contains(document.activeElement)) continue; // Keeps the keyboard focus.
      row.remove();
      shown.delete(index);
    }
    fillIn(first, last);
  }

  /** @param {number} first @param {number} last */
  function fillIn(first, last) {
    for (let index = first; index < last; index++) {
      if (shown.has(index)) continue;
      const row = render(index);
      row.style.setProperty('transform', `translateY(${index * height}px)`);
      row.style.setProperty('height', `${height}px`);
      space.append(row);
      shown.set(index, row);
    }
  }

  function print() {
    const first = Math.min(Math.floor(box.scrollTop / height), Math.max(0, count - printed));
    const last = Math.min(count, first + printed);
    fillIn(first, last);
    cut.textContent = last - first < count ? `Rows ${first + 1} to ${last} of ${count.toLocaleString()}. For others scroll, find or sort before you print.` : '';
  }
  addEventListener('beforeprint', print);
  const ask = () => { asked ||= requestAnimationFrame(draw); };
  box.addEventListener('scroll', ask, { passive: true });
  const observer = new ResizeObserver(ask);
  observer.observe(box);
  return {
    /** Redraw all rows. @param {number} rows */
    reset(rows) {
      const focus = document.activeElement;
      const held = focus && space.contains(focus) ? focus.getAttribute('data-key') : null;
      count = rows;
      space.style.setProperty('height', `${rows * height}px`);
      for (const row of shown.values()) row.remove();
      shown.clear();
      draw();
      const again = held === null ? null : space.querySelector(`[data-key="${CSS.escape(held)}"]`);
      if (again instanceof HTMLElement) again.focus();
    },
    /** Scroll to a row, and return it. @param {number} index */
    reveal(index) {
      const top = index * height;
      if (top < box.scrollTop) box.scrollTop = top;
      else if (top + height > box.scrollTop + box.clientHeight) box.scrollTop = top + height - box.clientHeight;
      draw();
      return shown.get(index);
    },
    close() { removeEventListener('beforeprint', print); observer.disconnect(); cancelAnimationFrame(asked); },
  };
}
