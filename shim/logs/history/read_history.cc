#include "logs/history/read_history.h"

#include "cli/base/log.h"
#include "config/values/quotes.h"
#include "logs/reader/log_reader.h"
#include "logs/reader/progress.h"
#include "logs/report/caveats.h"

namespace ration::logs {

ReadTo each_record(const std::string &verb, const std::string &log, const std::function<void(const Record &)> &take) {
  LogReader reader(log);
  if (const std::string &file = reader.files().front(); file != log && reader.problem().empty()) {
    cli::log_line(verb + ": " + config::printable(log) + " is not there: " + config::printable(file) + " is read");
  }
  {
    Progress progress(log);
    for (Record record; reader.next(record);) {
      take(record);
      progress.read(reader.bytes());
    }
  }
  if (!reader.problem().empty()) {
    cli::log_error(verb + ": " + log + ": " + reader.problem());
    return reader.is_empty() ? ReadTo::empty : ReadTo::nowhere;
  }
  if (reader.cut_off_line() != 0) {
    cli::log_line(verb + ": " + log + ": the log was cut off in line " + std::to_string(reader.cut_off_line()) +
                  ": what stands before that was read");
    return ReadTo::cut;
  }
  return ReadTo::end;
}

ReadTo read_records(const std::string &verb, const std::string &log, const std::function<void(const Record &)> &take) {
  bool has_ended = false;
  const ReadTo read = each_record(verb, log, [&](const Record &record) {
    has_ended = has_ended || record.type == Record::Type::end;
    take(record);
  });
  if (read == ReadTo::end && !has_ended) {
    cli::log_line(verb + ": " + config::printable(log) + ": " + caveat_of_end(false, false));
  }
  return read;
}

ReadTo read_history(const std::string &verb, const std::string &log, History &history) {
  const ReadTo read = each_record(verb, log, [&history](const Record &record) { history.add(record); });
  if (read == ReadTo::cut) {
    history.note_cut_off();
  }
  history.finish();
  return read;
}

}  // namespace ration::logs
