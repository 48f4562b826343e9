// The state of `ration top`, such as its sort order, filter and history, and the keys that change it.
// Layer: cli. Threads: values, pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/usage/process_rows.h"
#include "cli/usage/top_action.h"

namespace ration::cli {

// How much memory each device held in the snapshots so far, the latest snapshot last.
class UsageHistory {
 public:
  void add(const Usage &usage);
  [[nodiscard]] const std::vector<std::uint64_t> &of(const std::string &uuid) const;

 private:
  std::map<std::string, std::vector<std::uint64_t>> reserved_;
};

// The parts of a screen that scroll.
enum class TopPart : std::size_t { kProcesses, kGroups, kDevices, kHelp };
using RowOfPart = std::array<std::size_t, 4>;
// True for parts with a chosen row. The arrow keys choose another row, and the part scrolls to keep it in view.
constexpr bool has_cursor(TopPart part) {
  return part == TopPart::kProcesses || part == TopPart::kGroups;
}

struct TopState {
  SortKey sorted_by = SortKey::kReserved;
  bool is_reversed = false;
  bool paused = false;
  bool ended = false;
  bool shows_help = false;
  bool is_typing = false;  // the user is typing a filter
  std::string filter;
  // The part that the arrow keys scroll. Never kHelp, which they scroll whenever it is shown.
  TopPart scrolled = TopPart::kProcesses;
  RowOfPart first_rows{};           // for each part, the first row that is shown
  RowOfPart cursors{};              // the chosen rows, in processes and in groups
  RowOfPart page_rows{1, 1, 1, 1};  // how many rows Page Up and Page Down scroll each part
  bool is_unicode = false;          // the terminal shows UTF-8; otherwise frames are printable ASCII
  std::string looked_in;            // where processes were searched for; empty: not shown
  UsageHistory history;
  TopTarget chosen;                     // the row under the cursor in the last frame
  std::optional<TopQuestion> question;  // while there is a question, it receives all keys
  std::optional<TopQuestion> order;     // a question that was answered with y; its action is to be carried out
  std::string message;                  // shown until the next key

  [[nodiscard]] std::size_t first_of(TopPart part) const { return first_rows[static_cast<std::size_t>(part)]; }
  [[nodiscard]] bool is_chosen(TopPart part, std::size_t row) const {
    return part == scrolled && row == cursors[static_cast<std::size_t>(part)];
  }
};

// Keys that are not characters, or that different terminals send differently.
enum KeyCode : int {
  kEraseKey = 8,
  kNextKey = 9,  // Tab
  kEnterKey = 10,
  kEmptyKey = 0x15,  // Ctrl-U
  kEscapeKey = 27,
  kUpKey = 0x1000,
  kDownKey,
  kPageUpKey,
  kPageDownKey
};

struct SortChoice {
  char key;
  SortKey sorts_by;
  const char *title;  // the title of the column
};
inline constexpr SortChoice kSortChoices[] = {{'r', SortKey::kReserved, "RESERVED"},
                                              {'u', SortKey::kUsed, "USED"},
                                              {'l', SortKey::kLimit, "LIMIT"},
                                              {'k', SortKey::kPeak, kPeakReservedTitle},
                                              {'K', SortKey::kPeakUsed, kPeakUsedTitle},
                                              {'f', SortKey::kFailures, "FAILS"},
                                              {'a', SortKey::kAge, "AGE"},
                                              {'p', SortKey::kPid, "PID"},
                                              {'n', SortKey::kUser, "USER"},
                                              {'d', SortKey::kGpu, "GPU"},
                                              {'g', SortKey::kGroup, "GROUP"},
                                              {'c', SortKey::kCommand, "COMMAND"}};

// `key` is a KeyCode or one byte of UTF-8. Other keys are ignored.
void handle_key(int key, TopState &state);

}  // namespace ration::cli
