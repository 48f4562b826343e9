// Legacy IPC: a pool's block gets a handle of ours, because the driver's would open the whole slab.
// Layer: policy/calls. Threads: any; no lock is held across a driver call.
#pragma once

#include <atomic>
#include <string>

#include "events/diagnostics.h"
#include "policy/calls/async_memory.h"
#include "policy/imports/ipc_importer.h"

namespace ration::policy {

class SharedBlocks {
 public:
  SharedBlocks(Contexts &contexts, BlockPools &pools, IpcExporter &exports, IpcImporter &imports, Admission &admission,
               AsyncMemory &async)
      : contexts_(contexts),
        pools_(pools),
        exports_(exports),
        imports_(imports),
        admission_(admission),
        async_(async) {}

  CUresult share(const char *api, CUipcMemHandle *handle, CUdeviceptr address, DriverCall call);
  // Runs `open`, the driver's call, with the handle that ours stands for, or with one that is none of ours.
  CUresult open(const CUipcMemHandle &handle, IpcImporter::Open open, CUdeviceptr *address);
  CUresult close(CUdeviceptr address, DriverCall call);
  // When the main thread ends: what was shared before can be opened no more, until something is shared again.
  void end_thread() noexcept { exports_.end_thread(); }
  // At the end of the process: nothing that it shared can be opened any more.
  void stop() noexcept { exports_.leave(); }

 private:
  void say_once(const std::string &line);

  Contexts &contexts_;
  BlockPools &pools_;
  IpcExporter &exports_;
  IpcImporter &imports_;
  Admission &admission_;
  AsyncMemory &async_;
  std::atomic<bool> said_{false};
};

}  // namespace ration::policy
