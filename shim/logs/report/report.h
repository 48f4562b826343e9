// The output of `ration report`, as text and as a JSON document. Layer: logs. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "logs/history/history.h"

namespace ration::logs {

struct Report {
  std::string log;
  History history;
};

// Memory that was allocated at one place and never freed.
struct Leak {
  History::Group group;
  std::uint64_t stack = 0;  // 0: unknown
  std::string name;         // the caller's name, or the group's name if the stack is unknown
  bool is_host = false;     // pinned host memory, which is not part of any figure of the device
};
// The leaks of one device, the largest first.
std::vector<Leak> leaks_of(const History &history, std::size_t device);

// `rows`: the maximum number of rows in each table.
std::vector<std::string> report_text(const Report &report, std::size_t rows, std::size_t width);
// Lists the blocks that were never freed, the largest groups first, with their stacks.
std::vector<std::string> leaks_text(const Report &report, std::size_t width);
// One document for all reports: schema ration.report/1 (../README.md).
std::string report_json(const std::vector<Report> &reports);
// The part of that document about blocks that were never freed: schema ration.leaks/1.
std::string leaks_json(const std::vector<Report> &reports);

}  // namespace ration::logs
