// CUDA arrays and mipmapped arrays, which have a handle and no address, and cost what their shape does.
// Layer: policy/calls. Threads: any; no lock is held across a driver call.
#pragma once

#include "policy/calls/admission.h"
#include "policy/calls/mapped_memory.h"
#include "policy/physical/array_costs.h"

namespace ration::policy {

class ArrayMemory {
 public:
  ArrayMemory(ledger::Ledger &ledger, Books &books, Admission &admission, MappedMemory &mapped)
      : ledger_(ledger), books_(books), admission_(admission), mapped_(mapped) {}

  CUresult create(Request request, const ArrayShape &shape, Act act, Undo undo, CUdeviceptr *handle);
  CUresult destroy(const char *api, std::uint64_t handle, DriverCall call);

 private:
  ledger::Ledger &ledger_;
  Books &books_;
  Admission &admission_;
  MappedMemory &mapped_;
  ArrayCosts costs_;
};

}  // namespace ration::policy
