// The file with a device's memory in another process; only its living owner keeps it open.
// Layer: driver.h. Threads: any. Owns: its descriptor.
#pragma once
#include <sys/types.h>

#include <cstdint>

#include "tests/simcuda/driver.h"

namespace simcuda {

class TheirFile {
 public:
  // Empty if the file does not exist or is another one.
  TheirFile(pid_t process, int descriptor, std::uint64_t inode);
  ~TheirFile();
  TheirFile(const TheirFile &) = delete;
  TheirFile &operator=(const TheirFile &) = delete;
  // Whether the memory `id` still exists.
  bool holds(std::uint64_t id, std::uint64_t offset, std::uint64_t bytes) const;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
  std::uint64_t bytes_ = 0;
};

// Null: the device is not visible here.
Device *device_with(const CUuuid &uuid);

}  // namespace simcuda
