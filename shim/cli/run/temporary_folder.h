// A private folder that is gone when its owner is. Layer: cli. Owns: the folder and all that is in it.
#pragma once

#include <string>

namespace ration::cli {

class TemporaryFolder {
 public:
  // Below `parent`, or below the first of $TMPDIR, /tmp and /dev/shm that can be written where that is empty.
  explicit TemporaryFolder(const std::string &parent = {});
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  // Empty where none could be made.
  [[nodiscard]] const std::string &path() const { return path_; }
  // Leaves the folder to whoever owns its parent.
  void keep() { kept_ = true; }

 private:
  std::string path_;
  bool kept_ = false;
};

}  // namespace ration::cli
