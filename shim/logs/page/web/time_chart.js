// Used, reserved and limit over time, with refusals and the peak, and the sum of processes and the limit of their group;
// dygraphs draws, zooms by drag and tells the point under the mouse.

const linesAtFirst = 4;
const refusalsInValues = 3;
const marksApart = 5;        // pixels; refusals that are nearer are one mark
const linesOfRefusals = 40;  // more would hide the chart

// What lanes used together.
function sumOf(lanes) {
  const changes = [];
  for (const lane of lanes) {
    lane.used.forEach((value, i) => changes.push([lane.times[i], value - (lane.used[i - 1] || 0)]));
    changes.push([lane.end, -(lane.used[lane.used.length - 1] || 0)]);
  }
  changes.sort((a, b) => a[0] - b[0]);
  let sum = 0;
  return changes.map(([at, by]) => [at, (sum += by)]);
}

class TimeChart {
  constructor(model, onMoment) {
    this.model = model;
    this.onMoment = onMoment;
    this.stack = new CallerStack(model.ranks);
    this.cursor = null;  // ns; the keyboard's
    this.moment = null;
    this.choosesFrom(model.lanes);
    byId('limit-in-scale').checked = model.lanes.some(lane => lane.reserved_peak_bytes * 2 >= lane.bound);
    this.listen();
    this.showKey();
    this.draw();
  }

  // Those of the largest peak have lines at first; the sum and the callers are of all.
  choosesFrom(lanes) {
    const byPeak = [...lanes].sort((a, b) => b.peak_bytes - a.peak_bytes);
    this.summed = lanes;
    this.shown = new Set(byPeak.slice(0, linesAtFirst));
  }

  lanes() {
    return this.model.lanes.filter(lane => this.shown.has(lane));
  }

  // A checkbox for each lane, with the dashes and the colour of its lines.
  showKey() {
    const line = (lane, isReserved) => {
      const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
      const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
      svg.setAttribute('width', 30);
      svg.setAttribute('height', 10);
      path.setAttribute('d', 'M0 5H30');
      path.setAttribute('stroke', this.colour(lane));
      path.setAttribute('stroke-width', isReserved ? 1.2 : 2.5);
      path.setAttribute('stroke-dasharray', (isReserved ? [3, 3] : dashes[lane.number % dashes.length] || []).join(' '));
      svg.append(path);
      return svg;
    };
    byId('lanes').replaceChildren(...this.model.lanes.map(lane => {
      const box = element('input', {type: 'checkbox', 'data-lane': lane.number, onchange: () => {
        this.shown[box.checked ? 'add' : 'delete'](lane);
        this.draw();
      }});
      box.checked = this.shown.has(lane);
      return element('label', {}, box, ` ${lane.title}: used `, line(lane, false), ' reserved ', line(lane, true));
    }), element('span', {}, `▼ refused  ◆ peak  ┄ limit${this.summed.length > 1 ? '  ━ sum of used' : ''}`
      + `${this.groupLimit() ? '  ╌ limit of the group' : ''}; areas: callers, coloured as in the map`));
  }

  // The smallest of a group of the lanes; 0: none.
  groupLimit() {
    return this.summed.reduce((least, lane) => (lane.group_limit && (!least || lane.group_limit < least) ? lane.group_limit : least), 0);
  }

  colour(lane) {
    return palette()[lane.number % palette().length];
  }

  // One row for each time at which a line changes; a line that does not has null there, and is drawn on. dygraphs begins its
  // dashes anew at each value.
  rows() {
    const lanes = this.lanes();
    const rows = new Map();
    const extra = 1 + 3 * lanes.length;
    const width = extra + (this.sum ? 1 : 0) + (this.groupLimit() ? 1 : 0);
    const set = (time, column, value) => {
      let row = rows.get(time);
      if (!row) {
        row = new Array(width).fill(null);
        row[0] = time / nsOfSecond;
        rows.set(time, row);
      }
      row[column] = value;
    };
    set(0, 0, 0);
    set(this.model.end, 0, this.model.end / nsOfSecond);
    (this.sum || []).forEach(([at, value]) => set(at, extra, value));
    [0, this.model.end].forEach(at => this.groupLimit() && set(at, width - 1, this.groupLimit()));
    lanes.forEach((lane, i) => {
      [lane.used, lane.reserved, ...(lane.limit_asked ? [[lane.limit]] : [])].forEach((values, j) => {
        const column = 1 + 3 * i + j;
        const first = lane.times[0] === lane.log.start_ns || j === 2 ? values[0] : 0;
        set(lane.log.start_ns, column, first || 0);
        values.forEach((value, k) => {
          if (j < 2 && value !== values[k - 1]) {
            set(lane.times[k], column, value);
          }
        });
        set(lane.end, column, values.length ? values[values.length - 1] : 0);
      });
    });
    return [...rows.values()].sort((a, b) => a[0] - b[0]);
  }

  highest() {
    const lanes = this.lanes();
    const withLimit = byId('limit-in-scale').checked;
    const sum = (this.sum || []).reduce((most, [, value]) => Math.max(most, value), 0);
    return Math.max(1, sum, withLimit ? this.groupLimit() : 0,
      ...lanes.map(lane => Math.max(lane.peak_bytes, lane.reserved_peak_bytes, withLimit ? lane.bound : 0))) * 1.08;
  }

  options() {
    const lanes = this.lanes();
    const series = {};
    const labels = ['time'];
    for (const lane of lanes) {
      const name = `#${lane.number}`;
      labels.push(`${name} used`, `${name} reserved`, `${name} limit`);
      series[`${name} used`] = {color: this.colour(lane), strokeWidth: 2, strokePattern: dashes[lane.number % dashes.length]};
      series[`${name} reserved`] = {color: this.colour(lane), strokeWidth: 1.2, strokePattern: [3, 3]};
      series[`${name} limit`] = {color: themed('dim'), strokeWidth: 1, strokePattern: [1, 4]};
    }
    if (this.sum) {
      labels.push('sum');
      series.sum = {color: themed('text'), strokeWidth: 1.5};
    }
    if (this.groupLimit()) {
      labels.push('group limit');
      series['group limit'] = {color: themed('bad'), strokeWidth: 1, strokePattern: [6, 4]};
    }
    return {
      labels,
      series,
      stepPlot: true,
      connectSeparatedPoints: true,
      legend: 'never',
      valueRange: [0, this.highest()],
      gridLineColor: themed('grid'),
      axisLineColor: themed('line'),
      highlightCircleSize: 3,
      axes: {
        y: {axisLabelFormatter: value => shortBytes(value), axisLabelWidth: 70, labelsKMG2: true},
        x: {axisLabelFormatter: (value, granularity, opts, graph) => this.timeLabel(value, graph), axisLabelWidth: 80},
      },
      underlayCallback: (context, area, graph) => this.drawMarks(context, area, graph),
      highlightCallback: (event, x) => this.tell(x * nsOfSecond, event),
      unhighlightCallback: () => tip.hide(),
      clickCallback: event => this.choose(this.timeAt(event)),
      animatedZooms: false,
    };
  }

  timeAt(event) {
    return this.graph.toDataXCoord(event.clientX - byId('time-chart').getBoundingClientRect().left) * nsOfSecond;
  }

  timeLabel(seconds, graph) {
    const [from, to] = graph.xAxisRange();
    return to - from < 2e-3 ? `${(seconds * 1e6).toFixed(0)} µs` : to - from < 2 ? `${(seconds * 1e3).toFixed(to - from < 0.02 ? 2 : 0)} ms`
      : `${seconds.toFixed(to - from < 20 ? 2 : 0)} s`;
  }

  draw() {
    if (this.graph) {
      this.graph.destroy();
      this.graph = null;
    }
    if (this.shown.size === 0) {
      byId('time-chart').textContent = 'No line is chosen.';
      return;
    }
    byId('time-chart').textContent = '';
    this.sum = this.summed.length > 1 ? sumOf(this.summed) : null;
    this.stack.showLanes(this.summed);
    this.graph = new Dygraph(byId('time-chart'), this.rows(), this.options());
  }

  // After a change of the theme, too.
  redraw() {
    this.showKey();
    this.draw();
  }

  drawMarks(context, area, graph) {
    context.save();
    context.beginPath();
    context.rect(area.x, area.y, area.w, area.h);
    context.clip();
    this.stack.draw(context, graph);
    context.font = '12px system-ui, sans-serif';
    for (const lane of this.lanes()) {
      this.drawRefusals(context, area, graph, lane);
      if (lane.peak_seq) {
        const [x, y] = graph.toDomCoords((lane.log.start_ns + lane.peak_ts) / nsOfSecond, lane.peak_bytes);
        context.fillStyle = this.colour(lane);
        context.fillText('◆', x - 5, y - 3);
      }
    }
    const line = (at, colour, width) => {
      const x = graph.toDomXCoord(at / nsOfSecond);
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.beginPath();
      context.moveTo(x, area.y);
      context.lineTo(x, area.y + area.h);
      context.stroke();
    };
    if (this.moment) {
      line(this.moment.at, themed('dim'), 1);
    }
    if (this.cursor !== null) {
      line(this.cursor, themed('focus'), 2);
    }
    context.restore();
  }

  drawRefusals(context, area, graph, lane) {
    context.fillStyle = themed('bad');
    context.strokeStyle = themed('bad');
    context.lineWidth = 1;
    context.setLineDash([2, 3]);
    const places = [];
    for (const refusal of lane.refusals) {
      const x = Math.round(graph.toDomXCoord(refusal.at / nsOfSecond));
      const isSeen = x >= area.x - 8 && x <= area.x + area.w + 8;
      if (isSeen && (places.length === 0 || x - places[places.length - 1] >= marksApart)) {
        places.push(x);
      }
    }
    for (const x of places) {
      if (places.length <= linesOfRefusals) {
        context.beginPath();
        context.moveTo(x, area.y + 10);
        context.lineTo(x, area.y + area.h);
        context.stroke();
      }
      context.fillText('▼', x - 6, area.y + 11);
    }
    context.setLineDash([]);
  }

  // What is held at a time, by whom, and which refusals are near.
  textAt(at) {
    const [from, to] = this.graph.xAxisRange();
    const near = (to - from) * nsOfSecond / 150;
    const lines = [`at ${duration(Math.round(at))}`];
    for (const lane of this.lanes()) {
      if (at < lane.log.start_ns || at > lane.end) {
        continue;
      }
      const i = lastNotAfter(lane.times, at);
      const rest = lane.limit_asked ? `limit ${bytes(lane.limit)}` : lane.group_limit ? `limit of its group ${bytes(lane.group_limit)}` : 'no limit';
      lines.push(`${lane.title}: used ${bytes(lane.used[i] || 0)}, reserved ${bytes(lane.reserved[i] || 0)}, ${rest}`);
      const refused = lane.refusals.filter(each => Math.abs(each.at - at) <= near);
      for (const each of refused.slice(0, refusalsInValues)) {
        lines.push(`  ▼ ${each.api} of ${bytes(each.requested)} refused, ${each.reason}, at ${duration(each.at)}${each.times > 1 ? `, asked for ${each.times} times` : ''}; at most ${bytes(each.largestFree)} could be had at once`);
      }
      if (refused.length > refusalsInValues) {
        lines.push(`  and ${counted(refused.length - refusalsInValues, 'more refusal', 'more refusals')} near`);
      }
    }
    return lines;
  }

  heldWords(at) {
    const held = this.stack.heldAt(at);
    return held.length ? [`held by ${held.slice(0, 3).map(([name, count]) => `${abridged(name)} ${bytes(count)}`).join(', ')}`] : [];
  }

  tell(at, event) {
    const lines = [...this.textAt(at), ...this.heldWords(at)];
    byId('time-values').textContent = lines.join(' · ');
    if (event) {
      tip.show(lines.join('\n'), event);
    }
  }

  // Brings the state at a time into view: who held what, and the map of the nearest moment.
  choose(at) {
    this.cursor = at;
    this.stack.tell(at, this.textAt(at));
    const moments = this.lanes().flatMap(lane => lane.moments.map(moment => ({lane, moment})));
    const distance = each => Math.abs(each.moment.at - at);
    const nearest = moments.reduce((best, each) => (!best || distance(each) < distance(best) ? each : best), null);
    if (nearest) {
      this.onMoment(nearest.lane, nearest.moment);
    }
  }

  // Of a lane, which may not be shown yet.
  reveal(lane, at) {
    if (!this.shown.has(lane)) {
      this.shown.add(lane);
      this.redraw();
    }
    byId('time').scrollIntoView({block: 'start'});
    this.choose(at);
  }

  showLanes(lanes) {
    this.choosesFrom(lanes);
    this.redraw();
  }

  mark(moment) {
    this.moment = moment;
    this.refresh();
  }

  refresh() {
    if (this.graph) {
      this.graph.updateOptions({});
    }
  }

  // Around `centre`, in seconds; a factor below 1 zooms in.
  zoom(factor, centre) {
    if (!this.graph) {
      return;
    }
    const all = this.model.end / nsOfSecond;
    const [from, to] = this.graph.xAxisRange();
    const middle = centre === undefined ? (from + to) / 2 : centre;
    const least = all / 1e6;
    const next = [Math.max(0, middle - (middle - from) * factor), Math.min(all, middle + (to - middle) * factor)];
    if (next[1] - next[0] > least) {
      this.graph.updateOptions({dateWindow: next});
    }
  }

  pan(part) {
    const all = this.model.end / nsOfSecond;
    const [from, to] = this.graph.xAxisRange();
    const by = Math.max(-from, Math.min(all - to, (to - from) * part));
    this.graph.updateOptions({dateWindow: [from + by, to + by]});
  }

  all() {
    if (this.graph) {
      this.graph.updateOptions({dateWindow: null, valueRange: [0, this.highest()]});
    }
  }

  moveCursor(direction) {
    const [from, to] = this.graph.xAxisRange().map(seconds => seconds * nsOfSecond);
    const step = (to - from) / 100;
    const start = this.cursor === null || this.cursor < from || this.cursor > to ? (direction > 0 ? from - step : to + step) : this.cursor;
    this.cursor = Math.max(0, Math.min(this.model.end, start + direction * step));
    if (this.cursor < from || this.cursor > to) {
      this.pan(direction * 0.5);
    }
    this.refresh();
    this.tell(this.cursor);
  }

  listen() {
    const box = byId('time');
    byId('zoom-in').addEventListener('click', () => this.zoom(0.5));
    byId('zoom-out').addEventListener('click', () => this.zoom(2));
    byId('zoom-all').addEventListener('click', () => this.all());
    byId('limit-in-scale').addEventListener('change', () => this.all());
    // Unless it is focused, or Ctrl is held, the wheel scrolls the page.
    box.addEventListener('wheel', event => {
      if (this.graph && (event.ctrlKey || document.activeElement === box)) {
        event.preventDefault();
        this.zoom(event.deltaY < 0 ? 0.8 : 1.25, this.timeAt(event) / nsOfSecond);
      }
    }, {passive: false});
    box.addEventListener('mousedown', () => box.focus({preventScroll: true}));
    box.addEventListener('keydown', event => {
      const zoomAt = this.cursor === null ? undefined : this.cursor / nsOfSecond;
      const actions = {
        ArrowLeft: () => (event.shiftKey ? this.pan(-0.2) : this.moveCursor(-1)),
        ArrowRight: () => (event.shiftKey ? this.pan(0.2) : this.moveCursor(1)),
        '+': () => this.zoom(0.5, zoomAt),
        '=': () => this.zoom(0.5, zoomAt),
        '-': () => this.zoom(2, zoomAt),
        0: () => this.all(),
        Enter: () => this.cursor !== null && this.choose(this.cursor),
      };
      if (this.graph && !event.ctrlKey && !event.altKey && actions[event.key]) {
        event.preventDefault();
        actions[event.key]();
      }
    });
  }
}
