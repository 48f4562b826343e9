#include "logs/reader/named_logs.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "cli/base/log.h"
#include "config/values/quotes.h"
#include "logs/reader/log_names.h"
#include "logs/reader/log_reader.h"

namespace ration::logs {
namespace {

struct NamedLog {
  std::string path;
  std::string process;        // identifies the process that wrote it; empty: unknown
  std::uint64_t part = 1;     // number of its last part
  bool has_previous = false;  // the part before the last one is read too
};

NamedLog look_at_log(const std::string &path) {
  NamedLog log{path, {}};
  const std::string name = path == "-" ? "/dev/stdin" : path;
  struct stat status {};
  if (stat(present_log(name).c_str(), &status) != 0) {
    return log;
  }
  log.process = std::to_string(status.st_dev) + '\n' + std::to_string(status.st_ino);
  if (!S_ISREG(status.st_mode)) {
    return log;  // a pipe can be read only once, so do not look into it
  }
  LogReader reader(name);
  Record meta;
  if (!reader.next(meta)) {
    return log;
  }
  log.has_previous = reader.files().size() > 1;
  log.part = std::max<std::uint64_t>(meta.number("part"), 1) + (log.has_previous ? 1 : 0);
  if (const std::uint64_t start = meta.number("start_unix_ns"); start != 0) {
    log.process = std::string(meta.text("host")) + '\n' + std::string(meta.text("tree")) + '\n' +
                  std::to_string(meta.number("pid")) + '\n' + std::to_string(start);
  }
  return log;
}

bool has_all_of(const NamedLog &log, const NamedLog &other) {
  if (log.process.empty() || log.process != other.process) {
    return false;
  }
  return log.part == other.part ? log.has_previous || !other.has_previous
                                : log.has_previous && !other.has_previous && log.part == other.part + 1;
}

void say_left_out(const std::string &verb, const NamedLog &left_out, const NamedLog &log) {
  cli::log_line(verb + ": " + config::printable(left_out.path) + " is " +
                (left_out.part == log.part ? "" : "a part of ") + "the log " + config::printable(log.path) +
                (left_out.part == log.part ? " again: it is counted once" : ": it is counted once"));
}

}  // namespace

std::vector<std::string> each_log_once(const std::string &verb, const std::vector<std::string> &paths) {
  if (paths.size() < 2) {
    return paths;
  }
  std::vector<NamedLog> kept;
  for (const std::string &path : paths) {
    NamedLog log = look_at_log(path);
    const auto same =
        std::find_if(kept.begin(), kept.end(), [&](const NamedLog &each) { return has_all_of(each, log); });
    if (same != kept.end()) {
      say_left_out(verb, log, *same);
      continue;
    }
    for (auto each = kept.begin(); each != kept.end();) {
      if (has_all_of(log, *each)) {
        say_left_out(verb, *each, log);
        each = kept.erase(each);
      } else {
        ++each;
      }
    }
    kept.push_back(std::move(log));
  }
  std::vector<std::string> once;
  std::transform(kept.begin(), kept.end(), std::back_inserter(once), [](const NamedLog &each) { return each.path; });
  return once;
}

}  // namespace ration::logs
