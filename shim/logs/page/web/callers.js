// The table of callers: searched by words, sorted by any column.

const rowsAtFirst = 100;
const columns = [
  {title: 'Caller', key: row => row.caller.name, isText: true},
  {title: 'Process', key: row => row.lane.title, isText: true},
  {title: 'At peak', key: row => row.caller.peak.bytes},
  {title: 'Blocks', key: row => row.caller.peak.count},
  {title: 'In total', key: row => row.caller.total.bytes},
  {title: 'Calls', key: row => row.caller.total.count},
  {title: 'Never freed', key: row => row.caller.left.bytes},
  {title: 'Blocks', key: row => row.caller.left.count},
];

class CallersTable {
  constructor(onPick) {
    this.onPick = onPick;
    this.sortedBy = 2;
    this.isDescending = true;
    this.isWhole = false;
    byId('search').addEventListener('input', () => this.draw());
    byId('more').addEventListener('click', () => {
      this.isWhole = true;
      this.draw();
    });
  }

  showLanes(lanes) {
    this.lanes = lanes;
    this.rows = lanes.flatMap(lane => lane.callers.map(caller => ({lane, caller})));
    this.draw();
  }

  sort(index) {
    this.isDescending = this.sortedBy === index ? !this.isDescending : !columns[index].isText;
    this.sortedBy = index;
    this.draw();
  }

  matching() {
    const words = byId('search').value.toLowerCase().split(/\s+/).filter(Boolean);
    return this.rows.filter(row => words.every(word => `${row.caller.name} ${row.lane.title}`.toLowerCase().includes(word)));
  }

  draw() {
    const {key, isText} = columns[this.sortedBy];
    const order = (a, b) => (isText ? key(a).localeCompare(key(b)) : key(a) - key(b));
    const found = this.matching().sort((a, b) => (this.isDescending ? order(b, a) : order(a, b)));
    const shown = this.isWhole ? found : found.slice(0, rowsAtFirst);
    byId('found').textContent = `${found.length.toLocaleString('en')} of ${this.rows.length.toLocaleString('en')}`;
    byId('more').hidden = shown.length === found.length;
    byId('more').textContent = `Show all ${found.length.toLocaleString('en')}`;
    const focused = document.activeElement && document.activeElement.dataset.column;
    byId('callers').replaceChildren(this.head(), element('tbody', {}, ...shown.map(row => this.rowOf(row))));
    if (focused !== undefined) {
      byId('callers').querySelector(`[data-column="${focused}"]`).focus();
    }
  }

  isShown(index) {
    return index !== 1 || this.lanes.length > 1;
  }

  head() {
    const cells = columns.map(({title, isText}, index) => {
      const isSorted = index === this.sortedBy;
      const arrow = isSorted ? (this.isDescending ? ' ▼' : ' ▲') : '';
      return this.isShown(index) && element('th', {
        scope: 'col', class: isText ? 'name' : '', 'aria-sort': isSorted ? (this.isDescending ? 'descending' : 'ascending') : 'none',
      }, element('button', {type: 'button', 'data-column': index, onclick: () => this.sort(index)}, title + arrow));
    });
    return element('thead', {}, element('tr', {}, ...cells.filter(Boolean)));
  }

  rowOf(row) {
    const {lane, caller} = row;
    const most = Math.max(1, lane.peak_bytes);
    const amount = count => element('td', {title: `${count.toLocaleString('en')} bytes`}, count ? bytes(count) : '–');
    const number = count => element('td', {}, count ? count.toLocaleString('en') : '–');
    const bar = element('span', {class: 'bar', style: `width:${(60 * caller.peak.bytes / most).toFixed(0)}px`});
    const peak = amount(caller.peak.bytes);
    peak.prepend(bar);
    const left = amount(caller.left.bytes);
    left.classList.toggle('bad', caller.left.bytes > 0);
    return element('tr', {},
      element('td', {class: 'name'}, element('button', {type: 'button', title: 'Show its blocks in the map', onclick: () => this.onPick(lane, caller.name)}, caller.name)),
      this.isShown(1) ? element('td', {class: 'name'}, lane.title) : null,
      peak, number(caller.peak.count), amount(caller.total.bytes), number(caller.total.count), left, number(caller.left.count));
  }
}
