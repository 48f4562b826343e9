// The page of `ration diff -o`: the document is that of `ration diff --json` (shim/cli/README.md).

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
  ['peak_bytes', 'at the peak', bytes],
  ['requested_bytes', 'in total', bytes],
  ['live_bytes', 'not freed', bytes],
  ['allocs', 'blocks', asCount],
];
const standings = {both: '', new: 'new', gone: 'gone'};

function asCount(count) {
  return count.toLocaleString('en');
}

// null: not known, as the log lacks records.
function shown(value, show) {
  return value === null ? 'unknown' : show(value);
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

// Cells for A, B, the change and its percentage.
function cellsOf(figure, show, isMoreBad = true) {
  const exact = value => (value === null ? {} : {title: `${value}`});
  return [
    element('td', exact(figure.before), shown(figure.before, show)),
    element('td', exact(figure.after), shown(figure.after, show)),
    element('td', {class: isMoreBad && figure.change > 0 ? 'bad' : '', ...exact(figure.change)}, changeWords(figure, show)),
    element('td', {}, percentWords(figure)),
  ];
}

function rowsOfDevice(device) {
  return element('tbody', {},
    element('tr', {}, element('th', {scope: 'rowgroup', class: 'name', colspan: 5}, `Device ${device.dev}`)),
    ...figuresOfDevice.map(([key, title, show]) => element('tr', {}, element('td', {class: 'name'}, title), ...cellsOf(device[key], show, key !== 'allocs' && key !== 'frees'))));
}

function showFigures(devices) {
  const titles = ['', 'A', 'B', 'Change', '%'];
  byId('figures').append(
    element('thead', {}, element('tr', {}, ...titles.map(title => element('th', {scope: 'col', class: title ? '' : 'name'}, title)))),
    ...devices.map(rowsOfDevice));
}

class DifferenceTable extends SortedTable {
  constructor(title, devices) {
    const figure = row => row[this.of[0]];
    super([
      {title, key: row => row.name, isText: true},
      {title: 'Device', key: row => row.dev},
      {title: 'Standing', key: row => row.standing, isText: true},
      {title: 'A', key: row => figure(row).before},
      {title: 'B', key: row => figure(row).after},
      {title: 'Change', key: row => Math.abs(figure(row).change)},
      {title: '%', key: row => percentOf(figure(row))},
    ], 5);
    this.isOfSeveral = devices.length > 1;
    this.all = devices.flatMap(device => device.callers.map(caller => ({...caller, dev: device.dev})));
    choiceOf('callers-of', figuresOfCaller.map(([key, title]) => [key, title]), figuresOfCaller[0][0], key => this.showFigure(key));
    this.showFigure(figuresOfCaller[0][0]);
  }

  showFigure(key) {
    this.of = figuresOfCaller.find(each => each[0] === key);
    this.most = this.all.reduce((most, row) => Math.max(most, Math.abs(row[key].change)), 0);
    this.showRows(this.all);
  }

  isShown(index) {
    return index !== 1 || this.isOfSeveral;
  }

  wordsOf(row) {
    return `${row.name} ${row.standing}`;
  }

  rowOf(caller) {
    const [key, , show] = this.of;
    const [before, after, change, percent] = cellsOf(caller[key], show);
    return element('tr', {},
      element('td', {class: 'name'}, nameElement(caller.name)),
      this.isShown(1) ? element('td', {}, caller.dev) : null,
      element('td', {class: 'name'}, standings[caller.standing]),
      before, after, SortedTable.bar(change, Math.abs(caller[key].change), this.most, caller[key].change > 0), percent);
  }
}

function sideName(logs) {
  return logs.length === 1 ? logs[0] : `${logs[0]} and ${logs.length - 1} more`;
}

function bannerLines(difference) {
  const line = (word, text, isBad) => element('li', {class: isBad ? 'bad' : ''}, element('b', {}, word), ' ', text);
  const side = (word, key) => line(word, [difference[key].join(', '), ...endNotes(difference.ended[key], difference.cut_off[key]),
    ...(difference.dropped[key] ? [`it lacks ${counted(difference.dropped[key], 'record', 'records')}`] : [])].join('; '));
  const verdict = difference.fails === null ? [] : difference.fails ? difference.reasons.map(reason => line('--fail-above:', reason, true))
    : [line('--fail-above:', 'no peak has grown by more.')];
  const failed = difference.failed_allocs;
  return [...verdict, side('A:', 'before'), side('B:', 'after'),
    ...(failed.change ? [line('Failed in the driver:', `${changeWords(failed, asCount)} allocations`, failed.change > 0)] : [])];
}

function start() {
  const difference = JSON.parse(byId('log').textContent);
  const names = `${sideName(difference.before)} → ${sideName(difference.after)}`;
  document.title = `${names} – Ration diff`;
  byId('title').textContent = names;
  byId('subtitle').textContent = `what changed from A to B, by ${difference.by}`;
  byId('banner').classList.toggle('is-none', !difference.fails);
  byId('banner').append(...bannerLines(difference));
  const devices = difference.devices.filter(each => each.callers.length || each.refusals.before || each.refusals.after
    || each.reserved_peak_bytes.before || each.reserved_peak_bytes.after);
  showFigures(devices);
  const title = difference.by[0].toUpperCase() + difference.by.slice(1);
  const callers = new DifferenceTable(title, devices);
  startTheme(() => {});
  window.rationPage = {difference, callers};
  document.documentElement.dataset.ready = 'true';
}

start();
