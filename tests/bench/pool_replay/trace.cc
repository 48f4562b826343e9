#include "tests/bench/pool_replay/replay.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>

namespace ration::pool::replay {
namespace {

struct Line {
  std::uint64_t name;
  bool is_free;
  std::uint64_t bytes;
};

std::optional<std::uint64_t> take_number(std::string_view &text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

// `a ID BYTES` or `f ID`, without trailing text.
std::optional<Line> parse_line(std::string_view line) {
  const bool is_free = line.substr(0, 2) == "f ";
  if (!is_free && line.substr(0, 2) != "a ") return std::nullopt;
  line.remove_prefix(2);
  const std::optional<std::uint64_t> name = take_number(line);
  if (!name || *name >= std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  std::uint64_t bytes = 0;
  if (!is_free) {
    if (line.empty() || line.front() != ' ') return std::nullopt;
    line.remove_prefix(1);
    const std::optional<std::uint64_t> number = take_number(line);
    if (!number || *number == 0) return std::nullopt;
    bytes = *number;
  }
  if (!line.empty()) return std::nullopt;
  return Line{*name, is_free, bytes};
}

}  // namespace

Trace parse_trace(const std::string &path, std::string_view text) {
  TraceBuilder builder;
  bool any = false;
  for (std::uint64_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    const auto refuse = [&](const std::string &why) {
      throw TraceError(path + ":" + std::to_string(number) + ": " + why);
    };
    const std::optional<Line> read = parse_line(line);
    if (!read) {
      refuse("neither `a ID BYTES` nor `f ID`: " + std::string(line.substr(0, 80)));
    } else if (const char *wrong =
                   read->is_free ? builder.free(read->name) : builder.allocate(read->name, read->bytes)) {
      refuse("block " + std::to_string(read->name) + " " + wrong);
    }
    any = true;
  }
  if (!any) throw TraceError(path + ": no operation in it");
  return builder.take();
}

Trace read_trace(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  if (!file) throw TraceError(path + ": cannot be read");
  return parse_trace(path, content);
}

}  // namespace ration::pool::replay
