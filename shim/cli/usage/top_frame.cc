#include "cli/usage/top_frame.h"

#include <algorithm>
#include <set>

#include "cli/text_table.h"
#include "cli/usage/device_lines.h"
#include "cli/usage/frame_draft.h"
#include "cli/usage/usage_tables.h"
#include "config/values/quotes.h"

namespace ration::cli {

namespace {

using Lines = std::vector<std::string>;

constexpr std::size_t kGroupsFrom = 10;  // the fewest lines between title and keys with which groups are shown

constexpr const char *kHelp[] = {
    "Keys",
    "  r u l k f a   sort by RESERVED USED LIMIT PEAK FAILS AGE",
    "  p n d g c     sort by PID USER GPU GROUP COMMAND",
    "                the same key again reverses",
    "  /             show only what has a text in its command,",
    "                program, user, group, container or PID;",
    "                Enter keeps the filter, Esc clears it",
    "  up down       scroll, as Page Up and Page Down",
    "  space         pause, and go on",
    "  q             quit",
    "Bars: used, then reserved, of the limit or the device",
    "RESERVED  held on the device, counted against limits",
    "USED      held by the program, of that",
    "PEAK      most that was RESERVED; PEAKUSED: most USED",
    "FAILS     refused allocations",
};

std::size_t processes_in(const std::vector<ProcessRow> &rows) {
  std::set<std::uint64_t> processes;
  for (const ProcessRow &row : rows) {
    processes.insert(row.identity);
  }
  return processes.size();
}

struct Totals {
  std::size_t processes = 0, shown = 0;
  std::uint64_t used = 0, reserved = 0, size = 0;  // size 0: that of a device is not known
};

Totals totals_of(const Usage &usage) {
  Totals totals;
  totals.processes = totals.shown = processes_in(usage.processes);
  bool known = true;
  for (const DeviceRow &device : usage.devices) {
    totals.used += device.used;
    totals.reserved += device.reserved;
    totals.size += device.size;
    known = known && device.size != 0;
  }
  totals.size = known ? totals.size : 0;
  return totals;
}

std::string shown_filter(const TopState &state) {
  return state.is_unicode ? readable(state.filter) : config::printable(state.filter);
}

// The longest that fits.
std::string title_of(const Totals &totals, const Usage &usage, const TopState &state, std::size_t width) {
  std::string what =
      counted(totals.processes, "process on ", "processes on ") + counted(usage.devices.size(), "GPU", "GPUs");
  if (!state.filter.empty()) {
    what = std::to_string(totals.shown) + " of " + what + " with \"" + shown_filter(state) + "\"";
  }
  what += state.paused ? ", paused" : "";
  const std::string figures =
      std::string(", ") + short_bytes(totals.used) + " used, " + short_bytes(totals.reserved) + " reserved";
  const std::string of = totals.size == 0 ? "" : std::string(" of ") + short_bytes(totals.size);
  for (const std::string &each :
       {std::string("ration top: ") + what + figures + of, what + figures + of, what + figures}) {
    if (width_of(each) <= width) {
      return each;
    }
  }
  return what;
}

std::string key_line(const TopState &state, std::size_t width) {
  if (state.is_typing) {
    return std::string("/") + shown_filter(state) + "_  Enter keeps  Esc clears";
  }
  if (state.shows_help) {
    return "any key: back  q quit";
  }
  const std::string keys = std::string("q quit  ? help  / filter  space ") + (state.paused ? "goes on" : "pauses");
  const std::string all = keys + "  sort: r u l k f a p n d g c";
  return width_of(all) <= width ? all : keys;
}

// The first `height` of `lines`; where some are omitted, the last one counts them.
Lines fit(Lines lines, std::size_t height) {
  if (lines.size() > height) {
    const std::size_t omitted = lines.size() - height + 1;
    lines.resize(height);
    if (!lines.empty()) {
      lines.back() = std::string("and ") + std::to_string(omitted) + " more";
    }
  }
  return lines;
}

// Without those of processes that are in no group: the devices' lines have them.
std::vector<GroupRow> groups_of(const Usage &usage) {
  std::vector<GroupRow> groups;
  std::copy_if(usage.groups.begin(), usage.groups.end(), std::back_inserter(groups),
               [](const GroupRow &row) { return row.kind != ledger::GroupKind::kNone; });
  return groups;
}

// How many lines each part gets. What one does not need, the next ones have.
struct Parts {
  std::size_t problems = 0, devices = 0, groups = 0, processes = 0;
};

Parts parts_for(const Usage &usage, std::size_t groups, std::size_t body) {
  Parts parts;
  const std::size_t rows = usage.processes.empty() ? 1 : usage.processes.size() + 1;
  parts.problems = std::min(usage.problems.size(), body / 4);
  std::size_t left = body - parts.problems;
  parts.devices = std::min(usage.devices.size(), left * 2 / 5);
  parts.groups = groups == 0 ? 0 : std::min(groups + 1, left / 4);
  parts.groups = parts.groups < 2 || body < kGroupsFrom ? 0 : parts.groups;
  left -= parts.devices + parts.groups;
  parts.processes = std::min(rows, left);
  left -= parts.processes;
  const auto more_of = [&left](std::size_t &part, std::size_t wanted) {
    const std::size_t more = std::min(left, wanted - std::min(wanted, part));
    part += more;
    left -= more;
  };
  more_of(parts.devices, usage.devices.size());
  more_of(parts.problems, usage.problems.size());
  if (parts.groups != 0 || left >= 2) {
    more_of(parts.groups, groups == 0 ? 0 : groups + 1);
  }
  return parts;
}

void add_devices(FrameDraft &draft, const Usage &usage, const TopState &state, std::size_t height) {
  const DeviceLines lines(usage, state, draft.width());
  const std::size_t shown = usage.devices.size() > height ? height - 1 : usage.devices.size();
  for (std::size_t i = 0; i < shown; ++i) {
    lines.add(draft, i);
  }
  if (shown < usage.devices.size()) {
    draft.add(std::string("and ") + counted(usage.devices.size() - shown, "more GPU", "more GPUs"));
  }
}

// Colours the bars of a table's row, where that column is shown.
void mark_bars(FrameDraft &draft, const Table &table, const BarFigures &figures) {
  for (const Table::Place &place : table.columns) {
    if (place.title == kBarTitle && place.width > 2) {
      draft.mark_bar(place.begin, figures, place.width);
    }
  }
}

void add_titles(FrameDraft &draft, const Table &table) {
  draft.add(table.lines.front(), Style::kTitles);
  for (const Table::Place &place : table.columns) {
    if (place.title.front() < 'A' || place.title.front() > 'Z') {  // has the mark
      draft.mark(place.begin, place.width, Style::kSorted);
    }
  }
}

void add_groups(FrameDraft &draft, Usage usage, const TopState &state, std::size_t height) {
  usage.groups = groups_of(usage);
  const Table table = group_table(usage, {draft.width(), true, state.is_unicode, {}, false});
  const Lines lines = fit(table.lines, height);
  add_titles(draft, table);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    draft.add(lines[i]);
    const GroupRow &row = usage.groups[i - 1];
    if (lines[i] == table.lines[i]) {
      mark_bars(draft, table, {row.used, row.reserved, row.limit != ledger::kNoLimit ? row.limit : row.device_size});
    }
  }
}

void add_processes(FrameDraft &draft, Usage usage, const TopState &state, std::size_t height) {
  if (height < 2) {
    return;
  }
  std::vector<ProcessRow> &rows = usage.processes;
  const std::size_t room = height - 1;
  const std::size_t last_first = rows.size() > room ? rows.size() - room : 0;
  const std::size_t first = std::min(state.first_row, last_first);
  const Table table = process_table(usage, {draft.width(), true, state.is_unicode, state.sorted_by, state.is_reversed});
  add_titles(draft, table);
  const std::size_t shown = std::min(room, rows.size() - first);
  for (std::size_t i = first; i < first + shown; ++i) {
    const bool stands_for_more = i + 1 == first + shown && i + 1 < rows.size();
    if (stands_for_more) {
      draft.add(std::string("and ") + std::to_string(rows.size() - i) + " more");
      continue;
    }
    draft.add(table.lines[i + 1]);
    const auto of_row = [&](const DeviceRow &device) { return device.uuid == rows[i].use.uuid; };
    const auto device = std::find_if(usage.devices.begin(), usage.devices.end(), of_row);
    const std::uint64_t size = device == usage.devices.end() ? 0 : device->size;
    mark_bars(
        draft, table,
        {rows[i].use.used, rows[i].use.reserved, rows[i].use.limit != ledger::kNoLimit ? rows[i].use.limit : size});
  }
  draft.frame().last_first_row = last_first;
}

// Names as a terminal without UTF-8 can show them.
void make_plain(Usage &usage) {
  for (ProcessRow &row : usage.processes) {
    for (std::string *each : {&row.program, &row.command, &row.user, &row.group_label, &row.here.container}) {
      *each = config::printable(*each);
    }
  }
  for (GroupRow &row : usage.groups) {
    row.label = config::printable(row.label);
    row.user = config::printable(row.user);
  }
}

void add_body(FrameDraft &draft, const Usage &usage, const TopState &state, std::size_t body) {
  if (state.shows_help) {
    for (const char *line : kHelp) {
      if (body > 0) {
        draft.add(line);
        --body;
      }
    }
    return;
  }
  const Parts parts = parts_for(usage, groups_of(usage).size(), body);
  Lines problems;
  for (const std::string &problem : usage.problems) {
    problems.push_back(std::string("! ") + config::printable(problem));
  }
  for (const std::string &line : fit(std::move(problems), parts.problems)) {
    draft.add(line, Style::kWarning);
  }
  if (parts.devices != 0) {
    add_devices(draft, usage, state, parts.devices);
  }
  if (parts.groups >= 2) {
    add_groups(draft, usage, state, parts.groups);
  }
  if (!usage.processes.empty()) {
    add_processes(draft, usage, state, parts.processes);
  } else if (parts.processes != 0) {
    draft.add(state.filter.empty() ? "no process has requested device memory under ration here"
                                   : "no process has that in its names");
  }
}

}  // namespace

Frame frame_of(Usage usage, const TopState &state, std::size_t height, std::size_t width) {
  Totals totals = totals_of(usage);
  if (!state.filter.empty()) {
    std::erase_if(usage.processes, [&](const ProcessRow &row) { return !matches(row, state.filter); });
    totals.shown = processes_in(usage.processes);
  }
  sort_rows(usage.processes, state.sorted_by, state.is_reversed);
  if (!state.is_unicode) {
    make_plain(usage);
  }
  FrameDraft draft(height, width);
  if (height > 0) {
    draft.add(title_of(totals, usage, state, width), Style::kStrong);
  }
  if (height > 2) {
    add_body(draft, usage, state, height - 2);
  }
  while (draft.room() > 1) {
    draft.add("");
  }
  if (draft.room() > 0) {  // a screen of one line shows the figures, not the keys
    draft.add(key_line(state, width), Style::kKeys);
  }
  return draft.take();
}

}  // namespace ration::cli
