// Which callers held memory over time: as areas under the lines of the chart, and as a list at the moment that was clicked.

class CallerStack {
  constructor(ranks) {
    this.ranks = ranks;
    this.names = [...ranks.keys()];
    this.points = [];
    this.times = [];
  }

  showLanes(lanes) {
    this.points = stackOf(lanes, this.ranks);
    this.times = this.points.map(point => point.at);
  }

  // [name, bytes, rank] of those that held something, the one with most first and the others together last.
  heldAt(at) {
    const point = this.points[lastNotAfter(this.times, at)];
    const held = (point ? point.held : []).map((count, rank) => [this.names[rank] || 'other callers', count, rank]).filter(each => each[1] > 0);
    return held.sort((a, b) => (this.names[a[2]] ? 0 : 1) - (this.names[b[2]] ? 0 : 1) || b[1] - a[1]);
  }

  draw(context, graph) {
    const [from, to] = graph.xAxisRange().map(seconds => seconds * nsOfSecond);
    const first = Math.max(0, lastNotAfter(this.times, from));
    const points = this.points.slice(first, lastNotAfter(this.times, to) + 1);
    if (points.length === 0) {
      return;
    }
    const xs = [...points.map(point => graph.toDomXCoord(point.at / nsOfSecond)), graph.toDomXCoord(Math.min(to, this.times[this.times.length - 1]) / nsOfSecond)];
    let lower = points.map(() => 0);
    for (let rank = 0; rank <= this.ranks.size; ++rank) {
      const upper = lower.map((below, i) => below + points[i].held[rank]);
      this.fill(context, xs, upper.map(value => graph.toDomYCoord(value)), lower.map(value => graph.toDomYCoord(value)), rank);
      lower = upper;
    }
  }

  // The area between two lines of steps.
  fill(context, xs, upper, lower, rank) {
    context.globalAlpha = 0.45;
    context.fillStyle = colourOfRank(rank);
    context.beginPath();
    upper.forEach((y, i) => {
      context.lineTo(xs[i], y);
      context.lineTo(xs[i + 1], y);
    });
    for (let i = lower.length - 1; i >= 0; --i) {
      context.lineTo(xs[i + 1], lower[i]);
      context.lineTo(xs[i], lower[i]);
    }
    context.fill();
    context.globalAlpha = 1;
  }

  // The list below the chart: what `lines` say of the moment, and who held memory.
  tell(at, lines) {
    byId('state').replaceChildren(
      element('ul', {}, ...lines.map(line => element('li', {}, line))),
      element('div', {class: 'key'}, ...this.heldAt(at).map(([name, held, rank]) => element('span', {},
        element('span', {class: 'swatch', style: `background:${colourOfRank(rank)};color:${onColour()}`}, letters[rank] || ''),
        nameElement(name), ` ${bytes(held)}`))));
    byId('state').hidden = false;
    byId('state').scrollIntoView({block: 'nearest'});
  }
}
