// The first parts of a report in text form: requests that were refused, and groups that grow. Layer: logs. Threads:
// pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "logs/history/history.h"

namespace ration::logs {

using Lines = std::vector<std::string>;

// Formats a time, for example as "1.500 s".
std::string seconds(std::uint64_t ns);

// For example "24MiB short" if the largest request lacked 24 MiB; else the largest free piece; empty: neither is known.
std::string lack_words(const History::Refusal &refusal);
// Describes a reason, for example as "over the limit".
std::string reason_words(const std::string &reason);
// The group whose limit was reached, and the processes that held most of it or of the full device; empty: unknown.
Lines holder_lines(const History::RefusedBy &by);
// Adds for each function and reason: when requests were refused, what was missing, a remedy, and who held memory.
void add_refusals(Lines &lines, const History &history, std::size_t device);
// Adds the groups that grow.
void add_growth(Lines &lines, const History &history, std::size_t device);
// One line: "load (train.py:3) grows: the least that it held rose from 16MiB to 512MiB; its oldest block lived for
// 9.800 s". `is_whole`: the log has its end.
std::string growth_words(const History::Growing &growing, bool is_whole);

}  // namespace ration::logs
