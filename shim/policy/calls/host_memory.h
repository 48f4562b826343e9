// Pinned host memory, allocated or registered: recorded and counted, never limited.
// Layer: policy/calls. Threads: any.
#pragma once

#include "policy/calls/admission.h"

namespace ration::policy {

class HostMemory {
 public:
  HostMemory(Books &books, Admission &admission) : books_(books), admission_(admission) {}

  CUresult allocate(Request request, Act act, Undo undo, CUdeviceptr *address) {
    request.kind = events::Kind::host;
    request.charged = false;
    return admission_.obtain_here(books_.blocks, request, act, undo, address);
  }
  CUresult free(const char *api, const void *address, DriverCall call) {
    return books_.end(books_.blocks, api, reinterpret_cast<std::uintptr_t>(address),
                      [&](const Block *) { return call(); });
  }

 private:
  Books &books_;
  Admission &admission_;
};

}  // namespace ration::policy
