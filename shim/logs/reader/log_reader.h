// Reads a log record by record, plain or compressed (log_input.h); needs as much memory as the longest line. If a log
// has parts (--log-size), the part before the last one is read first, if it still exists. Layer: logs. Threads: none of
// its own. Owns: the file.
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

// A key of the `meta` record that only logs with `names` records have.
constexpr std::string_view kHasNames = "names";

// True if the line is a record of this type. Looks only at its first key, which suffices for lines that the library
// wrote.
bool is_record_of(std::string_view line, std::string_view type);
// The record in a line; its type is `other` if the line is not a record.
Record record_in(const std::string &line);

class LogReader {
 public:
  // Reads a log from a file (log_names.h). If that is not possible, problem() says why.
  explicit LogReader(const std::string &path);
  // Reads a log from a stream, which must outlive the reader.
  explicit LogReader(std::istream &log) : log_(&log) {}

  // Reads the next record. The first is the `meta`, whose `first_seq` is the number of the first record if that is not
  // 1. Returns false at the end, or if problem() says what is wrong. Every line of a log is a record with the next
  // number, however the process ended. The `names`, which are at the end of the file, are also returned before the
  // other records.
  bool next(Record &record);
  // The number of bytes of the file read so far.
  std::uint64_t bytes() const;
  // The files that contain the log; known after the first record was read.
  const std::vector<std::string> &files() const { return files_; }
  // One sentence about what is wrong; empty: nothing.
  const std::string &problem() const { return problem_; }
  // True if the problem is that the log has no lines.
  bool is_empty() const { return is_empty_; }
  // The number of the line in which the file was cut off; next() returns the records before it. 0: no cut was found.
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
  std::string path_;  // empty: the reader has a stream
  std::vector<std::string> files_;
  std::unique_ptr<LogInput> last_;  // the last part, while the part before it is read
  bool is_to_look_ahead_ = false;
  std::vector<Record> ahead_;  // records read by look_ahead() that next() has yet to return
  std::uint64_t lines_ = 0;    // lines read in this part
  std::uint64_t next_seq_ = 1;
  std::uint64_t bytes_ = 0;
  bool is_broken_ = false;  // the last line is not JSON
  std::uint64_t cut_off_line_ = 0;
  std::string problem_;
  bool is_empty_ = false;
};

}  // namespace ration::logs
