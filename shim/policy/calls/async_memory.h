// Mode async: serves synchronous allocations from the driver's memory pools, and makes their frees wait for the device.
// Layer: policy/calls. Threads: any; no lock is held across a driver call.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "ledger/ledger.h"
#include "policy/calls/address_book.h"
#include "policy/devices/request.h"

namespace ration::policy {

struct CallParts;

// Facts about a device. These are only hints, because figures from two requests may be mixed up.
struct AsyncHints {
  std::atomic<std::uint64_t> splinters{0};       // idle bytes in pieces too small for a request
  std::atomic<std::uint64_t> splintered_for{0};  // the size of that request, in bytes
  std::atomic<std::uint64_t> latest{0};          // bytes of the latest request that was not small
  std::atomic<std::uint64_t> merge_waited_ns{0};
  std::atomic<std::uint64_t> single_chunk{0};  // the bytes that a pool reserved when it was a single chunk
};

class AsyncMemory {
 public:
  explicit AsyncMemory(const CallParts &parts) : parts_(parts) {}

  // Allocates from the pool, or through `act` if the pool would take more than is left of the limit.
  CUresult allocate(Request request, const Contexts::Current &where, const StreamPools::PoolRef &pool, Act act,
                    CUdeviceptr *address);

  // Ends one of Ration's blocks. The driver gets the block back once the device has finished the work before this free.
  CUresult defer(CUdeviceptr address, const Block &block);
  CUresult finish_free(const char *api, const Block &block);
  // The answer if the program frees a block a second time, while the first free has not reached the driver yet.
  CUresult refuse_deferred();
  // Ration's live block around an address. `*base` gets the address at which the block begins.
  std::optional<Block> block_at(CUdeviceptr address, CUdeviceptr *base = nullptr);

 private:
  // Design: design/modes.md#preallocation
  void preallocate(const Request &request, const Contexts::Current &where, const StreamPools::PoolRef &pool);
  // Called before allocating a block so large that few fit. If no block is in the pool and a single chunk would hold
  // more such blocks, merges the pool's chunks into one.
  void merge_chunks(const Request &request, const Contexts::Current &where, const StreamPools::PoolRef &pool);
  bool has_no_block(const StreamPools::Pool &pool, const ContextRef &context);

  const CallParts &parts_;
  AsyncHints hints_[ledger::kMaxDevices];
};

}  // namespace ration::policy
