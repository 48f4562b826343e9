// Which file a descriptor refers to, whatever its name is now. Layer: base. Threads: pure functions.
#pragma once

#include <sys/stat.h>

namespace ration {

struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileIdentity &) const = default;
};

inline FileIdentity identity_of(const struct stat &status) {
  return {status.st_dev, status.st_ino};
}

// Returns false on failure; errno says why.
inline bool identify(int descriptor, FileIdentity &identity) {
  struct stat found {};
  if (fstat(descriptor, &found) != 0) {
    return false;
  }
  identity = identity_of(found);
  return true;
}

}  // namespace ration
