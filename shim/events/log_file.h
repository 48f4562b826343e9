// One log file. It belongs to one process of a run, is written line by line, and every line is complete, however the
// process ends.
// Layer: events (a leaf). Threads: none of its own; the journal's lock orders the calls.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/file_identity.h"

namespace ration::events {

// The first characters of every log.
inline constexpr std::string_view kLogBegins = R"({"t":"meta","schema":"ration.events/)";

// Design: design/log.md#failing-logs
class LogFile {
 public:
  static constexpr std::uint64_t kPage = 4096;  // a divisor of the machine's page size

  // `limit_changes` counts how often the program has set its resource limits, and must outlive the log. If it is null,
  // nobody counts, and each write asks for the limit.
  explicit LogFile(const std::uint32_t *limit_changes = nullptr) : limit_changes_(limit_changes) {}

  // Claims `path` for this process and removes the content of an earlier run. If the file belongs to another process of
  // this run (`tree`), or to a living process of any run, claims `path`.PID instead, then `path`.PID.2 and so on. The
  // run that wrote a file is recognised by "tree":"…" in its first line. Returns false if the file cannot be written;
  // `problem` says why. Refuses FIFOs: if the reader went away, a write would raise SIGPIPE.
  bool claim(const std::string &path, const std::string &tree, std::int64_t pid, std::string &problem);
  bool is_open() const { return file_ >= 0; }
  const std::string &path() const { return path_; }

  // The number of bytes in this file so far.
  std::uint64_t size() const { return end_; }
  // Renames the present file to `path`.previous, replacing an earlier one, and begins a new file with `first_line`. If
  // the process is killed halfway, its files are whole, but the new file may still be named `path`.new, and may be
  // empty. Returns false if the present file stays in use.
  bool begin_anew(std::string_view first_line);

  // Adds whole lines; the next write will replace their last `tail_bytes`. A reader never sees half a line. Returns
  // false if nothing was added; the old tail may then be lost. The cause is a full disk, the file size limit, or a
  // program that closed the descriptor while the path leads elsewhere. `at_ns`: the present time by ration::now_ns().
  bool write(std::string_view text, std::size_t tail_bytes, std::uint64_t at_ns);
  // Why the latest write failed, as an errno value. REQUIRES: it failed.
  int error() const { return error_; }

  // The last lines of the file, never its first: as many as must be replaced to make room for `bytes`. Their space is
  // already allocated, so it can be overwritten even on a full disk or at the file size limit. Empty if there are no
  // such lines. Valid until the next call.
  std::string_view last_lines(std::size_t bytes);
  // Overwrites the lines that last_lines() returned with `text`, which is no longer than the `bytes` that last_lines()
  // was called with. `tail_bytes` is as for write(). Returns false if nothing was changed.
  bool replace_last(std::string_view text, std::size_t tail_bytes);

 private:
  enum class Claim { taken, busy, moved, failed };
  // If `may_move`, the result may be `moved`, which means that the path now leads to another file.
  Claim try_claim(const std::string &path, const std::string &tree, bool may_move, std::string &problem);
  enum class Moved { not_apt, failed, done };
  bool look(std::uint64_t at_ns);
  bool is_open_still();
  bool within_size_limit(std::uint64_t end) const { return end <= size_limit_; }
  ssize_t put_some(std::string_view text, std::uint64_t at);
  bool put(std::string_view text, std::uint64_t at);  // overwrites what is there, or appends
  void cut(std::uint64_t end);
  // Design: design/log.md#whole-lines
  bool fill_page();
  std::size_t blanks_before(std::size_t bytes) const;
  bool write_on_next_page(std::string_view text, std::size_t tail_bytes, std::size_t blanks);
  Moved move_tail(std::string_view text, std::size_t tail_bytes);

  const std::uint32_t *const limit_changes_;
  std::uint32_t changes_seen_ = 0;
  std::uint64_t size_limit_ = UINT64_MAX;  // RLIMIT_FSIZE when it was last read
  std::uint64_t looked_at_ns_ = 0;

  int error_ = 0;
  std::uint64_t last_at_ = 0;  // start of the lines that last_lines() returned

  int file_ = -1;
  bool in_reach_ = true;  // the descriptor's number is low, so the kernel may soon give it to the program
  bool seekable_ = true;
  std::uint64_t offset_ = 0;  // start of the tail
  std::uint64_t end_ = 0;     // end of the tail
  std::string path_;          // absolute
  char two_pages_[2 * kPage];
  FileIdentity identity_;  // identity of the file, whichever descriptor refers to it
};

// Closes the parent's log, which would otherwise stay claimed while the child lives. Call it once in a forked child.
// Makes only system calls.
void close_inherited_log();

}  // namespace ration::events
