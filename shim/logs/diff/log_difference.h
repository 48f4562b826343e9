// The differences between two logs of a program. Layer: logs. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "logs/history/history.h"

namespace ration::logs {

// The same figure in both logs.
struct BothFigures {
  std::uint64_t before = 0, after = 0;
  using Side = std::uint64_t BothFigures::*;

  bool operator==(const BothFigures &) const = default;
  [[nodiscard]] bool is_same() const { return before == after; }
  [[nodiscard]] std::uint64_t distance() const { return after > before ? after - before : before - after; }
  // Does not overflow: the bytes of one process stay far below 2^63.
  [[nodiscard]] std::int64_t change() const {
    return static_cast<std::int64_t>(after) - static_cast<std::int64_t>(before);
  }
};

struct CallerDifference {
  std::string name;
  bool is_before = false, is_after = false;   // whether the caller is in the old log, and in the new one
  BothFigures peak, requested, live, allocs;  // bytes at the peak, in total, never freed; number of blocks

  [[nodiscard]] std::uint64_t largest() const;
};

struct DeviceDifference {
  std::size_t ordinal = 0;
  BothFigures peak, reserved_peak, allocs, frees, refusals, live_blocks, live_bytes;
  std::vector<CallerDifference> callers;  // the largest difference first
};

struct LogDifference {
  // The logs of one side: before or after. The flags have the same meaning as in History: `was_cut_off` is true if any
  // log was cut off; each other flag is true if it holds for all logs.
  struct Side {
    std::vector<std::string> logs;  // their names
    bool has_ended = true, was_cut_off = false, knows_peak = true, has_exact_peak = true, is_whole = true;
  };
  Side before, after;
  BothFigures failed_allocs;  // allocations that failed in the driver
  BothFigures dropped;        // records that were dropped
  std::vector<DeviceDifference> devices;

  // "both"; "new" or "gone" if the other side is complete and does not have the caller; otherwise "unknown".
  [[nodiscard]] const char *occurrence_of(const CallerDifference &caller) const;
};

// Compares sums over several processes. A device's figures are the sums over all devices with the same number.
LogDifference difference_of(const std::vector<History> &before, const std::vector<History> &after);

// How much a peak may grow, as a number of bytes or as a share of the old peak.
struct Growth {
  std::uint64_t bytes = 0;
  std::optional<double> share;

  [[nodiscard]] bool is_exceeded_by(const BothFigures &peak) const;
};
// Returns the permitted growth, or one sentence with the error.
std::variant<Growth, std::string> read_growth(const std::string &text);

// `title`: the heading of the column with callers. `rows`: the maximum number of callers per device.
std::vector<std::string> difference_text(const LogDifference &difference, const char *title, std::size_t rows,
                                         std::size_t width);
// Schema ration.diff/1 (cli/README.md). `reasons`: why --fail-above failed; nullopt: the option was not given.
std::string difference_json(const LogDifference &difference, const std::string &by,
                            const std::optional<std::vector<std::string>> &reasons);

}  // namespace ration::logs
