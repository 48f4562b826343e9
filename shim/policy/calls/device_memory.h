// Serves cuMemAlloc and similar synchronous calls from one of Ration's pools, from the driver's pools (mode async), or
// from the driver directly.
// Layer: policy/calls. Threads: any; no lock is held across a driver call.
#pragma once

#include "policy/block_pool/block_pools.h"
#include "policy/devices/request.h"

namespace ration::policy {

struct CallParts;

class DeviceMemory {
 public:
  // With ipc=direct, blocks of this size and more come directly from the driver, so that any process can open them.
  // Design: design/ipc.md#direct-handles
  static constexpr std::uint64_t kLargeBytes = 2U << 20U;

  explicit DeviceMemory(const CallParts &parts);

  // Runs `act` only if no pool serves the request. Returns OUT_OF_MEMORY if denied. Writes `*address` only on success.
  CUresult allocate(const Request &request, Act act, CUdeviceptr *address) {
    return request.pooled && allocate_hit(request.upper_bound, address) ? CUDA_SUCCESS
                                                                        : allocate_slow(request, act, address);
  }
  // The two parts of allocate(). The second is for a request that the first did not serve, and for every request if
  // there is a log.
  bool allocate_hit(std::uint64_t bytes, CUdeviceptr *address) noexcept {
    return is_for_pools(bytes) && pools_.fast_path.allocate_hit(bytes, address);
  }
  CUresult allocate_slow(const Request &request, Act act, CUdeviceptr *address);
  // Design: design/charging.md#managed-memory
  CUresult allocate_managed(Request request, Act act, CUdeviceptr *address);
  // If the block is not ours, the driver answers.
  CUresult free(const char *api, CUdeviceptr address, DriverCall call) {
    return pools_.fast_path.free_hit(address) ? CUDA_SUCCESS : free_missed(api, address, call);
  }

 private:
  bool is_for_pools(std::uint64_t bytes) const { return !large_direct_ || bytes < kLargeBytes; }
  CUresult allocate_slow(const Request &given, bool pooled, Act act, CUdeviceptr *address);
  CUresult free_missed(const char *api, CUdeviceptr address, DriverCall call);
  CUresult free_slow(const char *api, CUdeviceptr address, DriverCall call);

  const CallParts &parts_;
  BlockPools &pools_;  // for hits, which use nothing else
  const bool large_direct_;
};

}  // namespace ration::policy
