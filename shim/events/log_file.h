// One log file: claimed by one process of a run, written line by line, valid to its last line whatever ends the
// process. Layer: events (a leaf). Threads: none of its own; the journal's lock orders the calls.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace ration::events {

class LogFile {
 public:
  // Claims `path`, truncating what an earlier run left; where another process of the same run (`tree`) has it, or a
  // living process of any run, `path`.PID, then `path`.PID.2 and so on. `tree` is looked for as "tree":"…" in the first
  // line. False: cannot be written, `problem` says why. FIFOs are refused: a reader that goes away would send SIGPIPE.
  bool claim(const std::string &path, const std::string &tree, std::int64_t pid, std::string &problem);
  bool is_open() const { return file_ >= 0; }
  const std::string &path() const { return path_; }

  // Adds whole lines, of which the last `tail_bytes` are replaced by the next write. One write(2), so a reader never
  // sees half a line. False: nothing was added (full disk, file size limit, the program closed the descriptor and the
  // path leads elsewhere); the tail that stood there may be gone.
  bool write(std::string_view text, std::size_t tail_bytes);

 private:
  enum class Claim { taken, busy, failed };
  Claim try_claim(const std::string &path, const std::string &tree, std::string &problem);
  bool is_open_still();
  void keep_in_one_page(std::size_t bytes);

  int file_ = -1;
  bool seekable_ = true;
  std::uint64_t offset_ = 0;  // where the tail starts
  std::uint64_t end_ = 0;     // where it ends
  std::string path_;          // absolute
  dev_t device_ = 0;          // what file it is, whatever descriptor leads there
  ino_t inode_ = 0;
};

// In a forked child, once: lets go of its parent's log, which a child that lives on would keep claimed. Only system
// calls.
void close_inherited_log();

}  // namespace ration::events
