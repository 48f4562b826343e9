#include "cli/logs/read_history.h"

#include "cli/log.h"
#include "cli/logs/log_reader.h"
#include "cli/logs/progress.h"

namespace ration::cli {

bool read_records(const std::string &verb, const std::string &log, const std::function<void(const Record &)> &take) {
  LogReader reader(log);
  Progress progress(log);
  for (Record record; reader.next(record);) {
    take(record);
    progress.read(reader.bytes());
  }
  if (!reader.problem().empty()) {
    log_line(verb + ": " + log + ": " + reader.problem());
  }
  return reader.problem().empty();
}

bool read_history(const std::string &verb, const std::string &log, History &history) {
  const bool is_whole = read_records(verb, log, [&history](const Record &record) { history.add(record); });
  history.finish();
  return is_whole;
}

}  // namespace ration::cli
