// The slabs of a device with the blocks at their addresses, at one moment. Each slab begins a row; a row stands for the same
// count of bytes everywhere.

const rowHeight = 17;
const rowGap = 3;
const areaGap = 5;
const rowsAtMost = 70;
const labelWidth = 92;

const whyOfMoment = {peak: '◆ peak', refusal: '▼ refusal', sample: 'sample', end: '■ end'};

class PoolMapView {
  constructor(ranks, onMoment) {
    this.ranks = ranks;
    this.onMoment = onMoment;
    this.at = null;       // index of the span that is told
    this.picked = null;   // a caller that alone keeps its colour
    this.boxes = [];      // of drawn spans: x, y, width, span index
    this.listen();
  }

  showLane(lane) {
    this.lane = lane;
    this.picked = null;
    byId('moment').replaceChildren(...(lane ? lane.moments : []).map((moment, i) => element('option', {value: i},
      `${whyOfMoment[moment.why]}, ${duration(moment.at)}: ${bytes(moment.used)} in ${counted(moment.blocks, 'block', 'blocks')}`)));
    const peak = lane ? lane.moments.findIndex(moment => moment.why === 'peak') : -1;
    this.show(Math.max(peak, 0));
  }

  show(index) {
    this.at = null;
    this.moment = this.lane && this.lane.moments[index];
    byId('moment').value = index;
    byId('moment-before').disabled = !this.moment || index === 0;
    byId('moment-after').disabled = !this.moment || index === this.lane.moments.length - 1;
    byId('map-values').textContent = 'Point at a block to see its size, caller and age.';
    this.showFacts();
    this.showKey();
    this.draw();
    if (this.moment) {
      this.onMoment(this.moment);
    }
  }

  showMoment(moment) {
    this.show(this.lane.moments.indexOf(moment));
  }

  showFacts() {
    const moment = this.moment;
    if (!moment) {
      byId('map-facts').textContent = 'There is nothing to show.';
      return;
    }
    const facts = [`${this.lane.title} at ${duration(moment.at)}, record ${moment.seq}`,
      `used ${bytes(moment.used)} of ${bytes(moment.reserved)} reserved`];
    if (moment.granules) {
      facts.push(`${counted(moment.granules, 'piece', 'pieces')} of physical memory (${bytes(moment.granule_bytes)}); blocks are shown at the addresses that these are mapped at`);
    }
    const drawn = moment.spans.length;
    const blocks = moment.blocks - moment.left_out_blocks;
    if (drawn < blocks) {
      facts.push(`${counted(blocks, 'block', 'blocks')} drawn as ${drawn.toLocaleString('en')}: small neighbours as one`);
    }
    if (moment.left_out_areas) {
      facts.push(`left out: ${counted(moment.left_out_areas, 'slab', 'slabs')} with ${counted(moment.left_out_blocks, 'block', 'blocks')}`);
    }
    byId('map-facts').textContent = `${facts.join('; ')}.`;
  }

  colour(caller) {
    return colourOfRank(this.ranks.get(caller));
  }

  letter(caller) {
    const rank = this.ranks.get(caller);
    return rank === undefined ? '' : letters[rank];
  }

  showKey() {
    const held = new Map(this.moment ? this.moment.holders : []);
    const named = [...this.ranks.keys()].filter(name => held.has(name));
    const others = [...held].filter(([name]) => !this.ranks.has(name));
    const entries = named.map(name => element('button', {
      type: 'button', 'aria-pressed': String(this.picked === name), onclick: () => this.pick(name), title: 'Show only its blocks in colour',
    }, element('span', {class: 'swatch', style: `background:${this.colour(name)};color:${onColour()}`}, this.letter(name)), nameElement(name), ` ${bytes(held.get(name))}`));
    const count = others.length + (this.moment ? this.moment.others.count : 0);
    if (count) {
      const rest = others.reduce((sum, [, each]) => sum + each, this.moment.others.bytes);
      entries.push(element('span', {}, element('span', {class: 'swatch', style: `background:${themed('other')}`}),
        `${counted(count, 'other caller', 'other callers')} ${bytes(rest)}`));
    }
    entries.push(element('span', {}, element('span', {class: 'swatch', style: `background:${themed('free')}`}), 'not used'));
    byId('map-key').replaceChildren(...entries);
  }

  pick(name) {
    this.picked = this.picked === name ? null : name;
    this.showKey();
    this.draw();
  }

  // Bytes of a row: a power of two with which all slabs fit into about rowsAtMost rows.
  bytesOfRow() {
    const total = this.moment.areas.reduce((sum, area) => sum + area.bytes, 0);
    let row = 64 * 1024;
    while (total / row > rowsAtMost) {
      row *= 2;
    }
    const largest = Math.max(1, ...this.moment.areas.map(area => area.bytes));
    while (row / 2 >= largest && row > 512) {
      row /= 2;
    }
    return row;
  }

  draw() {
    const canvas = byId('map-canvas');
    this.boxes = [];
    const width = Math.max(300, byId('map').clientWidth - 14);
    if (!this.moment || this.moment.areas.length === 0) {
      this.size(canvas, width, 40);
      const context = canvas.getContext('2d');
      context.fillStyle = themed('dim');
      context.font = '13px system-ui, sans-serif';
      context.fillText('No block, and no slab, at this moment.', 8, 24);
      return;
    }
    this.rowBytes = this.bytesOfRow();
    this.rowWidth = width - labelWidth;
    const tops = [];
    let y = 16;
    for (const area of this.moment.areas) {
      tops.push(y);
      y += Math.max(1, Math.ceil(area.bytes / this.rowBytes)) * (rowHeight + rowGap) + areaGap;
    }
    this.tops = tops;
    this.size(canvas, width, y + 4);
    const context = canvas.getContext('2d');
    context.fillStyle = themed('dim');
    context.font = '12px system-ui, sans-serif';
    context.fillText(`a row is ${bytes(this.rowBytes)}`, labelWidth, 11);
    this.moment.areas.forEach((area, i) => this.drawArea(context, area, tops[i]));
    this.moment.spans.forEach((span, i) => this.drawSpan(context, span, i));
    this.drawCursor(context);
  }

  size(canvas, width, height) {
    const scale = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    canvas.getContext('2d').setTransform(scale, 0, 0, scale, 0, 0);
  }

  // [x, y, width] of each row that a part of an area takes.
  strips(top, offset, extent) {
    const strips = [];
    const end = offset + Math.max(extent, 1);
    for (let row = Math.floor(offset / this.rowBytes); row * this.rowBytes < end; ++row) {
      const from = Math.max(offset, row * this.rowBytes) - row * this.rowBytes;
      const to = Math.min(end, (row + 1) * this.rowBytes) - row * this.rowBytes;
      const scale = this.rowWidth / this.rowBytes;
      strips.push([labelWidth + from * scale, top + row * (rowHeight + rowGap), Math.max((to - from) * scale, 1)]);
    }
    return strips;
  }

  drawArea(context, area, top) {
    context.fillStyle = themed('text');
    context.font = '12px system-ui, sans-serif';
    context.fillText(area.slab ? `slab ${area.slab}` : 'no slab', 0, top + 13);
    context.fillStyle = themed('free');
    for (const [x, y, width] of this.strips(top, 0, area.bytes)) {
      context.fillRect(x, y, width, rowHeight);
    }
  }

  drawSpan(context, span, index) {
    const faded = this.picked !== null && span.caller !== this.picked;
    for (const [x, y, width] of this.strips(this.tops[span.area], span.offset, span.extent)) {
      context.globalAlpha = faded ? 0.25 : 1;
      context.fillStyle = this.colour(span.caller);
      // A line of the background between neighbours, where there is room.
      context.fillRect(x, y, width > 3 ? width - 1 : width, rowHeight);
      if (width > 14 && this.letter(span.caller)) {
        context.fillStyle = onColour();
        context.font = '600 11px system-ui, sans-serif';
        context.fillText(this.letter(span.caller), x + width / 2 - 4, y + 13);
      }
      this.boxes.push([x, y, width, index]);
    }
    context.globalAlpha = 1;
  }

  drawCursor(context) {
    if (this.at === null) {
      return;
    }
    context.strokeStyle = themed('text');
    context.lineWidth = 2;
    for (const [x, y, width, index] of this.boxes) {
      if (index === this.at) {
        context.strokeRect(x - 1, y - 1, width + 2, rowHeight + 2);
      }
    }
  }

  textOf(span) {
    const area = this.moment.areas[span.area];
    const age = duration(Math.max(0, this.moment.ts - span.since));
    const address = area.slab ? `0x${(BigInt(area.address) + BigInt(span.offset)).toString(16)} in slab ${area.slab}` : 'in no slab';
    return span.count === 1
      ? [exactBytes(span.bytes), `by ${span.caller}`, `age ${age}`, address]
      : [`${counted(span.count, 'small block', 'small blocks')}, ${bytes(span.bytes)}`, `mostly by ${span.caller}`, `the oldest ${age} old`, `from ${address}`];
  }

  tell(index, event) {
    this.at = index;
    const lines = this.textOf(this.moment.spans[index]);
    byId('map-values').textContent = lines.join(' · ');
    if (event) {
      tip.show(lines.join('\n'), event);
    }
  }

  boxAt(x, y) {
    return this.boxes.find(box => x >= box[0] && x < box[0] + Math.max(box[2], 2) && y >= box[1] && y < box[1] + rowHeight);
  }

  move(by) {
    const last = this.moment.spans.length - 1;
    if (last < 0) {
      return;
    }
    const next = this.at === null ? (by > 0 ? 0 : last) : Math.max(0, Math.min(last, this.at + by));
    this.tell(next);
    this.draw();
    const box = this.boxes.find(each => each[3] === next);
    const view = byId('map');
    if (box && (box[1] < view.scrollTop || box[1] + rowHeight > view.scrollTop + view.clientHeight)) {
      view.scrollTop = box[1] - view.clientHeight / 2;
    }
  }

  listen() {
    const canvas = byId('map-canvas');
    canvas.addEventListener('mousemove', event => {
      const rect = canvas.getBoundingClientRect();
      const box = this.boxAt(event.clientX - rect.left, event.clientY - rect.top);
      if (box) {
        this.tell(box[3], event);
      } else {
        tip.hide();
      }
    });
    canvas.addEventListener('mouseleave', () => tip.hide());
    byId('map').addEventListener('keydown', event => {
      const steps = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -20, ArrowDown: 20, Home: -Infinity, End: Infinity};
      if (this.moment && steps[event.key] !== undefined && !event.altKey) {
        event.preventDefault();
        this.move(steps[event.key]);
      }
    });
    byId('moment').addEventListener('change', event => this.show(Number(event.target.value)));
    const step = by => this.show(this.lane.moments.indexOf(this.moment) + by);
    byId('moment-before').addEventListener('click', () => step(-1));
    byId('moment-after').addEventListener('click', () => step(1));
    window.addEventListener('resize', () => this.draw());
  }
}
