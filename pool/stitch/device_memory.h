// The device operations that stitching needs: physical memory in handles, and mapping it into reserved address ranges.
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
  // Maps the whole handle, without access. False: the driver refused and nothing changed.
  virtual bool map(Address address, std::uint64_t handle, std::uint64_t bytes) noexcept = 0;
  // Gives access to a range, which may span several adjacent mappings, to every device that may use it.
  virtual bool allow(Address address, std::uint64_t bytes) noexcept = 0;
  // Called after the last call of a plan.
  virtual void release_rest() noexcept {}
  // Unmaps a range, which may span several adjacent mappings.
  virtual bool unmap(Address address, std::uint64_t bytes) noexcept = 0;
};

}  // namespace ration::pool::stitch
