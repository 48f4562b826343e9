// Puts the parts together: which lanes are shown, which moment, and the theme.

function startTheme(onChange) {
  const root = document.documentElement;
  const system = window.matchMedia('(prefers-color-scheme: dark)');
  let chosen = null;
  try {
    chosen = window.localStorage.getItem('ration-theme');
  } catch {
    // A page that is opened as a file may have no storage.
  }
  const apply = () => {
    root.dataset.theme = chosen || (system.matches ? 'dark' : 'light');
    byId('theme').textContent = root.dataset.theme === 'dark' ? 'Light' : 'Dark';
  };
  apply();
  system.addEventListener('change', () => {
    apply();
    onChange();
  });
  byId('theme').addEventListener('click', () => {
    chosen = root.dataset.theme === 'dark' ? 'light' : 'dark';
    try {
      window.localStorage.setItem('ration-theme', chosen);
    } catch {
      // It holds until the page is closed.
    }
    apply();
    onChange();
  });
}

function start() {
  const model = modelFrom(JSON.parse(byId('log').textContent));
  let chart = null;
  const map = new PoolMapView(moment => chart && chart.mark(moment));
  const flame = new FlameView();
  const shown = byId('shown');
  const show = () => {
    const lanes = shown.value === 'all' ? model.lanes : [model.lanes[Number(shown.value)]];
    map.showLane(lanes.length === 1 ? lanes[0] : model.busiest);
    flame.showLanes(lanes);
    callers.showLanes(lanes);
  };
  const callers = new CallersTable((lane, name) => {
    if (map.lane !== lane) {
      map.showLane(lane);
    }
    map.pick(name);
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
  showSummary(model);
  chart = new TimeChart(model, (lane, moment) => {
    if (map.lane !== lane) {
      map.showLane(lane);
    }
    map.showMoment(moment);
  });
  show();
  showLeftOut(model);
  // For tests, and for who looks at the page from a console.
  window.rationPage = {model, chart, map, flame, callers};
  document.documentElement.dataset.ready = 'true';
}

start();
