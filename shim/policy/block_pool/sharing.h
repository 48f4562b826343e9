// Shares blocks of the pools with other processes, which open them by a handle.
// Layer: policy/block_pool. Threads: any; no lock is held across a driver call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "policy/block_pool/device_pool.h"
#include "policy/block_pool/ipc_exporter.h"

namespace ration::policy {

class Sharing {
 public:
  Sharing(DevicePools &pools, IpcExporter &exports) : pools_(pools), exports_(exports) {}

  // Makes a handle by which other processes can open the live block around `address`, and nothing else
  // (ipc_exporter.h). If no handle is possible, `refused` says why. Throws bad_alloc.
  CUresult share(std::uint64_t address, const ContextRef &owner, CUipcMemHandle *handle, std::string &refused);
  // Puts freed blocks that no other process has open any more into quarantine; looks at no more than `most` of them.
  static constexpr std::size_t kFew = 8;
  void reclaim_unshared(std::size_t most = SIZE_MAX) noexcept;

 private:
  DevicePools &pools_;
  IpcExporter &exports_;
};

}  // namespace ration::policy
