// Colours that are told apart with any colour vision (after Okabe and Ito), for both themes; beside each stands a letter or
// a dash pattern, so that nothing depends on them.

const palettes = {
  light: ['#0072b2', '#d55e00', '#008a63', '#b0488c', '#8a6d00', '#2b8cbe', '#7a4fb5', '#5b6b2f'],
  dark: ['#56b4e9', '#f28e4b', '#2fc49a', '#e08fc4', '#e3c44a', '#8fd0f2', '#b79af0', '#b3c77a'],
};
const letters = 'ABCDEFGH';
const dashes = [null, [7, 3], [2, 3], [9, 3, 2, 3], [4, 2], [12, 4]];

function isDark() {
  return document.documentElement.dataset.theme === 'dark';
}

function palette() {
  return isDark() ? palettes.dark : palettes.light;
}

function themed(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// Of a rank; the last is of all other callers.
function colourOfRank(rank) {
  return rank === undefined || rank >= letters.length ? themed('other') : palette()[rank];
}

// Text on a colour of the palette.
function onColour() {
  return isDark() ? '#14171b' : '#fff';
}

// The callers that have a colour of their own: those with most bytes, at the peak and left.
function rankedCallers(callers) {
  const ranks = new Map();
  const weight = caller => Math.max(caller.peak.bytes, caller.left.bytes);
  const ranked = [...callers].sort((a, b) => weight(b) - weight(a) || b.total.bytes - a.total.bytes);
  ranked.slice(0, letters.length).forEach((caller, rank) => ranks.set(caller.name, rank));
  return ranks;
}

function hashOf(text) {
  let hash = 0;
  for (const each of text) {
    hash = (hash * 31 + each.codePointAt(0)) >>> 0;
  }
  return hash;
}

// The same for each frame on every page: the hue is the library's, a little off for each name. Muted, so that text on it is
// readable.
function colourOfFrame(node) {
  const hue = (hashOf(node.library) * 47 + 205 + hashOf(node.name) % 50) % 360;
  return isDark() ? `hsl(${hue} 35% 30%)` : `hsl(${hue} 55% 82%)`;
}
