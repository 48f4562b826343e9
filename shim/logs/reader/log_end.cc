#include "logs/reader/log_end.h"

#include <nlohmann/json.hpp>

#include "cli/base/exit_status.h"

namespace ration::logs {

namespace {

using nlohmann::json;

// The keys that `end` has had from the first version that counted names.
bool says_names(const json &end) {
  return end.contains("unknown_names") && end.contains("newer");
}

LogEnd answer(const json &meta, const json &end) {
  LogEnd read;
  meta.at("exe").get_to(read.program);
  meta.at("pid").get_to(read.pid);
  meta.at("driver").get_to(read.driver);
  meta.at("ver").get_to(read.version);
  end.at("unknown_names").get_to(read.unknown_names);
  end.at("unknown").get_to(read.unknown);
  end.at("unknown_versions").get_to(read.unknown_versions);
  end.at("newer").get_to(read.newer);
  return read;
}

}  // namespace

std::variant<LogEnd, LogProblem> read_log_end(LogReader &log) {
  Record record;
  json meta;
  while (log.next(record)) {
    if (record.type == Record::Type::meta) {
      meta = record.fields;
    }
  }
  if (!log.problem().empty()) {
    return LogProblem{cli::kUnreadable, log.problem()};
  }
  if (log.cut_off_line() != 0) {
    return LogProblem{cli::kNoAnswer, "the log was cut off in line " + std::to_string(log.cut_off_line()) +
                                          ", and what the program asked for stands at its end"};
  }
  if (record.type != Record::Type::end) {
    return LogProblem{cli::kNoAnswer,
                      "it has no end record: the program was killed or still runs, and what it asked for is "
                      "written when it ends"};
  }
  if (!says_names(record.fields)) {
    return LogProblem{cli::kNoAnswer, "a version of Ration wrote it that did not count unknown functions"};
  }
  try {
    return answer(meta, record.fields);
  } catch (const json::exception &) {
    return LogProblem{cli::kUnreadable, "the keys of its first or last line are not those of a log"};
  }
}

}  // namespace ration::logs
