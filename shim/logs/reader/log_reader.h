// Reads a log record by record, in as much memory as the longest line takes, plain or compressed (log_input.h). Of a
// log in parts (--log-size) the part before the last is read first, where it is still there. Layer: logs. Threads: none
// of its own. Owns: the file.
#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "logs/reader/log_input.h"
#include "logs/reader/record.h"

namespace ration::logs {

// The key of a `meta` whose log has `names`.
constexpr std::string_view kHasNames = "names";

// Whether a line is a record of this type, by its first key, which is enough of the lines that the library writes.
bool is_record_of(std::string_view line, std::string_view type);
// Of type `other` where the line is none.
Record record_in(const std::string &line);

class LogReader {
 public:
  // A log in a file (log_names.h); problem() says where that cannot be read.
  explicit LogReader(const std::string &path);
  // The same of a stream, which outlives the reader.
  explicit LogReader(std::istream &log) : log_(&log) {}

  // The next record; the first is the `meta`, whose `first_seq` says where the records begin if not with 1. False:
  // there is none, or problem() says what is wrong with it. Every line of a log is a record with the next number,
  // however its process ended. The `names`, which stand at a file's end, are given before the other records, too.
  bool next(Record &record);
  // Of the file, read by now.
  std::uint64_t bytes() const;
  // The files that the log is in, once its first record was read.
  const std::vector<std::string> &files() const { return files_; }
  // One sentence; empty: none.
  const std::string &problem() const { return problem_; }
  // That is the problem.
  bool is_empty() const { return is_empty_; }
  // The line in which the file was cut off; next() gives what stands before that. 0: none was seen.
  std::uint64_t cut_off_line() const { return cut_off_line_; }

 private:
  bool fail(const std::string &why);
  bool is_cut_off(const Record &record);
  bool next_line(Record &record);
  void look_ahead();
  bool read_first(Record &record);
  bool read_previous(Record &last);
  bool open_previous(const std::string &path, Record &last);

  std::unique_ptr<LogInput> file_;
  std::istream *log_;
  std::string line_;
  std::string path_;  // empty: a stream
  std::vector<std::string> files_;
  std::unique_ptr<LogInput> last_;  // while the part before it is read
  bool is_to_look_ahead_ = false;
  std::vector<Record> ahead_;  // found there, and still to be given
  std::uint64_t lines_ = 0;    // of this part
  std::uint64_t next_seq_ = 1;
  std::uint64_t bytes_ = 0;
  bool is_broken_ = false;  // the last line: it is no JSON
  std::uint64_t cut_off_line_ = 0;
  std::string problem_;
  bool is_empty_ = false;
};

}  // namespace ration::logs
