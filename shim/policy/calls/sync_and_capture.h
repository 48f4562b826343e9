// Calls that move no memory but decide when a freed block is clean: captures, destroyed streams, synchronisation.
// Layer: policy/calls. Threads: any; no lock is held across a driver call.
#pragma once

#include "policy/devices/request.h"

namespace ration::policy {

struct CallParts;

class SyncAndCapture {
 public:
  explicit SyncAndCapture(const CallParts &parts) : parts_(parts) {}

  CUresult begin_capture(CUstream stream, DriverCall call);
  CUresult end_capture(CUstream stream, DriverCall call);
  // Called before a function that no hook knows and that, by its name, may begin a capture.
  void begin_unknown_capture(const char *function) noexcept;
  CUresult destroy_stream(CUstream stream, DriverCall call);
  // nullptr: the current context.
  CUresult synchronise(CUcontext context, DriverCall call);

 private:
  const CallParts &parts_;
};

}  // namespace ration::policy
