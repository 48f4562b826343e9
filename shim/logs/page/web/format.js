// Figures as text, and elements without markup in strings: every text of a log reaches the page as a text node.

const nsOfSecond = 1e9;
const prefixes = 'KMGTPE';

// As the command prints it (config/values/size.cc): three digits, "512MiB", "1.50GiB".
function bytes(count) {
  if (count < 1024) {
    return `${Math.round(count)}B`;
  }
  let unit = 1024;
  let prefix = 0;
  const of = parts => Math.round(count * parts / unit);
  for (; of(1) >= 1024 && prefix + 1 < prefixes.length; ++prefix) {
    unit *= 1024;
  }
  const isWhole = prefix < 2 && count % unit === 0;
  const decimals = isWhole || of(10) >= 1000 ? 0 : of(100) >= 1000 ? 1 : 2;
  return `${(of(10 ** decimals) / 10 ** decimals).toFixed(decimals)}${prefixes[prefix]}iB`;
}

function exactBytes(count) {
  return count < 1024 ? `${count} bytes` : `${bytes(count)} (${count} bytes)`;
}

// As the axis has room for: no decimals that say nothing.
function shortBytes(count) {
  return bytes(count).replace(/\.0+(?=[KMGTPE])/, '');
}

const longestName = 72;

// A long name without arguments of templates and functions, then without its middle. The whole name is its title.
function abridged(name) {
  let text = name;
  for (let before = ''; text.length > longestName && text !== before;) {
    before = text;
    text = text.replace(/(\w)<[^<>]+>/g, '$1‹…›').replace(/\((?=[^()]*[ ,*&])[^()]*\)/g, '(…)');
  }
  const half = Math.floor(longestName / 2);
  return text.length > longestName ? `${text.slice(0, half)}…${text.slice(1 - half)}` : text;
}

function nameElement(name, attributes = {}) {
  return element('span', {title: name, ...attributes}, abridged(name));
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

// What to know of a log's figures by how it ends.
function endNotes(hasEnded, isCutOff) {
  return hasEnded ? [] : [isCutOff ? 'the log was cut off, as by a full disk: what came after that is not known'
    : 'the log has no end: the program was killed, still ran, left by _exit or exec, or its disk was full'];
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
