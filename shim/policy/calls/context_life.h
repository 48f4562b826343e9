// Handles the creation and the end of contexts, by every version of the driver's calls. A context's blocks end with it.
// Layer: policy/calls. Threads: any; no lock is held across a driver call.
// Design: design/quarantine.md#ends-of-contexts
#pragma once

#include <unordered_map>

#include "base/lock.h"
#include "policy/calls/address_book.h"
#include "policy/devices/request.h"

namespace ration::policy {

struct CallParts;

class ContextLife {
 public:
  explicit ContextLife(const CallParts &parts) : parts_(parts) {}

  // Runs `call`, which creates a context of `device` and writes its handle.
  CUresult create(const char *api, CUcontext *handle, CUdevice device, DriverCall call);
  void attached(CUcontext handle);
  // Runs `call`, which retains `device`'s primary context and writes its handle.
  CUresult retain_primary(CUcontext *handle, CUdevice device, DriverCall call);
  // Runs `call`, which destroys `handle`; on success, the context's blocks have ended with it.
  CUresult destroy(const char *api, CUcontext handle, DriverCall call);
  // Runs `call`, which drops one reference; the last one destroys the context.
  CUresult detach(const char *api, CUcontext handle, DriverCall call);
  CUresult reset_primary(const char *api, CUdevice device, DriverCall call);
  CUresult release_primary(const char *api, CUdevice device, DriverCall call);
  CUresult create_green(CUgreenCtx *green, CUdevice device, DriverCall call);
  void green_converted(CUcontext context, CUgreenCtx green) noexcept;
  CUresult destroy_green(const char *api, CUgreenCtx green, DriverCall call);
  // Runs `call`, which gives the current context access to `peer`'s memory or takes this access away.
  CUresult change_peer(CUcontext peer, bool enabled, DriverCall call);

 private:
  ContextRef green_created(CUgreenCtx green, CUdevice device) noexcept;  // returns the primary context
  bool device_of(CUgreenCtx green, CUdevice &device);  // false: we did not see its creation; `device` is unchanged

  const CallParts &parts_;
  RankedMutex greens_mutex_{Rank::kGreens};
  std::unordered_map<CUgreenCtx, CUdevice> greens_ GUARDED_BY(greens_mutex_);
};

}  // namespace ration::policy
