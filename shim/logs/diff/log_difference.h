// What changed between two logs of a program. Layer: logs. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "logs/history/history.h"

namespace ration::logs {

// The same figure of both logs.
struct BothFigures {
  std::uint64_t before = 0, after = 0;
  using Side = std::uint64_t BothFigures::*;

  bool operator==(const BothFigures &) const = default;
  [[nodiscard]] bool is_same() const { return before == after; }
  [[nodiscard]] std::uint64_t distance() const { return after > before ? after - before : before - after; }
  // Bytes of one process stay far below 2^63.
  [[nodiscard]] std::int64_t change() const {
    return static_cast<std::int64_t>(after) - static_cast<std::int64_t>(before);
  }
};

struct CallerDifference {
  std::string name;
  bool is_new = false, is_gone = false;       // in the log after only; in the log before only
  BothFigures peak, requested, live, allocs;  // bytes at the peak, asked for in all, never freed; blocks in all

  [[nodiscard]] std::uint64_t largest() const;
};

struct DeviceDifference {
  std::size_t ordinal = 0;
  BothFigures peak, reserved_peak, allocs, frees, refusals, live_blocks, live_bytes;
  std::vector<CallerDifference> callers;  // that of the largest difference first
};

struct LogDifference {
  std::vector<std::string> before, after;  // logs
  BothFigures failed_allocs;               // in the driver
  BothFigures dropped;                     // records
  bool before_ended = true, after_ended = true;
  bool before_cut_off = false, after_cut_off = false;
  bool knows_peak_before = true, knows_peak_after = true;
  std::vector<DeviceDifference> devices;
};

// Of the sums of several processes: those of a device are of all that have one of that number.
LogDifference difference_of(const std::vector<History> &before, const std::vector<History> &after);

// How much a peak may grow: by so many bytes, or by a part of what it was.
struct Growth {
  std::uint64_t bytes = 0;
  std::optional<double> share;

  [[nodiscard]] bool is_exceeded_by(const BothFigures &peak) const;
};
// Otherwise one sentence with what is wrong.
std::variant<Growth, std::string> read_growth(const std::string &text);

// `title`: of the column of callers. `rows`: of them for each device at most.
std::vector<std::string> difference_text(const LogDifference &difference, const char *title, std::size_t rows,
                                         std::size_t width);
// Schema ration.diff/1 (cli/README.md). `reasons`: why --fail-above does not hold; nothing: it was not given.
std::string difference_json(const LogDifference &difference, const std::string &by,
                            const std::optional<std::vector<std::string>> &reasons);

}  // namespace ration::logs
