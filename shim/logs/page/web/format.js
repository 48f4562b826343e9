// Figures as text, and elements without markup in strings: every text of a log reaches the page as a text node.

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

function bytes(count) {
  let unit = 0;
  let value = count;
  while (Math.abs(value) >= 1024 && unit < units.length - 1) {
    value /= 1024;
    ++unit;
  }
  const digits = unit === 0 || value >= 100 || Number.isInteger(value) ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${units[unit]}`;
}

// As the axis has room for: no decimals that say nothing.
function shortBytes(count) {
  return bytes(count).replace(/\.0+ /, ' ');
}

function duration(ns) {
  for (const [unit, factor] of [['s', 1e9], ['ms', 1e6], ['µs', 1e3]]) {
    if (Math.abs(ns) >= factor) {
      const value = ns / factor;
      return `${value.toFixed(value >= 100 ? 1 : 3)} ${unit}`;
    }
  }
  return `${ns} ns`;
}

function counted(count, one, many) {
  return `${count.toLocaleString('en')} ${count === 1 ? one : many}`;
}

function percent(part, whole) {
  return whole > 0 ? `${(100 * part / whole).toFixed(1)}%` : '0%';
}

function byId(id) {
  return document.getElementById(id);
}

// element('td', {class: 'name'}, 'text', child…)
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) {
      made.addEventListener(key.slice(2), value);
    } else if (value !== false && value !== undefined) {
      made.setAttribute(key, value === true ? '' : value);
    }
  }
  made.append(...children.filter(child => child !== null && child !== undefined));
  return made;
}

const tip = {
  show(text, event) {
    const box = byId('tip');
    box.textContent = text;
    box.hidden = false;
    const left = Math.min(event.clientX + 14, window.innerWidth - box.offsetWidth - 8);
    const below = event.clientY + 16;
    const top = below + box.offsetHeight > window.innerHeight ? event.clientY - box.offsetHeight - 12 : below;
    box.style.left = `${Math.max(left, 4)}px`;
    box.style.top = `${Math.max(top, 4)}px`;
  },
  hide() {
    byId('tip').hidden = true;
  },
};
