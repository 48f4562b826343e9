// What `ration top` shows: order, filter, help, and what it remembers; and the keys that change it.
// Layer: cli. Threads: values, pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/usage/process_rows.h"

namespace ration::cli {

// What each device held in the snapshots so far, the latest last.
class UsageHistory {
 public:
  void add(const Usage &usage);
  [[nodiscard]] const std::vector<std::uint64_t> &of(const std::string &uuid) const;

 private:
  std::map<std::string, std::vector<std::uint64_t>> reserved_;
};

struct TopState {
  SortKey sorted_by = SortKey::kReserved;
  bool is_reversed = false;
  bool paused = false;
  bool ended = false;
  bool shows_help = false;
  bool is_typing = false;  // the filter
  std::string filter;
  std::size_t first_row = 0;  // of the processes that are shown
  bool is_unicode = false;    // the terminal shows UTF-8; else frames are printable ASCII
  UsageHistory history;
};

// Keys that are no characters, and those that terminals send in several ways.
enum KeyCode : int {
  kEraseKey = 8,
  kEnterKey = 10,
  kEscapeKey = 27,
  kUpKey = 0x1000,
  kDownKey,
  kPageUpKey,
  kPageDownKey
};

// Bytes of UTF-8 come one by one. Other keys are ignored.
void handle_key(int key, TopState &state);

}  // namespace ration::cli
