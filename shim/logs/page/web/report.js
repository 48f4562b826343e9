// Puts the parts of a report together: which lanes are shown, and which moment.

function start() {
  const model = modelFrom(JSON.parse(byId('log').textContent));
  let chart = null;
  const map = new PoolMapView(model.ranks, moment => chart && chart.mark(moment));
  const flame = new FlameView();
  const shown = byId('shown');
  const show = () => {
    const lanes = shown.value === 'all' ? model.lanes : [model.lanes[Number(shown.value)]];
    map.showLane(lanes.length === 1 ? lanes[0] : model.busiest);
    flame.showLanes(lanes);
    callers.showLanes(lanes);
    chart.showLanes(lanes);
  };
  const callers = new CallersTable(caller => {
    if (!caller.lanes.includes(map.lane)) {
      map.showLane(caller.lanes[0]);
    }
    map.pick(caller.name);
    byId('map').scrollIntoView({block: 'center'});
  });
  startTheme(() => {
    chart.redraw();
    map.showKey();
    map.draw();
    flame.draw();
  });
  if (model.lanes.length !== 1) {
    shown.append(element('option', {value: 'all'}, 'all processes'));
  }
  shown.append(...model.lanes.map(lane => element('option', {value: lane.number}, lane.title)));
  shown.addEventListener('change', show);
  showSummary(model, {
    moment: (lane, at) => chart.reveal(lane, at),
    caller: name => callers.reveal(name),
    lane: lane => {
      shown.value = lane.number;
      show();
      byId('time').scrollIntoView({block: 'center'});
    },
  });
  chart = new TimeChart(model, (lane, moment) => {
    if (map.lane !== lane) {
      map.showLane(lane);
    }
    map.showMoment(moment);
  });
  show();
  showLeftOut(model);
  // For tests, and for who looks at the page from a console.
  window.rationPage = {model, chart, map, flame, callers, abridged, bytes};
  document.documentElement.dataset.ready = 'true';
}

start();
