// A table that is searched by words and sorted by any column: {title, key: row => value to sort by, isText}.

const rowsAtFirst = 100;

class SortedTable {
  constructor(columns, sortedBy) {
    this.columns = columns;
    this.sortedBy = sortedBy;
    this.isDescending = true;
    this.isWhole = false;
    byId('search').addEventListener('input', () => this.draw());
    byId('more').addEventListener('click', () => {
      this.isWhole = true;
      this.draw();
    });
  }

  showRows(rows) {
    this.rows = rows;
    this.draw();
  }

  sort(index) {
    this.isDescending = this.sortedBy === index ? !this.isDescending : !this.columns[index].isText;
    this.sortedBy = index;
    this.draw();
  }

  matching() {
    const words = byId('search').value.toLowerCase().split(/\s+/).filter(Boolean);
    return this.rows.filter(row => words.every(word => this.wordsOf(row).toLowerCase().includes(word)));
  }

  draw() {
    const {key, isText} = this.columns[this.sortedBy];
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

  head() {
    const cells = this.columns.map(({title, isText}, index) => {
      const isSorted = index === this.sortedBy;
      const arrow = isSorted ? (this.isDescending ? ' ▼' : ' ▲') : '';
      return this.isShown(index) && element('th', {
        scope: 'col', class: isText ? 'name' : '', 'aria-sort': isSorted ? (this.isDescending ? 'descending' : 'ascending') : 'none',
      }, element('button', {type: 'button', 'data-column': index, onclick: () => this.sort(index)}, title + arrow));
    });
    return element('thead', {}, element('tr', {}, ...cells.filter(Boolean)));
  }

  // Only what a name says, in view.
  reveal(name) {
    byId('search').value = name;
    this.draw();
    byId('callers').scrollIntoView({block: 'center'});
  }

  // A cell with its bar, whose length is of the largest one.
  static bar(cell, part, most, isBad = false) {
    const width = most > 0 ? (60 * part / most).toFixed(0) : 0;
    cell.prepend(element('span', {class: isBad ? 'bar is-bad' : 'bar', style: `width:${width}px`}));
    return cell;
  }
}

// Of a few choices one: a radio button for each [value, title].
function choiceOf(id, choices, chosen, onChange) {
  byId(id).append(...choices.map(([value, title]) => {
    const radio = element('input', {type: 'radio', name: id, value, onchange: () => onChange(value)});
    radio.checked = value === chosen;
    return element('label', {}, radio, ` ${title}`);
  }));
}
