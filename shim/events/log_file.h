// One log file: claimed by one process of a run, written line by line, valid to its last line however the process ends.
// Layer: events (a leaf). Threads: none of its own; the journal's lock orders the calls.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/file_identity.h"

namespace ration::events {

// How every log begins.
inline constexpr std::string_view kLogBegins = R"({"t":"meta","schema":"ration.events/)";

// Design: design/log.md#failing-logs
class LogFile {
 public:
  static constexpr std::uint64_t kPage = 4096;  // a divisor of the machine's page size

  // `limit_changes` counts what the program did to its resource limits; null: nobody counts, and each write asks for
  // the limit. It outlives the log.
  explicit LogFile(const std::uint32_t *limit_changes = nullptr) : limit_changes_(limit_changes) {}

  // Claims `path` and truncates an earlier run's content. If another process of this run (`tree`) or a living process
  // of any run has it, claims `path`.PID, then `path`.PID.2 and so on. Finds the run as "tree":"…" in the first line.
  // False: cannot be written, `problem` says why. Refuses FIFOs: a reader that goes away would cause SIGPIPE.
  bool claim(const std::string &path, const std::string &tree, std::int64_t pid, std::string &problem);
  bool is_open() const { return file_ >= 0; }
  const std::string &path() const { return path_; }

  // Bytes of lines so far, in this file.
  std::uint64_t size() const { return end_; }
  // Moves what was written to `path`.previous, where an earlier such file is replaced, and begins the file anew with
  // `first_line`. Killed in between, the process leaves whole files, of which one may be named `path`.new, or be empty
  // under that name. False: the file stays.
  bool begin_anew(std::string_view first_line);

  // Adds whole lines; the next write replaces the last `tail_bytes` of them. A reader never sees half a line. False:
  // nothing was added (full disk, file size limit, or the program closed the descriptor and the path leads elsewhere);
  // the old tail may be lost. `at_ns`: the time, of ration::now_ns().
  bool write(std::string_view text, std::size_t tail_bytes, std::uint64_t at_ns);
  // Why the latest write failed, as errno has it. REQUIRES: it failed.
  int error() const { return error_; }

  // The last lines, without the first, such that `bytes` fit in their place, which the file system has given already:
  // also on a full disk, and at a limit of file sizes. Empty: there are none. Valid until the next call.
  std::string_view last_lines(std::size_t bytes);
  // Puts lines in the place of those that last_lines() returned, at most as many bytes as it was asked for; the rest as
  // write(). False: nothing was changed.
  bool replace_last(std::string_view text, std::size_t tail_bytes);

 private:
  enum class Claim { taken, busy, moved, failed };
  // `may_move`: the answer may be that the path leads to another file by now.
  Claim try_claim(const std::string &path, const std::string &tree, bool may_move, std::string &problem);
  enum class Moved { not_apt, failed, done };
  bool look(std::uint64_t at_ns);
  bool is_open_still();
  bool within_size_limit(std::uint64_t end) const { return end <= size_limit_; }
  ssize_t put_some(std::string_view text, std::uint64_t at);
  bool put(std::string_view text, std::uint64_t at);  // replaces what is there, or adds it
  void cut(std::uint64_t end);
  // Design: design/log.md#whole-lines
  bool fill_page();
  std::size_t blanks_before(std::size_t bytes) const;
  bool write_on_next_page(std::string_view text, std::size_t tail_bytes, std::size_t blanks);
  Moved move_tail(std::string_view text, std::size_t tail_bytes);

  const std::uint32_t *const limit_changes_;
  std::uint32_t changes_seen_ = 0;
  std::uint64_t size_limit_ = UINT64_MAX;  // RLIMIT_FSIZE, when it was last asked for
  std::uint64_t looked_at_ns_ = 0;

  int error_ = 0;
  std::uint64_t last_at_ = 0;  // where the last lines begin

  int file_ = -1;
  bool in_reach_ = true;  // its number may be given to another file of the program
  bool seekable_ = true;
  std::uint64_t offset_ = 0;  // start of the tail
  std::uint64_t end_ = 0;     // end of the tail
  std::string path_;          // absolute
  char two_pages_[2 * kPage];
  FileIdentity identity_;  // whichever descriptor refers to it
};

// Call once in a forked child: closes the parent's log, which would otherwise stay claimed as long as the child lives.
// Only system calls.
void close_inherited_log();

}  // namespace ration::events
