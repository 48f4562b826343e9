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
  BothFigures peak, reserved_peak, allocs, frees, refusals, leaks, leaked_bytes;
  std::vector<CallerDifference> callers;  // that of the largest difference first
};

struct LogDifference {
  std::string before, after;  // logs
  BothFigures failed_allocs;  // in the driver
  BothFigures dropped;        // records
  bool before_ended = true, after_ended = true;
  bool before_cut_off = false, after_cut_off = false;
  std::vector<DeviceDifference> devices;
};

LogDifference difference_of(const History &before, const History &after);

// How much a peak may grow: by so many bytes, or by a part of what it was.
struct Growth {
  std::uint64_t bytes = 0;
  std::optional<double> share;

  [[nodiscard]] bool is_exceeded_by(const BothFigures &peak) const;
};
// Otherwise one sentence with what is wrong.
std::variant<Growth, std::string> read_growth(const std::string &text);

// `rows`: callers of each device at most.
std::vector<std::string> difference_text(const LogDifference &difference, std::size_t rows, std::size_t width);
// Schema ration.diff/1 (../README.md). `exceeds`: --fail-above; nothing: it was not given.
std::string difference_json(const LogDifference &difference, const std::string &by, std::optional<bool> exceeds);

}  // namespace ration::logs
