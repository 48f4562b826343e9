// The document that `ration report` wrote (shim/logs/page/page_json.cc), as the parts of the page need it.
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

function programOf(log) {
  return log.program.slice(log.program.lastIndexOf('/') + 1) || log.program || '?';
}

// The callers of lanes, each once: {name, lanes, oldest, peak, total, left}.
function mergedCallers(lanes) {
  const merged = new Map();
  for (const lane of lanes) {
    for (const caller of lane.callers) {
      const zero = () => ({bytes: 0, count: 0});
      const sum = merged.get(caller.name) || {name: caller.name, lanes: [], oldest: 0, peak: zero(), total: zero(), left: zero()};
      merged.set(caller.name, sum);
      sum.lanes.push(lane);
      sum.oldest = Math.max(sum.oldest, caller.oldest);
      for (const figure of ['peak', 'total', 'left']) {
        sum[figure].bytes += caller[figure].bytes;
        sum[figure].count += caller[figure].count;
      }
    }
  }
  return [...merged.values()];
}

// What lanes held together over time, by rank of their callers: [{at, held: [bytes of each rank…, of the others]}].
function stackOf(lanes, ranks) {
  const changes = [];
  for (const lane of lanes) {
    const columns = [...lane.stack.names.map(name => (ranks.has(name) ? ranks.get(name) : ranks.size)), ranks.size];
    lane.stack.times.forEach((at, i) => changes.push({at, columns, bytes: lane.stack.bytes, i}));
    changes.push({at: lane.end, columns, bytes: lane.stack.bytes, i: -1, last: lane.stack.times.length - 1});
  }
  changes.sort((a, b) => a.at - b.at);
  const held = new Array(ranks.size + 1).fill(0);
  const points = [];
  for (const {at, columns, bytes: now, i, last} of changes) {
    columns.forEach((rank, column) => {
      held[rank] += (i < 0 ? 0 : now[column][i]) - (i === 0 ? 0 : now[column][i < 0 ? last : i - 1]);
    });
    points.push({at, held: [...held]});
  }
  return points;
}

// Each refusal once, with how often it was asked for: the layers of a program ask again before they report a failure.
function refusalsFrom(rows, log, names) {
  const refusals = [];
  for (const row of rows) {
    const again = row[9] && refusals.findLast(each => each.requested === row[2]);
    if (again) {
      ++again.times;
    } else {
      refusals.push({
        seq: row[0], ts: row[1], at: log.start_ns + row[1], requested: row[2], used: row[3], limit: row[4],
        largestFree: row[5], deviceFree: row[6], api: names[row[7]], reason: names[row[8]], times: 1,
      });
    }
  }
  return refusals;
}

// The kinds of refusals, without those that only repeat another one.
function remediesFrom(device, refusals) {
  const kinds = new Set(refusals.map(each => `${each.api} ${each.reason}`));
  return device.remedies.filter(each => device.left_out.refusals > 0 || kinds.has(`${each.api} ${each.reason}`));
}

function laneFrom(device, log, names, number) {
  const refusals = refusalsFrom(device.refusals, log, names);
  let time = log.start_ns;
  const times = device.series.times.map(step => (time += step));
  const moments = device.moments.map(moment => momentFrom(moment, log, names));
  moments.sort((a, b) => a.at - b.at || a.seq - b.seq);
  let stackTime = log.start_ns;
  const stack = {
    names: device.stack.callers.map(name => names[name] || '(unknown)'),
    times: device.stack.times.map(step => (stackTime += step)),
    bytes: device.stack.bytes,  // by caller, the others last
  };
  return {
    ...device,
    number,
    log,
    bound: device.limit_asked ? device.limit : device.group_limit || device.total,
    stack,
    title: `${programOf(log)} (pid ${log.pid})${log.devices.length > 1 || device.dev ? ` device ${device.dev}` : ''}`,
    times,
    used: device.series.used,
    reserved: device.series.reserved,
    end: log.start_ns + log.duration_ns,
    refusals,
    remedies: remediesFrom(device, refusals),
    refusalCount: device.remedies.reduce((sum, each) => sum + each.count, 0),
    moments,
    callers: device.callers.map(([name, figures, oldest]) => ({name, oldest, ...figuresFrom(figures, 0)})),
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
  const callers = mergedCallers(lanes);
  return {
    title: [...new Set(document.logs.map(programOf))].join(', '),
    ranks: rankedCallers(callers),
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
