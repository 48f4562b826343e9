#include "tests/bench/pool_replay/input.h"

#include <utility>

#include "tests/bench/pool_replay/trace_file.h"

namespace ration::pool::replay {

Input parse_input(const std::string &path, const std::string &content, const LogSelection &selection) {
  const std::string text = unpack(path, content);
  if (is_log(text)) {
    LogTrace log = parse_log(path, text, selection);
    return {std::move(log.trace), log.pool, log.pools, std::move(log.flaws)};
  }
  if (selection.any()) throw TraceError(path + ": a trace has only one pool; only logs have devices and contexts");
  return {parse_trace(path, text), std::nullopt, 0, {}};
}

Input read_input(const std::string &path, const LogSelection &selection) {
  return parse_input(path, read_file(path), selection);
}

}  // namespace ration::pool::replay
