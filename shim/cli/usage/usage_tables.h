// The two tables of `ration ps` and `ration top`: processes and groups. Layer: cli. Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/usage/process_rows.h"

namespace ration::cli {

// "512MiB", "6.39GiB": at most seven characters below 1 TiB, truncated as all displayed sizes are. "-": no limit.
std::string short_bytes(std::uint64_t bytes);

// "59s", "59m", "23h", "99d".
std::string short_age(std::uint64_t start_unix_ns, std::uint64_t now_unix_ns);

// Guarantees, what is waited for and granules have columns only where there are some. Titles first, no line longer than
// `width`. A GPU is named by the first digits of its UUID, as many as make it unique.
std::vector<std::string> process_table(const Usage &usage, std::size_t width);
std::vector<std::string> group_table(const Usage &usage, std::size_t width);

// Processes, an empty line, groups; a table without rows is omitted.
std::vector<std::string> both_tables(const Usage &usage, std::size_t width);

}  // namespace ration::cli
