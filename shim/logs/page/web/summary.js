// The first screen: the worst leak, a line for each process, and what would have helped where memory was refused.

function topLeak(model) {
  let top = null;
  for (const lane of model.lanes) {
    for (const caller of lane.callers) {
      if (caller.left.bytes > 0 && (!top || caller.left.bytes > top.caller.left.bytes)) {
        top = {lane, caller};
      }
    }
  }
  return top;
}

// What holds for every figure of a log without an end.
function caveats(logs) {
  return logs.filter(log => !log.ended).map(log => log.cut_off
    ? ` ${log.log} was cut off: what came after that is not known.`
    : ` ${log.log} has no end: the program was killed, or still ran.`);
}

function showTopLeak(model) {
  const box = byId('top-leak');
  const top = topLeak(model);
  box.classList.toggle('is-none', !top);
  if (!top) {
    box.append(model.lanes.length ? 'Every block was freed.' : 'No device memory was requested.', ...caveats(model.logs));
    return;
  }
  const all = model.lanes.reduce((sum, lane) => sum + lane.left_bytes, 0);
  box.append('Top leak: ', element('strong', {id: 'top-leak-name'}, top.caller.name),
    ` left ${bytes(top.caller.left.bytes)} in ${counted(top.caller.left.count, 'block', 'blocks')}`,
    ` never freed, of ${bytes(all)} in all${model.lanes.length > 1 ? `, in ${top.lane.title}` : ''}.`,
    ...caveats(model.logs));
}

function processRow(lane) {
  const cell = (text, more = {}) => element('td', more, text);
  const exact = count => ({title: `${count.toLocaleString('en')} bytes`});
  const limit = lane.limit_asked ? `limit ${bytes(lane.limit)}` : `${bytes(lane.total)}, no limit`;
  return element('tr', {'data-lane': lane.number},
    cell(lane.title, {class: 'name', title: `${lane.log.log}\n${lane.log.program}\n${lane.name}`}),
    cell(bytes(lane.peak_bytes), exact(lane.peak_bytes)),
    cell(`${percent(lane.peak_bytes, lane.limit_asked ? lane.limit : lane.total)} of ${limit}`),
    cell(lane.peak_seq ? `${duration(lane.peak_ts)}, record ${lane.peak_seq}` : '–'),
    cell(bytes(lane.reserved_peak_bytes), exact(lane.reserved_peak_bytes)),
    cell(`${lane.allocs.toLocaleString('en')} / ${lane.frees.toLocaleString('en')}`),
    cell(lane.left_count ? `${bytes(lane.left_bytes)} in ${lane.left_count.toLocaleString('en')}` : 'nothing',
      {class: lane.left_count ? 'bad' : '', ...exact(lane.left_bytes)}),
    cell(lane.refusalCount.toLocaleString('en'), {class: lane.refusalCount ? 'bad' : ''}));
}

function showSummary(model) {
  showTopLeak(model);
  const titles = ['Process', 'Peak', 'of', 'Peak at', 'Reserved at most', 'Allocations / frees', 'Never freed', 'Refused'];
  byId('processes').append(
    element('thead', {}, element('tr', {}, ...titles.map((title, i) => element('th', {scope: 'col', class: i ? '' : 'name'}, title)))),
    element('tbody', {}, ...model.lanes.map(processRow)));
  for (const lane of model.lanes) {
    for (const each of lane.remedies) {
      byId('remedies').append(element('li', {},
        element('b', {}, `▼ refused ${counted(each.count, 'call', 'calls')}`),
        ` of ${each.api} (${each.reason})${each.largest_request ? `, the largest ${bytes(each.largest_request)}` : ''}: ${each.remedy}.`,
        model.lanes.length > 1 ? ` ${lane.title}` : ''));
    }
  }
  byId('subtitle').textContent =
    `${counted(model.logs.length, 'process', 'processes')}, ${duration(model.end)} from ${model.start.toISOString().replace('T', ' ').slice(0, 19)} UTC`;
}

function leftOutOf(lane) {
  const out = lane.left_out;
  const drawn = lane.moments.filter(moment => moment.left_out_areas);
  return [
    [out.points, 'point of the lines', 'points of the lines', 'the peak and the extremes of each interval stay'],
    [out.refusals, 'refusal in the chart', 'refusals in the chart', 'they are counted in the table above'],
    [out.moments, 'sampled map', 'sampled maps', 'the logs together hold too many blocks'],
    [out.callers, 'caller', 'callers', 'those with least bytes'],
    [out.frames, 'frame of the flame graph', 'frames of the flame graph', 'those too narrow to be seen'],
    [drawn.reduce((sum, moment) => sum + moment.left_out_areas, 0), 'slab in maps', 'slabs in maps', 'the smallest'],
    [lane.log.dropped, 'record that the log lacks', 'records that the log lacks', 'all figures are too low'],
  ].filter(([count]) => count > 0).map(([count, one, many, why]) => `${lane.title}: ${counted(count, one, many)} (${why})`);
}

function showLeftOut(model) {
  const lines = model.lanes.flatMap(leftOutOf);
  byId('left-out').append(...(lines.length ? lines : ['Nothing.']).map(line => element('li', {}, line)));
}
