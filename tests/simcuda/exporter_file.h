// The file with a device's memory in another process; only its living owner keeps it open.
// Layer: driver.h. Threads: any. Owns: its descriptor.
#pragma once
#include <sys/types.h>

#include <cstdint>

#include "tests/simcuda/driver.h"

namespace simcuda {

class ExporterFile {
 public:
  // Empty if the file does not exist or is another one.
  ExporterFile(pid_t process, int descriptor, std::uint64_t inode);
  ~ExporterFile();
  ExporterFile(const ExporterFile &) = delete;
  ExporterFile &operator=(const ExporterFile &) = delete;
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
