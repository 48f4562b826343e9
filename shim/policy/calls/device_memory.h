// cuMemAlloc and its synchronous kin: from a pool of ours, from the driver's pools (mode async), or from the driver.
// Layer: policy/calls. Threads: any; no lock is held across a driver call.
#pragma once

#include "policy/calls/async_memory.h"
#include "policy/imports/ipc_importer.h"

namespace ration::policy {

class DeviceMemory {
 public:
  // With ipc=direct, blocks of this size and more are the driver's own, so that any process can open them.
  static constexpr std::uint64_t kLargeBytes = 2U << 20U;

  struct Options {
    bool pool = false;          // blocks come from our pools (mode pool), where the driver allows it
    bool large_direct = false;  // ipc=direct
    bool limit_managed = true;  // managed memory counts against the limit, in its full size
  };

  DeviceMemory(const Options &options, ledger::Ledger &ledger, events::Journal &journal, Books &books,
               BlockPools &pools, Admission &admission, RoomMaker &room, AsyncMemory &async, IpcImporter &imports)
      : options_(options),
        ledger_(ledger),
        journal_(journal),
        books_(books),
        pools_(pools),
        admission_(admission),
        room_(room),
        async_(async),
        imports_(imports) {}

  // Runs `act` only where no pool serves the request. Denied: OUT_OF_MEMORY. Only success writes `*address`.
  CUresult allocate(const Request &request, Act act, CUdeviceptr *address) {
    return request.pooled && allocate_hit(request.upper_bound, address) ? CUDA_SUCCESS
                                                                        : allocate_slow(request, act, address);
  }
  // Its two parts: the second is for a request that the first did not serve, and for every one with a log.
  bool allocate_hit(std::uint64_t bytes, CUdeviceptr *address) noexcept {
    return is_for_pools(bytes) && pools_.fast_path.allocate_hit(bytes, address);
  }
  CUresult allocate_slow(const Request &request, Act act, CUdeviceptr *address);
  CUresult allocate_managed(Request request, Act act, CUdeviceptr *address);
  // A block that is none of ours is the driver's to answer.
  CUresult free(const char *api, CUdeviceptr address, DriverCall call) {
    return pools_.fast_path.free_hit(address) ? CUDA_SUCCESS : free_missed(api, address, call);
  }

 private:
  bool is_for_pools(std::uint64_t bytes) const { return !options_.large_direct || bytes < kLargeBytes; }
  CUresult allocate_direct(Request request, const Contexts::Current &where, Act act, CUdeviceptr *address);
  CUresult allocate_slow(const Request &given, bool pooled, Act act, CUdeviceptr *address);
  CUresult free_missed(const char *api, CUdeviceptr address, DriverCall call);
  CUresult free_slow(const char *api, CUdeviceptr address, DriverCall call);

  const Options options_;
  ledger::Ledger &ledger_;
  events::Journal &journal_;
  Books &books_;
  BlockPools &pools_;
  Admission &admission_;
  RoomMaker &room_;
  AsyncMemory &async_;
  IpcImporter &imports_;
};

}  // namespace ration::policy
