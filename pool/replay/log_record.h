// One line of a log (schema ration.events/1) as far as a replay needs it.
// Layer: the replay program. Threads: values, no shared state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ration::pool::replay {

// What a line has under these keys of the log. Absent: not there, or not of the key's type.
struct LogRecord {
  std::string type;  // t
  std::string schema, api, kind;
  std::optional<std::uint64_t> address, size, requested, device, context, sequence, count, process;
};

// Nothing where the line is no JSON object.
std::optional<LogRecord> parse_record(std::string_view line);

}  // namespace ration::pool::replay
