// The keys of a log line (schema ration.events/1) that a replay needs.
// Layer: the replay program. Threads: values, no shared state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ration::pool::replay {

// Values by key. Absent: the key is missing or has another type.
struct LogRecord {
  std::string type;  // t
  std::string schema, api, kind;
  std::optional<std::uint64_t> address, size, requested, device, context, sequence, count, process;
};

// Nothing where the line is not a JSON object.
std::optional<LogRecord> parse_record(std::string_view line);

}  // namespace ration::pool::replay
