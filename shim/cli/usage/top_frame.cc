#include "cli/usage/top_frame.h"

#include <algorithm>
#include <iterator>

#include "base/saturating.h"
#include "cli/base/text_table.h"
#include "cli/usage/device_lines.h"
#include "cli/usage/device_rows.h"
#include "cli/usage/frame_draft.h"
#include "cli/usage/plain_names.h"
#include "cli/usage/top_help.h"
#include "cli/usage/top_parts.h"
#include "cli/usage/top_title.h"
#include "cli/usage/usage_tables.h"
#include "cli/usage/waiting.h"
#include "config/values/quotes.h"

namespace ration::cli {

namespace {

using Lines = std::vector<std::string>;

constexpr std::size_t kLinesOfSentence = 4;  // of the sentence that is shown in place of processes

// The first `height` of `lines`; if some are omitted, the last one says how many.
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

// True if the filter leaves the group: its processes are shown, or its name contains the text.
bool is_shown(const GroupRow &group, const Usage &shown, std::string_view filter) {
  ProcessRow named;
  named.group_label = group.label;
  const auto has_it = [&group](const ProcessRow &row) {
    return (row.use.uuid == group.uuid || group.uuid.empty()) && row.is_in(group);
  };
  return matches(named, filter) || std::any_of(shown.processes.begin(), shown.processes.end(), has_it);
}

// Leaves out groups that tell no more than the devices' lines, and a group's idle devices; if a group is idle on all
// devices, the first one stays.
std::vector<GroupRow> groups_to_show(const Usage &usage, const std::string &filter) {
  std::vector<GroupRow> groups;
  for (const GroupRow &row : usage.groups) {
    if (row.tells_nothing() || (!filter.empty() && !is_shown(row, usage, filter))) {
      continue;
    }
    const bool continues_group = !groups.empty() && groups.back().is_of_group(row);
    if (continues_group && groups.back().is_idle()) {
      groups.back() = row;
    } else if (!continues_group || !row.is_idle()) {
      groups.push_back(row);
    }
  }
  return groups;
}

// Colours the bars of a table's row, if that column is shown.
void mark_bars(FrameDraft &draft, const Table &table, const BarFigures &figures) {
  for (const Table::Place &place : table.columns) {
    if (place.title == kBarTitle && place.width > 2) {
      draft.mark_bar(place.begin, figures, place.width);
    }
  }
}

bool has_bars(const Table &table) {
  return std::any_of(table.columns.begin(), table.columns.end(),
                     [](const Table::Place &place) { return place.title == kBarTitle; });
}

void add_titles(FrameDraft &draft, const Table &table, const std::string &rows) {
  draft.add(with_end(table.lines.front(), rows, draft.width()), Style::kTitles);
  for (const Table::Place &place : table.columns) {
    if (place.title.front() < 'A' || place.title.front() > 'Z') {  // the title begins with the mark
      draft.mark(place.begin, place.width, Style::kSorted);
    }
  }
}

// The rows of a part that are shown; also records them in the frame.
ShownRows place_part(FrameDraft &draft, const TopState &state, TopPart part, std::size_t all, std::size_t room) {
  const auto number = static_cast<std::size_t>(part);
  ShownRows rows = rows_shown(all, room, state.first_of(part));
  if (has_cursor(part) && rows.count != 0) {
    const std::size_t cursor = std::min(state.cursors[number], all - 1);
    rows.first = std::clamp(rows.first, minus_or_zero(cursor + 1, rows.count), cursor);
  }
  draft.frame().all_rows[number] = all;
  draft.frame().first_rows[number] = rows.first;
  draft.frame().shown_rows[number] = rows.count;
  return rows;
}

// What the frame is made from: the draft, and the data to show.
class FrameParts {
 public:
  // `all`: includes the rows that the filter leaves out.
  FrameParts(FrameDraft &draft, const Usage &usage, const Usage &all, const TopState &state)
      : draft_(draft), usage_(usage), waiting_(waiting_lines(all)), state_(state) {}

  // Returns which rows of the devices are shown, for the end of the title.
  std::string add(std::size_t lines);

 private:
  ShownRows place(TopPart part, std::size_t all, std::size_t room);
  std::string end_of(TopPart part, const ShownRows &rows) const;
  template <class Row>
  void add_row(const std::string &line, TopPart part, std::size_t number, const Row &row);
  void add_problems(std::size_t height);
  std::string add_devices(std::size_t height);
  void add_groups(std::size_t height);
  void add_processes(std::size_t height);

  FrameDraft &draft_;
  const Usage &usage_;
  const Lines waiting_;
  const TopState &state_;
};

ShownRows FrameParts::place(TopPart part, std::size_t all, std::size_t room) {
  return place_part(draft_, state_, part, all, room);
}

std::string FrameParts::end_of(TopPart part, const ShownRows &rows) const {
  const bool is_marked =
      rows.count < rows.all || part != TopPart::kProcesses;  // otherwise nothing can be chosen or scrolled
  return std::string(is_marked && part == state_.scrolled ? "*" : "") + rows.text();
}

template <class Row>
void FrameParts::add_row(const std::string &line, TopPart part, std::size_t number, const Row &row) {
  draft_.add(line);
  if (state_.is_chosen(part, number)) {
    draft_.mark(0, static_cast<std::size_t>(-1), Style::kCursor);
    draft_.frame().chosen = target_of(row);
  }
}

void FrameParts::add_problems(std::size_t height) {
  Lines problems;
  for (const std::string &problem : usage_.problems) {
    problems.push_back(std::string("! ") + config::printable(problem));
  }
  const std::size_t warnings = problems.size();
  for (const std::string &line : waiting_) {
    problems.push_back(state_.is_unicode ? line : config::ascii_only(line));
  }
  problems = fit(std::move(problems), height);
  for (std::size_t i = 0; i < problems.size(); ++i) {
    draft_.add(problems[i], i < warnings ? Style::kWarning : Style::kStrong);
  }
}

std::string FrameParts::add_devices(std::size_t height) {
  const ShownRows rows = place(TopPart::kDevices, usage_.devices.size(), height);
  const DeviceLines lines(usage_, state_, draft_.width());
  for (std::size_t i = rows.first; i < rows.first + rows.count; ++i) {
    lines.add(draft_, i);
  }
  return rows.count == rows.all ? "" : "GPUs " + end_of(TopPart::kDevices, rows);
}

void FrameParts::add_groups(std::size_t height) {
  const ShownRows rows = place(TopPart::kGroups, usage_.groups.size(), height - std::min<std::size_t>(height, 1));
  if (rows.count == 0) {
    return;
  }
  const std::string end = end_of(TopPart::kGroups, rows);
  TableLook look{draft_.width(), true, state_.is_unicode, {}, false};
  Table table = group_table(usage_, look);
  if (!end.empty() && width_of(table.lines.front()) + 1 + width_of(end) > look.width && look.width > end.size()) {
    look.width -= end.size() + 1;  // rather omit a column than cut off a title
    table = group_table(usage_, look);
  }
  add_titles(draft_, table, end);
  for (std::size_t i = rows.first; i < rows.first + rows.count; ++i) {
    const GroupRow &row = usage_.groups[i];
    add_row(table.lines[i + 1], TopPart::kGroups, i, row);
    mark_bars(draft_, table, {row.used, row.reserved, row.limit != ledger::kNoLimit ? row.limit : row.device_size});
  }
}

void FrameParts::add_processes(std::size_t height) {
  const ShownRows rows = place(TopPart::kProcesses, usage_.processes.size(), height - std::min<std::size_t>(height, 1));
  if (rows.count == 0) {
    return;
  }
  const std::string end = end_of(TopPart::kProcesses, rows);
  TableLook look{draft_.width(), true, state_.is_unicode, state_.sorted_by, state_.is_reversed};
  look.end = end.empty() ? 0 : end.size() + 1;
  Table table = process_table(usage_, look);
  if (!end.empty() && !has_bars(table)) {  // no room for bars: rather cut off a title
    look.end = 0;
    table = process_table(usage_, look);
  }
  add_titles(draft_, table, end);
  for (std::size_t i = rows.first; i < rows.first + rows.count; ++i) {
    const ledger::DeviceUse &use = usage_.processes[i].use;
    add_row(table.lines[i + 1], TopPart::kProcesses, i, usage_.processes[i]);
    const DeviceRow *const device = usage_.device(use.uuid);
    const std::uint64_t size = device == nullptr ? 0 : device->size;
    mark_bars(draft_, table, {use.used, use.reserved, use.limit != ledger::kNoLimit ? use.limit : size});
  }
}

std::string FrameParts::add(std::size_t lines) {
  const auto of_table = [](std::size_t rows) { return rows == 0 ? 0 : rows + 1; };
  TopParts wanted{usage_.problems.size() + waiting_.size(), usage_.devices.size(), of_table(usage_.groups.size()),
                  of_table(usage_.processes.size())};
  wanted.processes = wanted.processes == 0 ? kLinesOfSentence : wanted.processes;
  const TopParts parts = parts_for(wanted, lines, state_.scrolled);
  add_problems(parts.problems);
  std::string devices = add_devices(parts.devices);
  add_groups(parts.groups);
  add_processes(parts.processes);
  if (usage_.processes.empty() && parts.processes != 0) {
    const std::string none = "no process has requested device memory under ration here";
    const Lines sentence = wrapped(!state_.filter.empty()     ? "no process has that in its names"
                                   : state_.looked_in.empty() ? none
                                                              : none + "; " + state_.looked_in,
                                   draft_.width());
    for (std::size_t i = 0; i < std::min(sentence.size(), parts.processes); ++i) {
      draft_.add(sentence[i]);
    }
  }
  return devices;
}

std::string add_help(FrameDraft &draft, const TopState &state, std::size_t height) {
  const Lines help = help_lines(state.is_unicode);
  const ShownRows rows = place_part(draft, state, TopPart::kHelp, help.size(), height);
  for (std::size_t i = rows.first; i < rows.first + rows.count; ++i) {
    draft.add(help[i]);
  }
  return rows.text();
}

}  // namespace

Frame frame_of(Usage usage, const TopState &state, std::size_t height, std::size_t width) {
  const Usage all = usage;
  add_rows_of_others(usage);
  if (!state.filter.empty()) {
    std::erase_if(usage.processes, [&](const ProcessRow &row) { return !matches(row, state.filter); });
  }
  if (std::all_of(usage.processes.begin(), usage.processes.end(),
                  [](const ProcessRow &row) { return row.is_others; })) {
    usage.processes.clear();  // the devices' lines show them; here the frame says that there is no process
  }
  const TopTotals totals = totals_of_rows(usage);
  usage.groups = groups_to_show(usage, state.filter);
  sort_rows(usage.processes, state.sorted_by, state.is_reversed);
  if (!state.is_unicode) {
    make_plain(usage);
  }
  FrameDraft draft(height, width);
  draft.add("", Style::kStrong);
  std::string end, shown_help;
  if (height > 2) {
    if (state.shows_help) {
      shown_help = add_help(draft, state, height - 2);
    } else {
      end = FrameParts(draft, usage, all, state).add(height - 2);
    }
  }
  const std::size_t room = end.empty() ? width : minus_or_zero(width, width_of(end) + 1);
  draft.frame().lines.front() = truncate(with_end(title_of(totals, all, state, room), end, width), width);
  while (draft.room() > 1) {
    draft.add("");
  }
  if (draft.room() > 0) {  // a screen with one line shows the figures, not the keys
    draft.add(key_line(state, shown_help, width), Style::kKeys);
  }
  return draft.take();
}

void keep_on_screen(const Frame &frame, TopState &state) {
  for (std::size_t part = 0; part < state.first_rows.size(); ++part) {
    if (frame.all_rows[part] != 0) {
      state.first_rows[part] = frame.first_rows[part];
      state.cursors[part] = std::min(state.cursors[part], frame.all_rows[part] - 1);
    }
    state.page_rows[part] = std::max<std::size_t>(1, frame.shown_rows[part]);
  }
  state.chosen = frame.chosen;
}

}  // namespace ration::cli
