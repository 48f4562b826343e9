// The file with a device's memory in another process. Only its living owner keeps the file open.
// Layer: driver.h. Threads: any. Owns: its descriptor.
#pragma once
#include <sys/types.h>

#include <cstdint>

#include "tests/simcuda/driver.h"

namespace simcuda {

class ExporterFile {
 public:
  // Empty if the file does not exist or is a different file.
  ExporterFile(pid_t process, int descriptor, std::uint64_t inode);
  ~ExporterFile();
  ExporterFile(const ExporterFile &) = delete;
  ExporterFile &operator=(const ExporterFile &) = delete;
  // True if the memory `id` still exists.
  bool holds(std::uint64_t id, std::uint64_t offset, std::uint64_t bytes) const;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
  std::uint64_t bytes_ = 0;
};

// Returns null if the device is not visible here.
Device *device_with(const CUuuid &uuid);

}  // namespace simcuda
