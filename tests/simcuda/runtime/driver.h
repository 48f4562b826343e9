// The driver as this runtime uses it: typed slots that the start-up look-ups fill. A missing function's slot is null.
// Layer: cuda.h, nothing of the runtime.
// Threads: written once, by startup; constant afterwards. Owns: the library handle, for ever.
#pragma once

// With this macro cuda.h declares every export under its own name, including the plain ones.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

// Optional: the simulated driver does not declare it.
extern "C" CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream);

namespace simcudart {

struct Driver {
#define SIMCUDART_USE(symbol) decltype(&::symbol) symbol = nullptr;
#include "driver_uses.inc"
#undef SIMCUDART_USE
};

// REQUIRES: load_driver() has returned true.
extern Driver driver;

// Opens libcuda.so.1 and performs the look-ups of driver_lookups.inc in order. Returns false without a driver library.
// A name that the driver lacks leaves its slot null: no failure.
bool load_driver();

// Calls a slot that may be null; for a null slot returns code 36 ("requires a newer driver").
template <typename Slot, typename... Arguments>
CUresult call(Slot slot, Arguments... arguments) {
  return slot != nullptr ? slot(arguments...) : static_cast<CUresult>(36);
}

}  // namespace simcudart
