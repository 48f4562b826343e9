// The tables of `ration ps` and `ration top`: processes, groups, devices. Layer: cli. Threads: values, pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/base/text_table.h"
#include "cli/usage/process_rows.h"

namespace ration::cli {

// Formats bytes as config::show_bytes does; "-" if there is no limit.
std::string short_bytes(std::uint64_t bytes);

// Returns for example "59s", "59m", "23h" or "99d".
std::string short_age(std::uint64_t start_unix_ns, std::uint64_t now_unix_ns);

// Names devices by their index on this machine. A device without an index is named by the first digits of its UUID, as
// many as are needed to be unique within the snapshot.
class GpuNames {
 public:
  explicit GpuNames(const Usage &usage);
  [[nodiscard]] std::string of(const std::string &uuid, int gpu) const;
  [[nodiscard]] std::string digits_of(const std::string &uuid) const;
  // The beginning of the UUID, as `ration set` takes it: "GPU-1f2e3d4c".
  [[nodiscard]] std::string mark_of(const std::string &uuid) const;

 private:
  std::size_t length_;
};

// How a table is shown.
struct TableLook {
  std::size_t width = 0;
  bool has_bars = false;
  bool is_unicode = false;             // bars and marks may use UTF-8
  std::optional<SortKey> sorted = {};  // the column by which rows are sorted, which is marked and never omitted
  bool is_reversed = false;
  std::size_t end = 0;  // the columns to leave free after the last title of the process table
};

inline constexpr const char *kBarTitle = "MEMORY";

// The columns for groups, containers, guarantees, waiting and pieces appear only if one of their cells has a value.
// Titles come first. No line is longer than the width.
Table process_table(const Usage &usage, const TableLook &look);
Table group_table(const Usage &usage, const TableLook &look);

Table device_table(const Usage &usage, const TableLook &look);

// All tables, separated by empty lines: processes and memory outside Ration; groups; devices, if NVML knows them; and
// what each process waits for. A table without rows is omitted. Processes in no group get no group row.
std::vector<std::string> all_tables(Usage usage, std::size_t width);

}  // namespace ration::cli
