// Opens the log of a run that has ended, and replaces it, as a whole or not at all. Layer: cli. Owns: open files.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "logs/reader/record.h"

namespace ration::cli {

// Blocks SIGXFSZ and the signals that would end us, for as long as the object exists.
class HeldSignals {
 public:
  HeldSignals();
  // Discards the signals that have arrived: they asked the command to end, and it has ended. Its exit status counts.
  ~HeldSignals();
  HeldSignals(const HeldSignals &) = delete;
  HeldSignals &operator=(const HeldSignals &) = delete;

  // True if one of the blocked signals has arrived.
  bool have_come() { return have_come_ = have_come_ || is_taken(); }

 private:
  bool is_taken() const;

  sigset_t ending_, inherited_;
  bool have_come_ = false;
};

struct OpenFile {
  explicit OpenFile(int descriptor) : number(descriptor) {}
  ~OpenFile() {
    if (number >= 0) {
      ::close(number);
    }
  }
  OpenFile(const OpenFile &) = delete;
  OpenFile &operator=(const OpenFile &) = delete;
  // A network file system may report a failed write only when the file is closed.
  bool close() { return ::close(std::exchange(number, -1)) == 0; }

  int number;
};

// Opens a log for reading and for lock_log(). Returns a negative number on failure; errno then says why.
int open_ended(const std::string &path);

// The log's first line, if it names process `pid` and this run's `folder` (RATION_SUMMARY). Another run may have reused
// the log's name by now.
std::optional<logs::Record> meta_of_run(const std::string &path, std::int64_t pid, const std::string &folder);

// Why a process may still write to the file; empty if none can. In that case, none can begin to while the file is open
// here (LogFile::claim).
std::string lock_log(int file, std::int64_t writer);

// A new log file that is not yet complete. The file has no name, so that nothing is left behind if we are killed. On a
// file system without unnamed files it has a temporary name.
class UnfinishedLog {
 public:
  explicit UnfinishedLog(std::string target);
  ~UnfinishedLog();
  UnfinishedLog(const UnfinishedLog &) = delete;
  UnfinishedLog &operator=(const UnfinishedLog &) = delete;

  const OpenFile &file() const { return file_; }
  // Once the content is on the disk, gives the file its final name and the log's mode, unless `path` now leads to a
  // file other than `log`. Returns the reason for a failure; empty on success.
  std::string replace(const std::string &path, const struct stat &log);

 private:
  bool take_name();

  const std::string target_;
  OpenFile file_;
  std::string temporary_;  // empty: the file has no name
};

}  // namespace ration::cli
