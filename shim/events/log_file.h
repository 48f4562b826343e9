// One log file: claimed by one process of a run, written line by line, valid to its last line whatever ends the process.
// Layer: events (a leaf). Threads: none of its own; the journal's lock orders the calls.
#pragma once

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

  // Adds whole `lines`, then `tail`: text that stays last, the next write replaces it. One write(2), so a reader never
  // sees half a line. False: nothing was added (full disk, file size limit); the file ends where it did before.
  bool write(std::string_view lines, std::string_view tail);

 private:
  enum class Claim { taken, busy, failed };
  Claim try_claim(const std::string &path, const std::string &tree, std::string &problem);

  int file_ = -1;
  bool seekable_ = true;
  std::uint64_t offset_ = 0;
  std::uint64_t most_bytes_ = UINT64_MAX;  // RLIMIT_FSIZE: one byte beyond it would be a SIGXFSZ
  std::string path_;
};

}  // namespace ration::events
