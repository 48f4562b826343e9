// The file behind a device's memory in another process, which nobody but its living owner keeps open.
// Layer: driver.h. Threads: any. Owns: its descriptor.
#pragma once
#include <sys/types.h>

#include <cstdint>

#include "tests/simcuda/driver.h"

namespace simcuda {

class TheirFile {
 public:
  // Nothing is held in it when it is not there, or another one.
  TheirFile(pid_t process, int descriptor, std::uint64_t inode);
  ~TheirFile();
  TheirFile(const TheirFile &) = delete;
  TheirFile &operator=(const TheirFile &) = delete;
  // Whether the memory `id` is still there.
  bool holds(std::uint64_t id, std::uint64_t offset, std::uint64_t bytes) const;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
  std::uint64_t bytes_ = 0;
};

// Null: the device is not to be seen here.
Device *device_with(const CUuuid &uuid);

}  // namespace simcuda
