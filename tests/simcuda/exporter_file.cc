#include "tests/simcuda/exporter_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace simcuda {

ExporterFile::ExporterFile(pid_t process, int descriptor, std::uint64_t inode) {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", process, descriptor);
  descriptor_ = ::open(path, O_RDWR | O_CLOEXEC);
  struct stat status = {};
  const bool found =
      descriptor_ >= 0 && ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode) && status.st_ino == inode;
  if (found) bytes_ = static_cast<std::uint64_t>(status.st_size);
}

ExporterFile::~ExporterFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool ExporterFile::holds(std::uint64_t id, std::uint64_t offset, std::uint64_t bytes) const {
  return bytes <= bytes_ && bytes_ != 0 && id != 0 && AddressSpace::published(descriptor_, offset) == id;
}

Device *device_with(const CUuuid &uuid) {
  for (Device &device : driver().devices) {
    if (std::memcmp(&device.uuid, &uuid, sizeof uuid) == 0) return &device;
  }
  return nullptr;
}

}  // namespace simcuda
