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

// As config::show_bytes; "-": no limit.
std::string short_bytes(std::uint64_t bytes);

// "59s", "59m", "23h", "99d".
std::string short_age(std::uint64_t start_unix_ns, std::uint64_t now_unix_ns);

// Names devices: by their index on this machine, else by the first digits of the UUID, as many as make it unique among
// the devices of a snapshot.
class GpuNames {
 public:
  explicit GpuNames(const Usage &usage);
  [[nodiscard]] std::string of(const std::string &uuid, int gpu) const;
  [[nodiscard]] std::string digits_of(const std::string &uuid) const;

 private:
  std::size_t length_;
};

// How a table is shown.
struct TableLook {
  std::size_t width = 0;
  bool has_bars = false;
  bool is_unicode = false;             // bars and marks
  std::optional<SortKey> sorted = {};  // its column is marked, and never omitted
  bool is_reversed = false;
  std::size_t end = 0;  // columns that stay free behind the last title, of processes
};

inline constexpr const char *kBarTitle = "MEMORY";

// Groups, containers, guarantees, what is waited for and granules have columns only where there are some. Titles first,
// no line longer than the width.
Table process_table(const Usage &usage, const TableLook &look);
Table group_table(const Usage &usage, const TableLook &look);

Table device_table(const Usage &usage, const TableLook &look);

// Processes and what others hold; groups; devices where NVML knows them; who waits, and for what. Empty lines between;
// a table without rows is omitted. Processes without a group are no group.
std::vector<std::string> all_tables(Usage usage, std::size_t width);

}  // namespace ration::cli
