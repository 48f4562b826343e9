#include "logs/history/read_history.h"

#include "cli/base/log.h"
#include "logs/reader/log_reader.h"
#include "logs/reader/progress.h"

namespace ration::logs {

ReadTo say_how_far(const std::string &verb, const std::string &log, const LogReader &reader) {
  if (!reader.problem().empty()) {
    cli::log_error(verb + ": " + log + ": " + reader.problem());
    return ReadTo::nowhere;
  }
  if (reader.cut_off_line() != 0) {
    cli::log_line(verb + ": " + log + ": the log was cut off in line " + std::to_string(reader.cut_off_line()) +
                  ": what stands before that was read");
    return ReadTo::cut;
  }
  return ReadTo::end;
}

ReadTo read_records(const std::string &verb, const std::string &log, const std::function<void(const Record &)> &take) {
  LogReader reader(log);
  {
    Progress progress(log);
    for (Record record; reader.next(record);) {
      take(record);
      progress.read(reader.bytes());
    }
  }
  return say_how_far(verb, log, reader);
}

bool read_history(const std::string &verb, const std::string &log, History &history) {
  const ReadTo read = read_records(verb, log, [&history](const Record &record) { history.add(record); });
  if (read == ReadTo::cut) {
    history.note_cut_off();
  }
  history.finish();
  return read != ReadTo::nowhere;
}

}  // namespace ration::logs
