// Stream-ordered memory (cuMemAllocAsync and its kin) from the driver's own pools, the default ones or the program's.
// Layer: policy/calls. Threads: any; no lock is held across a driver call.
#pragma once

#include <optional>

#include "policy/calls/async_memory.h"
#include "policy/calls/room_maker.h"
#include "policy/driver_pools/default_pools.h"
#include "policy/physical/pending_frees.h"

namespace ration::policy {

class StreamMemory {
 public:
  StreamMemory(Devices &devices, ledger::Ledger &ledger, Contexts &contexts, Captures &captures,
               events::Journal &journal, Books &books, BlockPools &pools, StreamPools &stream_pools,
               DefaultPools &default_pools, PendingFrees &pending, Admission &admission, AsyncMemory &async,
               RoomMaker &room)
      : devices_(devices),
        ledger_(ledger),
        contexts_(contexts),
        captures_(captures),
        journal_(journal),
        books_(books),
        pools_(pools),
        stream_pools_(stream_pools),
        default_pools_(default_pools),
        pending_(pending),
        admission_(admission),
        async_(async),
        room_(room) {}

  // From `pool`, as the program names it; nullptr: the one that is current on the stream's device.
  CUresult allocate(Request request, CUmemoryPool pool, CUstream stream, Act act, CUdeviceptr *address);
  // The block ends now; its bytes stay charged until `stream` reaches this point.
  CUresult free(const char *api, CUdeviceptr address, CUstream stream, DriverCall call);
  CUresult create_pool(CUmemoryPool *pool, const CUmemPoolProps *properties, DriverCall call);
  CUresult destroy_pool(CUmemoryPool pool, DriverCall call);
  CUresult trim_pool(const char *api, CUmemoryPool pool, std::size_t kept);
  // The pool that the driver is asked about in the place of one that the program names.
  CUmemoryPool behind(CUmemoryPool pool) noexcept { return default_pools_.behind(pool); }

 private:
  // `handle` gets the pool to allocate from, where that is not the program's.
  StreamPools::PoolRef find_pool(CUmemoryPool &handle, int device);
  std::optional<CUresult> allocate_to_cap(StreamPools::Pool &pool, const Request &request, Act act, Obtained &obtained);
  CUresult allocate_from(const StreamPools::PoolRef &pool, Request request, const Contexts::Current &where, Act act,
                         Undo undo, CUdeviceptr *address);

  Devices &devices_;
  ledger::Ledger &ledger_;
  Contexts &contexts_;
  Captures &captures_;
  events::Journal &journal_;
  Books &books_;
  BlockPools &pools_;
  StreamPools &stream_pools_;
  DefaultPools &default_pools_;
  PendingFrees &pending_;
  Admission &admission_;
  AsyncMemory &async_;
  RoomMaker &room_;
};

}  // namespace ration::policy
