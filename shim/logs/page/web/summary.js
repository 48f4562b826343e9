// The first screen: what was refused, what grows, what was left, and a line for each process.

const refusalsInBanner = 4;
const callersInBanner = 3;
const namesInBanner = 8;

// What holds for every figure of a log, or of its callers' names.
function caveats(logs) {
  const logsOf = new Map();
  for (const log of logs) {
    for (const note of [...endNotes(log.ended, log.cut_off), ...(log.losses ? [log.losses] : []), ...log.notes]) {
      logsOf.set(note, [...(logsOf.get(note) || []), log.log]);
    }
  }
  return [...logsOf].map(([note, names]) => `${logs.length > 1 ? `${listed(names)}: ` : ''}${note}.`);
}

function listed(names) {
  const left = names.length - namesInBanner;
  return left > 0 ? `${names.slice(0, namesInBanner).join(', ')} and ${left} more` : names.join(', ');
}

function heldWords(held) {
  return held.flatMap(([name, count], i) => [i ? ', ' : '', `${bytes(count)} by `, nameElement(name)]);
}

// A line of the banner about a lane, which leads to what it is about.
function bannerLine(word, isBad, lane, onClick, ...words) {
  const line = element('li', {class: isBad ? 'bad' : ''}, element('b', {}, word), ' ', ...words, element('span', {class: 'where'}));
  if (onClick) {
    line.append('\u00a0', element('button', {type: 'button', onclick: onClick}, 'Show'));
  }
  return {line, lane};
}

// Lines of several lanes that differ only in their times become one line, that of the first lane.
function merged(model, lines) {
  const alike = new Map();
  for (const each of lines) {
    const key = each.line.textContent.replace(/[0-9.]+ (s|ms|µs|ns)\b/g, '');
    alike.set(key, [...(alike.get(key) || []), each]);
  }
  return [...alike.values()].map(same => {
    const {line} = same[0];
    const names = listed(same.map(each => each.lane.title));
    line.querySelector('.where').textContent = model.lanes.length > 1 ? ` [${names}${same.length > 1 ? '; the times are of the first' : ''}]` : '';
    return line;
  });
}

function refusalLines(model, show) {
  const all = model.lanes.flatMap(lane => lane.remedies.map(each => ({lane, each})));
  all.sort((a, b) => b.each.largest_request - a.each.largest_request);
  const lines = merged(model, all.map(({lane, each}) => bannerLine('Refused:', true, lane,
    () => show.moment(lane, lane.log.start_ns + each.largest_ts),
    `${atLeast(lane)}${counted(each.count, 'call', 'calls')} of ${each.api}, ${each.reason}; `,
    `${each.largest_request ? `the largest ${exactBytes(each.largest_request)} ` : ''}at ${duration(lane.log.start_ns + each.largest_ts)}`,
    `${each.lack ? `, ${each.lack}` : ''}. ${each.remedy[0].toUpperCase()}${each.remedy.slice(1)}. `,
    `The program held ${each.used ? bytes(each.used) : 'nothing'} then${each.held.length ? ': ' : '.'}`, ...heldWords(each.held.slice(0, callersInBanner)),
    each.holders.length ? `. By process: ${each.holders.join('; ')}.` : '')));
  const more = lines.length - refusalsInBanner;
  return more <= 0 ? lines : [...lines.slice(0, refusalsInBanner), element('li', {}, `${more} more kinds of refusals are in the chart.`)];
}

function growthLines(model, show) {
  return merged(model, model.lanes.flatMap(lane => lane.growing.slice(0, callersInBanner).map(([name, from, to, oldest]) =>
    bannerLine('Grows:', true, lane, () => show.caller(name), nameElement(name, {class: 'grows'}),
      `: the least that it held rose from ${bytes(from)} to ${bytes(to)}; its oldest block lived for ${duration(oldest)}${asFarAsItGoes(lane.log.ended)}.`))));
}

// Counts of a log that is not whole are lower bounds.
function atLeast(lane) {
  return lane.log.is_whole ? '' : 'at least ';
}

function asFarAsItGoes(isWhole) {
  return isWhole ? '' : ', as far as the log goes';
}

// A leak is what a program forgot that ended by itself; one that could not go on still held what it worked with.
function leftLines(model, show) {
  return merged(model, model.lanes.filter(lane => lane.left_count).map(lane => {
    const caller = lane.callers.reduce((most, each) => (!most || each.left.bytes > most.left.bytes ? each : most), null);
    const isLeak = lane.log.ended_cleanly;
    const word = isLeak ? 'Leaked:' : lane.log.ended ? 'Held at the end:' : 'Held when the log ends:';
    const all = `${bytes(lane.left_bytes)} in ${counted(lane.left_count, 'block', 'blocks')}`;
    return caller && caller.left.bytes ? bannerLine(word, isLeak, lane, () => show.caller(caller.name),
      `${all}, ${bytes(caller.left.bytes)} of it by `, nameElement(caller.name, {class: 'left'}), `; the oldest ${duration(caller.oldest)} old.`)
      : bannerLine(word, false, lane, null, `${all}.`);
  }));
}

function showBanner(model, show) {
  const bad = [...refusalLines(model, show), ...growthLines(model, show), ...leftLines(model, show)];
  const isWhole = model.logs.every(log => log.is_whole);
  const fine = `${model.lanes.length ? 'Nothing was refused, and every block was freed' : 'No device memory was requested'}${asFarAsItGoes(isWhole)}.`;
  const lines = bad.length ? bad : [element('li', {}, fine)];
  byId('banner').classList.toggle('is-none', !bad.some(line => line.classList.contains('bad')));
  byId('banner').append(...lines, ...caveats(model.logs).map(note => element('li', {}, note)));
}

function peakOf(lane, peak) {
  return lane.peak_is_exact ? bytes(peak) : peak ? `at least ${bytes(peak)}` : 'unknown';
}

function processRow(lane, show) {
  const cell = (text, more = {}) => element('td', more, text);
  const exact = count => ({title: `${count} bytes`});
  const limit = (lane.limit_asked ? `limit ${bytes(lane.limit)}` : `${bytes(lane.total)}, no limit${lane.group_limit ? ' of its own' : ''}`)
    + (lane.group_limit ? `, in a group of ${bytes(lane.group_limit)}` : '');
  return element('tr', {'data-lane': lane.number},
    element('td', {class: 'name', title: `${lane.log.log}\n${lane.log.program}\n${lane.name}`},
      element('button', {type: 'button', title: 'Show only this process', onclick: () => show.lane(lane)}, lane.title)),
    cell(peakOf(lane, lane.peak_bytes), exact(lane.peak_bytes)),
    cell(`${lane.peak_is_exact ? '' : 'at least '}${percent(lane.peak_bytes, lane.limit_asked ? lane.limit : lane.total)} of ${limit}`),
    cell(lane.peak_seq ? `${duration(lane.log.start_ns + lane.peak_ts)}, record ${lane.peak_seq}` : '–'),
    cell(peakOf(lane, lane.reserved_peak_bytes), exact(lane.reserved_peak_bytes)),
    cell(`${atLeast(lane)}${lane.allocs.toLocaleString('en')} / ${lane.frees.toLocaleString('en')}`),
    cell(lane.left_count ? `${bytes(lane.left_bytes)} in ${lane.left_count.toLocaleString('en')}` : `nothing${asFarAsItGoes(lane.log.ended)}`,
      {class: lane.left_count && lane.log.ended_cleanly ? 'bad' : '', ...exact(lane.left_bytes)}),
    cell(`${atLeast(lane)}${lane.refusalCount.toLocaleString('en')}`, {class: lane.refusalCount ? 'bad' : ''}));
}

// `show`: moment(lane, ns), caller(name) and lane(lane) bring what was clicked into view.
function showSummary(model, show) {
  showBanner(model, show);
  const titles = ['Process', 'Peak', 'of', 'Peak at', 'Peak reserved', 'Allocations / frees', 'Not freed', 'Refused'];
  byId('processes').append(
    element('thead', {}, element('tr', {}, ...titles.map((title, i) => element('th', {scope: 'col', class: i ? '' : 'name'}, title)))),
    element('tbody', {}, ...model.lanes.map(lane => processRow(lane, show))));
  byId('title').textContent = model.title;
  document.title = `${model.title} – Ration report`;
  byId('subtitle').textContent =
    `${counted(model.logs.length, 'process', 'processes')}, ${duration(model.end)} from ${model.start.toISOString().replace('T', ' ').slice(0, 19)} UTC`
    + (model.logs.length > 1 ? '; all times count from then' : '');
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
  ].filter(([count]) => count > 0).map(([count, one, many, why]) => `${lane.title}: ${counted(count, one, many)} (${why})`);
}

function showLeftOut(model) {
  const lines = model.lanes.flatMap(leftOutOf);
  byId('left-out').append(...(lines.length ? lines : ['Nothing.']).map(line => element('li', {}, line)));
}
