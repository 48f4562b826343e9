// The device operations that stitching needs: creating handles of physical memory, and mapping them at addresses.
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

  // Creates a handle of `bytes`, a multiple of the page size; nullopt if that fails.
  virtual std::optional<std::uint64_t> create(std::uint64_t bytes) noexcept = 0;
  // REQUIRES: the handle is not mapped anywhere.
  virtual void release(std::uint64_t handle, std::uint64_t bytes) noexcept = 0;
  // Maps the whole handle, without access. Returns false if the driver refused; then nothing has changed.
  virtual bool map(Address address, std::uint64_t handle, std::uint64_t bytes) noexcept = 0;
  // Gives every device that may use a range access to it. The range may span several adjacent mappings.
  virtual bool allow(Address address, std::uint64_t bytes) noexcept = 0;
  // Called after the last call of a plan.
  virtual void release_rest() noexcept {}
  // Unmaps a range, which may span several adjacent mappings.
  virtual bool unmap(Address address, std::uint64_t bytes) noexcept = 0;
};

}  // namespace ration::pool::stitch
