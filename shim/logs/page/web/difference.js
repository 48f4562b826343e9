// The page of `ration diff -o`: the document is that of `ration diff --json` (shim/cli/README.md).

const difference = JSON.parse(byId('log').textContent);
const figuresOfDevice = [
  ['peak_bytes', 'peak used', bytes],
  ['reserved_peak_bytes', 'peak reserved', bytes],
  ['allocs', 'allocations', asCount],
  ['frees', 'frees', asCount],
  ['refusals', 'refusals', asCount],
  ['live_blocks', 'blocks not freed', asCount],
  ['live_bytes', 'not freed', bytes],
];
const figuresOfCaller = [
  ['at_peak_bytes', 'at the peak', bytes],
  ['requested_bytes', 'in total', bytes],
  ['live_bytes', 'not freed', bytes],
  ['allocs', 'blocks', asCount],
];
const occurrences = {both: '', new: 'new', gone: 'gone', unknown: 'unknown'};

function asCount(count) {
  return count.toLocaleString('en');
}

// null: not known, as the log lacks records.
function shown(value, show) {
  return value === null ? 'unknown' : show(value);
}

// One figure of a device, a caller or all logs, on both sides.
function figureOf(row, key) {
  return {before: row.before[key], after: row.after[key], change: row.change[key]};
}

function changeWords(figure, show) {
  const {change} = figure;
  return change === null ? 'unknown' : change === 0 ? '=' : `${change > 0 ? '+' : '−'}${show(Math.abs(change))}`;
}

// Of what it was before; nothing where that is nothing.
function percentOf({before, change}) {
  return before && change ? 100 * change / before : 0;
}

function percentWords(figure) {
  const percent = percentOf(figure);
  return percent === 0 ? '' : `${percent > 0 ? '+' : '−'}${Math.abs(percent).toFixed(Math.abs(percent) < 10 ? 1 : 0)}%`;
}

function isWhole(side) {
  return difference[side].ended && !difference[side].dropped;
}

// A figure of a device, with what it does not tell. Of a log that is not whole, counts and peaks are lower bounds, and
// what was not freed is known only if it has its end.
function figureOfDevice(device, key) {
  const figure = figureOf(device, key);
  const isLive = key.startsWith('live_');
  const unknown = side => figure[side] === null || (isLive && !difference[side].ended);
  const isPeakExact = side => difference[side].ended && device[side].peak_bytes !== null;
  const isExact = side => (key.includes('peak') ? isPeakExact(side) : isLive || isWhole(side)) && !unknown(side);
  const areExact = isExact('before') && isExact('after');
  return {
    before: unknown('before') ? null : figure.before,
    after: unknown('after') ? null : figure.after,
    change: areExact ? figure.change : null,
    atLeast: {before: !isExact('before'), after: !isExact('after')},
  };
}

// Cells for A, B, the change and its percentage.
function cellsOf(figure, show, isMoreBad = true) {
  const exact = value => (value === null ? {} : {title: `${value}`});
  const side = key => element('td', exact(figure[key]),
    `${figure.atLeast && figure.atLeast[key] && figure[key] !== null ? 'at least ' : ''}${shown(figure[key], show)}`);
  return [
    side('before'),
    side('after'),
    element('td', {class: isMoreBad && figure.change > 0 ? 'bad' : '', ...exact(figure.change)}, changeWords(figure, show)),
    element('td', {}, percentWords(figure)),
  ];
}

// The sum of several logs' peaks was not necessarily held at one time.
function titleOf(title) {
  const isSum = difference.before.logs.length > 1 || difference.after.logs.length > 1;
  return isSum && title.startsWith('peak') ? `sum of ${title.replace('peak', 'peaks')}` : title;
}

function rowsOfDevice(device) {
  return element('tbody', {},
    element('tr', {}, element('th', {scope: 'rowgroup', class: 'name', colspan: 5}, `Device ${device.dev}`)),
    ...figuresOfDevice.map(([key, title, show]) => element('tr', {}, element('td', {class: 'name'}, titleOf(title)),
      ...cellsOf(figureOfDevice(device, key), show, key !== 'allocs' && key !== 'frees'))));
}

function showFigures(devices) {
  const titles = ['', 'A', 'B', 'Change', '%'];
  byId('figures').append(
    element('thead', {}, element('tr', {}, ...titles.map(title => element('th', {scope: 'col', class: title ? '' : 'name'}, title)))),
    ...devices.map(rowsOfDevice));
}

class DifferenceTable extends SortedTable {
  constructor(title, devices) {
    const figure = row => figureOf(row, this.of[0]);
    super([
      {title, key: row => row.caller, isText: true},
      {title: 'Device', key: row => row.dev},
      {title: 'Occurs', key: row => row.occurs, isText: true},
      {title: 'A', key: row => figure(row).before},
      {title: 'B', key: row => figure(row).after},
      {title: 'Change', key: row => Math.abs(figure(row).change)},
      {title: '%', key: row => percentOf(figure(row))},
    ], 5);
    this.hidden = [devices.length > 1 ? -1 : 1, devices.some(device => device.callers.some(each => each.occurs !== 'both')) ? -1 : 2];
    this.all = devices.flatMap(device => device.callers.map(caller => ({...caller, dev: device.dev})));
    choiceOf('callers-of', figuresOfCaller.map(([key, title]) => [key, title]), figuresOfCaller[0][0], key => this.showFigure(key));
    this.showFigure(figuresOfCaller[0][0]);
  }

  showFigure(key) {
    this.of = figuresOfCaller.find(each => each[0] === key);
    this.most = this.all.reduce((most, row) => Math.max(most, Math.abs(row.change[key])), 0);
    this.showRows(this.all);
  }

  isShown(index) {
    return !this.hidden.includes(index);
  }

  wordsOf(row) {
    return `${row.caller} ${row.occurs}`;
  }

  rowOf(caller) {
    const [key, , show] = this.of;
    const [before, after, change, percent] = cellsOf(figureOf(caller, key), show);
    return element('tr', {},
      element('td', {class: 'name'}, nameElement(caller.caller)),
      this.isShown(1) ? element('td', {}, caller.dev) : null,
      this.isShown(2) ? element('td', {class: 'name'}, occurrences[caller.occurs]) : null,
      before, after, SortedTable.bar(change, Math.abs(caller.change[key]), this.most, caller.change[key] > 0), percent);
  }
}

function namesOf(logs) {
  return logs.map(each => each.log);
}

function sideName({logs}) {
  const [first, ...others] = namesOf(logs);
  return others.length === 0 ? first : `${first} and ${others.length} more`;
}

function bannerLines() {
  const line = (word, text, isBad) => element('li', {class: isBad ? 'bad' : ''}, element('b', {}, word), ' ', text);
  const side = (word, {logs, ended, cut_off: isCutOff, dropped}) => line(word, [namesOf(logs).join(', '), ...endNotes(ended, isCutOff),
    ...(dropped ? [`it lacks ${counted(dropped, 'record', 'records')}`] : [])].join('; '));
  const verdict = difference.holds === null ? [] : !difference.holds ? difference.reasons.map(reason => line('--fail-above:', reason, true))
    : [line('--fail-above:', 'no peak has grown by more.')];
  const failed = figureOf(difference, 'failed_allocs');
  return [...verdict, side('A:', difference.before), side('B:', difference.after),
    ...(failed.change && difference.before.ended && difference.after.ended ? [line('Failed in the driver:', `${changeWords(failed, asCount)} allocations`, failed.change > 0)] : [])];
}

function start() {
  const names = `${sideName(difference.before)} → ${sideName(difference.after)}`;
  document.title = `${names} – Ration diff`;
  byId('title').textContent = names;
  byId('subtitle').textContent = `what changed from A to B, by ${difference.by}`;
  byId('banner').classList.toggle('is-none', difference.holds !== false);
  byId('banner').append(...bannerLines());
  const devices = difference.devices.filter(each => each.callers.length || each.before.refusals || each.after.refusals
    || each.before.reserved_peak_bytes || each.after.reserved_peak_bytes);
  showFigures(devices);
  const title = difference.by[0].toUpperCase() + difference.by.slice(1);
  const callers = new DifferenceTable(title, devices);
  startTheme(() => {});
  window.rationPage = {difference, callers};
  document.documentElement.dataset.ready = 'true';
}

start();
