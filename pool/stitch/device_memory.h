// What stitching asks of a device: physical memory in handles, and their places in reserved address ranges.
// Layer: pool, a leaf (standard library only: no CUDA). Threads: called without the pool's lock, by one thread at a
// time for one pool.
#pragma once

#include <cstdint>
#include <optional>

#include "pool/unit.h"

namespace ration::pool::stitch {

class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &operator=(const DeviceMemory &) = delete;
  virtual ~DeviceMemory() = default;

  // A handle of so many bytes, a multiple of the page, or nothing.
  virtual std::optional<std::uint64_t> create(std::uint64_t bytes) noexcept = 0;
  // REQUIRES: mapped nowhere.
  virtual void release(std::uint64_t handle, std::uint64_t bytes) noexcept = 0;
  // Maps the whole handle, without access; false: the driver refused, nothing changed.
  virtual bool map(Address address, std::uint64_t handle, std::uint64_t bytes) noexcept = 0;
  // Access for all that may have it, to several adjacent mappings at once.
  virtual bool allow(Address address, std::uint64_t bytes) noexcept = 0;
  // No more calls of this plan follow.
  virtual void release_rest() noexcept {}
  // Several adjacent mappings at once.
  virtual bool unmap(Address address, std::uint64_t bytes) noexcept = 0;
};

}  // namespace ration::pool::stitch
