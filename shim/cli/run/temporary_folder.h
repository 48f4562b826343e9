// A private folder that its destructor removes, or the next process that makes one there if this one is killed.
// Layer: cli. Owns: the folder and everything in it.
#pragma once

#include <string>

namespace ration::cli {

class TemporaryFolder {
 public:
  // Below `parent`; where that is empty or not writable, below the first of $TMPDIR, /tmp and /dev/shm that is.
  explicit TemporaryFolder(const std::string &parent = {});
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  // Empty where none could be created.
  [[nodiscard]] const std::string &path() const { return path_; }
  // The owner of `parent` removes the folder instead.
  void keep() { kept_ = true; }

 private:
  std::string path_;
  bool kept_ = false;
  int lock_ = -1;
};

}  // namespace ration::cli
