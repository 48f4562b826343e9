#include "cli/usage/top_frame.h"

#include <algorithm>
#include <set>

#include "cli/text_table.h"
#include "cli/usage/usage_tables.h"
#include "config/values/quotes.h"

namespace ration::cli {

namespace {

using Lines = std::vector<std::string>;

constexpr std::size_t kGroupsFrom = 12;  // the fewest lines of a screen that shows groups

struct Key {
  char key;
  SortKey sorts_by;
  const char *name;
};

constexpr Key kKeys[] = {{'r', SortKey::kReserved, "reserved"},
                         {'u', SortKey::kUsed, "used"},
                         {'p', SortKey::kPid, "pid"},
                         {'a', SortKey::kAge, "age"},
                         {'g', SortKey::kGroup, "group"}};

std::string title(const Usage &usage, const TopState &state) {
  std::set<std::uint64_t> processes;
  std::set<std::string> gpus;
  for (const ProcessRow &row : usage.processes) {
    processes.insert(row.identity);
    gpus.insert(row.use.uuid);
  }
  std::string line =
      "ration top: " + counted(processes.size(), "process on ", "processes on ") + counted(gpus.size(), "GPU", "GPUs");
  for (const Key &each : kKeys) {
    if (each.sorts_by == state.sorted_by) {
      line += std::string(", by ") + each.name;
    }
  }
  return line + (state.paused ? ", paused" : "");
}

std::string key_line(const TopState &state) {
  std::string line = "sort: ";
  for (const Key &each : kKeys) {
    line += std::string{each.key, ' '} + each.name + "  ";
  }
  return line + (state.paused ? "space resume  q quit" : "space pause  q quit");
}

// The first `height` of `lines`; where some are omitted, the last one counts them.
Lines fit(Lines lines, std::size_t height) {
  if (lines.size() > height) {
    const std::size_t omitted = lines.size() - height + 1;
    lines.resize(height);
    if (!lines.empty()) {
      lines.back() = "and " + std::to_string(omitted) + " more";
    }
  }
  return lines;
}

void append(Lines &lines, Lines more) {
  lines.insert(lines.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

Lines problem_lines(const Usage &usage, std::size_t height) {
  Lines lines;
  for (const std::string &problem : usage.problems) {
    lines.push_back("! " + config::printable(problem));
  }
  return fit(std::move(lines), height);
}

}  // namespace

void handle_key(int key, TopState &state) {
  for (const Key &each : kKeys) {
    if (each.key == key) {
      state.sorted_by = each.sorts_by;
    }
  }
  state.paused ^= key == ' ';
  state.ended |= key == 'q';
}

Frame frame_of(Usage usage, const TopState &state, std::size_t height, std::size_t width) {
  sort_rows(usage.processes, state.sorted_by);
  Frame frame;
  Lines &lines = frame.lines;
  lines.push_back(title(usage, state));
  const std::size_t body = height > 2 ? height - 2 : 0;  // between the title and the keys
  const Lines problems = problem_lines(usage, body / 4);
  append(lines, problems);

  Lines groups;
  if (height >= kGroupsFrom && !usage.groups.empty()) {
    groups = fit(group_table(usage, width), body / 3);
    groups.insert(groups.begin(), "");
  }
  const std::size_t room = body - problems.size() - groups.size();
  if (usage.processes.empty()) {
    append(lines, fit({"no process has requested device memory under ration here"}, room));
  } else if (room >= 2) {
    frame.title_line = lines.size();
    append(lines, fit(process_table(usage, width), room));
  }
  append(lines, std::move(groups));
  lines.resize(height > 0 ? height - 1 : 0);
  if (height > 0) {
    // A screen of one line shows the figures, not the keys.
    lines.push_back(height == 1 ? title(usage, state) : key_line(state));
  }
  for (std::string &line : lines) {
    line.resize(std::min(line.size(), width));
  }
  return frame;
}

}  // namespace ration::cli
