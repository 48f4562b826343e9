// Calls that move no memory but decide when a freed block is clean: captures, destroyed streams, synchronises.
// Layer: policy/calls. Threads: any; no lock is held across a driver call.
#pragma once

#include "policy/block_pool/block_pools.h"
#include "policy/devices/request.h"
#include "policy/driver_pools/async_pools.h"
#include "policy/driver_pools/stream_pools.h"
#include "policy/imports/ipc_importer.h"

namespace ration::policy {

class SyncAndCapture {
 public:
  // `defers`: mode pool or async; else nothing waits for a synchronise.
  SyncAndCapture(Contexts &contexts, Captures &captures, BlockPools &pools, AsyncPools &async,
                 StreamPools &stream_pools, IpcImporter &imports, bool defers)
      : contexts_(contexts),
        captures_(captures),
        pools_(pools),
        async_(async),
        stream_pools_(stream_pools),
        imports_(imports),
        defers_(defers) {}

  CUresult begin_capture(CUstream stream, DriverCall call);
  CUresult end_capture(CUstream stream, DriverCall call);
  // Before a call of a function that no hook knows, by its name a way into capture.
  void begin_unknown_capture(const char *function) noexcept;
  CUresult destroy_stream(CUstream stream, DriverCall call);
  // nullptr: the current context.
  CUresult synchronise(CUcontext context, DriverCall call);

 private:
  Contexts &contexts_;
  Captures &captures_;
  BlockPools &pools_;
  AsyncPools &async_;
  StreamPools &stream_pools_;
  IpcImporter &imports_;
  const bool defers_;
};

}  // namespace ration::policy
