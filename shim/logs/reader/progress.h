// Shows on a terminal how much of a log has been read. Layer: logs. Threads: one.
#pragma once

#include <cstdint>
#include <string>

namespace ration::logs {

class Progress {
 public:
  // Shows nothing if stderr is not a terminal, or if the file is not large.
  explicit Progress(const std::string &path);
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  void read(std::uint64_t bytes) {
    if (size_ != 0 && bytes >= next_) {
      say(bytes);
    }
  }

 private:
  void say(std::uint64_t bytes);

  const std::string path_;
  std::uint64_t size_ = 0;  // 0: shows nothing
  std::uint64_t next_ = 0;
  bool said_ = false;
};

}  // namespace ration::logs
