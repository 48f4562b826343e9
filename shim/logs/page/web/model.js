// The document that `ration report` wrote (shim/cli/page/page_json.cc), as the parts of the page need it.
// A lane is one device of one process.

const spanFields = 7;  // numbers for each span of a map: area, offset, extent, bytes, count, caller, since

function figuresFrom(row, at) {
  return {
    peak: {bytes: row[at], count: row[at + 1]},
    total: {bytes: row[at + 2], count: row[at + 3]},
    left: {bytes: row[at + 4], count: row[at + 5]},
  };
}

function spansFrom(flat, names) {
  const spans = [];
  for (let i = 0; i < flat.length; i += spanFields) {
    spans.push({
      area: flat[i], offset: flat[i + 1], extent: flat[i + 2], bytes: flat[i + 3], count: flat[i + 4],
      caller: names[flat[i + 5]] || '(unknown)', since: flat[i + 6],
    });
  }
  return spans;
}

function momentFrom(moment, log, names) {
  let spans = null;
  return {
    ...moment,
    at: log.start_ns + moment.ts,
    holders: moment.held[0].map(([caller, held]) => [names[caller] || '(unknown)', held]),  // with most first
    others: {count: moment.held[1], bytes: moment.held[2]},
    areas: moment.areas.map(([slab, address, size]) => ({slab, address, bytes: size})),
    // Made when it is first shown: a page has hundreds of thousands.
    get spans() {
      spans = spans || spansFrom(moment.spans, names);
      return spans;
    },
  };
}

function laneFrom(device, log, names, number) {
  let time = log.start_ns;
  const times = device.series.times.map(step => (time += step));
  const moments = device.moments.map(moment => momentFrom(moment, log, names));
  moments.sort((a, b) => a.at - b.at || a.seq - b.seq);
  const program = log.program.slice(log.program.lastIndexOf('/') + 1) || log.program || '?';
  return {
    ...device,
    number,
    log,
    title: `${program} (pid ${log.pid})${log.devices.length > 1 || device.dev ? ` device ${device.dev}` : ''}`,
    times,
    used: device.series.used,
    reserved: device.series.reserved,
    end: log.start_ns + log.duration_ns,
    refusals: device.refusals.map(row => ({
      seq: row[0], ts: row[1], at: log.start_ns + row[1], requested: row[2], used: row[3], limit: row[4],
      largestFree: row[5], deviceFree: row[6], api: names[row[7]], reason: names[row[8]],
    })),
    refusalCount: device.remedies.reduce((sum, each) => sum + each.count, 0),
    moments,
    callers: device.callers.map(([name, figures]) => ({name: names[name] || '(unknown)', ...figuresFrom(figures, 0)})),
    flame: device.flame.map(row => ({
      depth: row[0], name: names[row[1]], library: names[row[2]], file: names[row[3]], ...figuresFrom(row, 4),
    })),
  };
}

function modelFrom(document) {
  const lanes = [];
  for (const log of document.logs) {
    for (const device of log.devices) {
      lanes.push(laneFrom(device, log, document.names, lanes.length));
    }
  }
  return {
    version: document.version,
    start: new Date(document.start_unix_ms),
    logs: document.logs,
    lanes,
    end: Math.max(1, ...document.logs.map(log => log.start_ns + log.duration_ns)),
    busiest: lanes.reduce((most, lane) => (!most || lane.peak_bytes > most.peak_bytes ? lane : most), null),
  };
}

// The last index with sorted[index] <= value, or -1.
function lastNotAfter(sorted, value) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low - 1;
}
