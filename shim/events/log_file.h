// One log file: claimed by one process of a run, written line by line, valid to its last line however the process ends.
// Layer: events (a leaf). Threads: none of its own; the journal's lock orders the calls.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace ration::events {

class LogFile {
 public:
  // Claims `path` and truncates an earlier run's content. If another process of this run (`tree`) or a living process
  // of any run has it, claims `path`.PID, then `path`.PID.2 and so on. Finds the run as "tree":"…" in the first line.
  // False: cannot be written, `problem` says why. Refuses FIFOs: a reader that goes away would cause SIGPIPE.
  bool claim(const std::string &path, const std::string &tree, std::int64_t pid, std::string &problem);
  bool is_open() const { return file_ >= 0; }
  const std::string &path() const { return path_; }

  // Adds whole lines; the next write replaces the last `tail_bytes` of them. A reader never sees half a line. False:
  // nothing was added (full disk, file size limit, or the program closed the descriptor and the path leads elsewhere);
  // the old tail may be lost.
  bool write(std::string_view text, std::size_t tail_bytes);

 private:
  enum class Claim { taken, busy, failed };
  Claim try_claim(const std::string &path, const std::string &tree, std::string &problem);
  enum class Moved { not_apt, failed, done };
  bool is_open_still();
  ssize_t put_some(std::string_view text, std::uint64_t at);
  bool put(std::string_view text, std::uint64_t at);  // replaces what is there, or adds it
  void cut(std::uint64_t end);
  bool fill_page();
  void keep_in_one_page(std::size_t bytes);
  Moved move_tail(std::string_view text, std::size_t tail_bytes);

  int file_ = -1;
  bool seekable_ = true;
  std::uint64_t offset_ = 0;  // start of the tail
  std::uint64_t end_ = 0;     // end of the tail
  std::string path_;          // absolute
  dev_t device_ = 0;          // identifies the file, whichever descriptor refers to it
  ino_t inode_ = 0;
};

// Call once in a forked child: closes the parent's log, which would otherwise stay claimed as long as the child lives.
// Only system calls.
void close_inherited_log();

}  // namespace ration::events
