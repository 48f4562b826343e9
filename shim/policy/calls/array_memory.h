// Creates and destroys CUDA arrays, mipmapped ones too. They have no address, and their cost depends on their shape.
// Layer: policy/calls. Threads: any; no lock is held across a driver call.
#pragma once

#include "policy/calls/admission.h"
#include "policy/physical/array_costs.h"

namespace ration::policy {

class ArrayMemory {
 public:
  explicit ArrayMemory(const CallParts &parts) : parts_(parts) {}

  CUresult create(Request request, const ArrayShape &shape, Act act, Undo undo, CUdeviceptr *handle);
  CUresult destroy(const char *api, std::uint64_t handle, DriverCall call);

 private:
  const CallParts &parts_;
  ArrayCosts costs_;
};

}  // namespace ration::policy
