#include "cli/log_end.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/exit_status.h"
#include "events/json_lines.h"

namespace ration::cli {

namespace {

using nlohmann::json;

LogProblem unreadable(std::uint64_t line, const std::string &why) {
  return {kUnreadable, "line " + std::to_string(line) + ": " + why};
}

bool is_meta(const json &record) {
  return record.is_object() && record.value("t", json()) == "meta" && record.value("schema", json()) == events::kSchema;
}

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

std::variant<LogEnd, LogProblem> read_log_end(std::istream &log) {
  json meta;
  json record;
  std::uint64_t number = 0;
  for (std::string line; std::getline(log, line);) {
    ++number;
    if (log.eof()) {
      return unreadable(number, "the log was cut off here");
    }
    record = json::parse(line, nullptr, false);
    if (number == 1) {
      if (!is_meta(record)) {
        return LogProblem{kUnreadable, "not a log of Ration: its first line is no meta record"};
      }
      meta = record;
    } else if (!record.is_object() || !record.contains("t")) {
      return unreadable(number, "no record: the log was cut off or changed");
    } else if (record.value("seq", json()) != number - 1) {
      return unreadable(number, "records are missing before this one");
    }
  }
  if (number == 0) {
    return LogProblem{kUnreadable, "it is empty: the program has made no CUDA call, or could not write it"};
  }
  if (record.value("t", json()) != "end") {
    return LogProblem{kNoAnswer,
                      "it has no end record: the program was killed or still runs, and what it asked for is "
                      "written when it ends"};
  }
  if (!says_names(record)) {
    return LogProblem{kNoAnswer, "a version of Ration wrote it that did not count unknown functions"};
  }
  try {
    return answer(meta, record);
  } catch (const json::exception &) {
    return unreadable(number, "its keys are not those of a log");
  }
}

std::variant<LogEnd, LogProblem> read_log_end(const std::string &path) {
  struct stat status {};
  if (stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
    return LogProblem{kUnreadable, std::strerror(EISDIR)};
  }
  errno = 0;
  std::ifstream log(path);
  if (!log) {
    return LogProblem{kUnreadable, errno != 0 ? std::strerror(errno) : "it cannot be opened"};
  }
  std::variant<LogEnd, LogProblem> read = read_log_end(log);
  if (log.bad()) {
    return LogProblem{kUnreadable, "it cannot be read"};
  }
  return read;
}

}  // namespace ration::cli
