// A log of a run that has ended, and the file that takes its place, whole or not at all. Layer: cli. Owns: open files.
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

// Holds back the signals that would end us, and that of a file at its limit of size.
class HeldSignals {
 public:
  HeldSignals();
  // Whoever sent one wanted the command to end, which it has: its exit status counts.
  ~HeldSignals();
  HeldSignals(const HeldSignals &) = delete;
  HeldSignals &operator=(const HeldSignals &) = delete;

  // Whether one has come by now.
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
  // A network file system may report a failed write only here.
  bool close() { return ::close(std::exchange(number, -1)) == 0; }

  int number;
};

// For reading, and for lock_log(); negative: errno says why.
int open_ended(const std::string &path);

// The first line, if it names this process and the folder of a run (RATION_SUMMARY). Another run may have the name by
// now.
std::optional<logs::Record> meta_of_run(const std::string &path, std::int64_t pid, const std::string &folder);

// Why a process may still write the file; empty: none does, nor will one as long as it is open here (LogFile::claim).
std::string lock_log(int file, std::int64_t writer);

// The new file until it is whole: without a name, so that nothing is left where we are killed; on a file system that
// has no such files under a temporary name.
class UnfinishedLog {
 public:
  explicit UnfinishedLog(std::string target);
  ~UnfinishedLog();
  UnfinishedLog(const UnfinishedLog &) = delete;
  UnfinishedLog &operator=(const UnfinishedLog &) = delete;

  const OpenFile &file() const { return file_; }
  // Gives it its name and the mode of the log, once that is on the disk, unless `path` leads to another file than `log`
  // by now. Why not; empty: it has them.
  std::string replace(const std::string &path, const struct stat &log);

 private:
  bool take_name();

  const std::string target_;
  OpenFile file_;
  std::string temporary_;  // empty: it has no name
};

}  // namespace ration::cli
