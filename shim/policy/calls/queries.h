// Corrects what the driver and NVML report about memory, so that it is what this process can really have. Answers
// questions about an address for the block around it, not for the slab that the driver knows.
// Layer: policy/calls. Threads: any; no lock is held across a driver call.
// Design: design/granules.md#pointer-queries
#pragma once

#include <atomic>
#include <optional>
#include <string_view>

#include "policy/contexts/contexts.h"
#include "policy/devices/memory_figures.h"
#include "policy/devices/request.h"

namespace ration::policy {

struct CallParts;

class Queries {
 public:
  explicit Queries(const CallParts &parts) : parts_(parts) {}

  // Corrects the driver's total and free bytes of the current device. NULL-safe.
  void present_memory(std::size_t *free_bytes, std::size_t *total_bytes);
  void present_total(std::size_t *total_bytes, CUdevice device);
  // Does the same for the device that NVML calls `uuid`, which is empty if the device has no such name. `alone`: the
  // machine has no other device. Needs no context and creates none.
  Presented present_device(std::string_view uuid, bool alone, MemoryFigures &memory);

  // Returns `code`, or the error of a thread whose current context is missing or destroyed, because the driver checks
  // that first.
  static CUresult in_context(CUresult code);
  // `handled`: whether Ration answers for the address; if not, ask the driver.
  CUresult address_range(CUdeviceptr address, CUdeviceptr *base, std::size_t *bytes, bool &handled);
  // Whether the address is inside a slab but in no live block, which to the program is no memory at all.
  bool is_dead(CUdeviceptr address);
  // Turns the driver's answer about a slab into an answer about the block around `address`.
  void correct_attribute(CUpointer_attribute attribute, CUdeviceptr address, void *data);
  // Writes the context in which a block of mode async, or in granules, was obtained, because the driver knows none.
  // Returns false if nothing was written.
  bool write_context(CUdeviceptr address, void *data);
  // The owner of the block in granules around the address; nullptr if there is none.
  ContextRef owner_in_granules(CUdeviceptr address);
  // Runs `call`, which sets an attribute, or stores here what the driver cannot keep for one block.
  CUresult set_attribute(CUpointer_attribute attribute, CUdeviceptr address, const void *value, DriverCall call);

 private:
  std::uint64_t free_on(const char *api, const Device &device, std::uint64_t really_free,
                        const std::optional<std::uint64_t> &shown);
  // The size that the program sees: the smaller of the process's and its groups' limits. nullopt: the real size.
  std::optional<std::uint64_t> shown_limit(const Device &device) const;
  // The BUFFER_ID of a pool's block or of an imported one; 0 for any other.
  std::uint64_t buffer_id(CUdeviceptr address);

  const CallParts &parts_;
  std::atomic<std::uint64_t> ids_given_{1};
};

}  // namespace ration::policy
