// The table of callers.

const columnsOfCallers = [
  {title: 'Caller', key: row => row.name, isText: true},
  {title: 'Process', key: row => processOf(row), isText: true},
  {title: 'At peak', key: row => row.peak.bytes},
  {title: 'Blocks', key: row => row.peak.count},
  {title: 'In total', key: row => row.total.bytes},
  {title: 'Calls', key: row => row.total.count},
  {title: 'Never freed', key: row => row.left.bytes},
  {title: 'Blocks', key: row => row.left.count},
  {title: 'Oldest', key: row => row.oldest},
];

function processOf(caller) {
  return caller.lanes.length === 1 ? caller.lanes[0].title : `${caller.lanes.length} processes`;
}

class CallersTable extends SortedTable {
  constructor(onPick) {
    super(columnsOfCallers, 2);
    this.onPick = onPick;
  }

  showLanes(lanes) {
    this.lanes = lanes;
    const rows = mergedCallers(lanes);
    this.most = rows.reduce((most, row) => Math.max(most, row.peak.bytes), 1);
    this.showRows(rows);
  }

  isShown(index) {
    return index !== 1 || this.lanes.length > 1;
  }

  wordsOf(row) {
    return `${row.name} ${processOf(row)}`;
  }

  rowOf(caller) {
    const amount = count => element('td', {title: `${count} bytes`}, count ? bytes(count) : '–');
    const number = count => element('td', {}, count ? count.toLocaleString('en') : '–');
    const left = amount(caller.left.bytes);
    left.classList.toggle('bad', caller.left.bytes > 0);
    return element('tr', {},
      element('td', {class: 'name'}, element('button', {type: 'button', title: 'Show its blocks in the map', onclick: () => this.onPick(caller)}, nameElement(caller.name))),
      this.isShown(1) ? element('td', {class: 'name'}, processOf(caller)) : null,
      SortedTable.bar(amount(caller.peak.bytes), caller.peak.bytes, this.most), number(caller.peak.count),
      amount(caller.total.bytes), number(caller.total.count), left, number(caller.left.count),
      element('td', {}, caller.oldest ? duration(caller.oldest) : '–'));
  }
}
