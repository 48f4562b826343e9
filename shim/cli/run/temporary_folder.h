// A private folder, removed by the destructor. If this process is killed, the next process that creates such a folder
// in the same place removes this one. Layer: cli. Owns: the folder and everything in it.
#pragma once

#include <string>

namespace ration::cli {

class TemporaryFolder {
 public:
  // Creates the folder in `parent`; if that is empty or not writable, in the first writable of $TMPDIR, /tmp, /dev/shm.
  explicit TemporaryFolder(const std::string &parent = {});
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  // Empty if no folder could be created.
  [[nodiscard]] const std::string &path() const { return path_; }
  // Leaves the removal of the folder to the owner of `parent`.
  void keep() { kept_ = true; }

 private:
  std::string path_;
  bool kept_ = false;
  int lock_ = -1;
};

}  // namespace ration::cli
