// Serves legacy IPC. A pool's block gets a handle from Ration, because the driver's handle would open the whole slab.
// Layer: policy/calls. Threads: any; no lock is held across a driver call.
#pragma once

#include <atomic>
#include <string>

#include "policy/devices/request.h"
#include "policy/imports/ipc_importer.h"

namespace ration::policy {

struct CallParts;

class SharedBlocks {
 public:
  explicit SharedBlocks(const CallParts &parts) : parts_(parts) {}

  CUresult share(const char *api, CUipcMemHandle *handle, CUdeviceptr address, DriverCall call);
  // Runs `open`, the driver's call. A handle from Ration is first replaced by the handle for which it stands.
  CUresult open(const CUipcMemHandle &handle, IpcImporter::Open open, CUdeviceptr *address);
  CUresult close(CUdeviceptr address, DriverCall call);

 private:
  void say_once(const std::string &line);

  const CallParts &parts_;
  std::atomic<bool> said_{false};
};

}  // namespace ration::policy
