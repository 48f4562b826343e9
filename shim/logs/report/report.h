// What `ration report` says of logs. Layer: logs. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "logs/history/history.h"

namespace ration::logs {

struct Report {
  std::string log;
  History history;
};

// What was allocated at one place, and never freed.
struct Leak {
  History::Group group;
  std::uint64_t stack = 0;  // 0: unknown
  std::string name;         // of the caller, or of the group where the stack is not known
  bool is_host = false;     // pinned host memory, which no figure of the device has
};
// Of one device, that with most bytes first.
std::vector<Leak> leaks_of(const History &history, std::size_t device);

// `rows`: of each table at most.
std::vector<std::string> report_text(const Report &report, std::size_t rows, std::size_t width);
// The blocks that were never freed, those of most bytes first, and their stacks.
std::vector<std::string> leaks_text(const Report &report, std::size_t width);
// One document for all of them: schema ration.report/1 (../README.md).
std::string report_json(const std::vector<Report> &reports);

}  // namespace ration::logs
