// Stream-ordered memory (cuMemAllocAsync and its kin) from the driver's own pools, the default ones or the program's.
// Layer: policy/calls. Threads: any; no lock is held across a driver call.
#pragma once

#include "policy/calls/async_memory.h"
#include "policy/calls/room_maker.h"
#include "policy/physical/pending_frees.h"

namespace ration::policy {

class StreamMemory {
 public:
  StreamMemory(Devices &devices, Contexts &contexts, Captures &captures, events::Journal &journal, Books &books,
               BlockPools &pools, StreamPools &stream_pools, PendingFrees &pending, Admission &admission,
               AsyncMemory &async, RoomMaker &room)
      : devices_(devices),
        contexts_(contexts),
        captures_(captures),
        journal_(journal),
        books_(books),
        pools_(pools),
        stream_pools_(stream_pools),
        pending_(pending),
        admission_(admission),
        async_(async),
        room_(room) {}

  // From `pool`; nullptr: the one that is current on the stream's device.
  CUresult allocate(Request request, CUmemoryPool pool, CUstream stream, Act act, CUdeviceptr *address);
  // The block ends now; its bytes stay charged until `stream` reaches this point.
  CUresult free(const char *api, CUdeviceptr address, CUstream stream, DriverCall call);
  void pool_created(CUmemoryPool pool, const CUmemPoolProps &properties) noexcept {
    stream_pools_.created(pool, properties);
  }
  CUresult destroy_pool(CUmemoryPool pool, DriverCall call);
  CUresult trim_pool(const char *api, CUmemoryPool pool, DriverCall call);

 private:
  StreamPools::PoolRef find_pool(CUmemoryPool handle, int device);
  CUresult allocate_from(const StreamPools::PoolRef &pool, Request request, const Contexts::Current &where, Act act,
                         Undo undo, CUdeviceptr *address);

  Devices &devices_;
  Contexts &contexts_;
  Captures &captures_;
  events::Journal &journal_;
  Books &books_;
  BlockPools &pools_;
  StreamPools &stream_pools_;
  PendingFrees &pending_;
  Admission &admission_;
  AsyncMemory &async_;
  RoomMaker &room_;
};

}  // namespace ration::policy
