// The driver as this runtime uses it: typed slots that the start-up look-ups fill; a null slot is a function that the
// driver does not have. Layer: cuda.h, nothing of the runtime.
// Threads: written once, by startup; constant afterwards. Owns: the library handle, for ever.
#pragma once

// cuda.h then declares every export under its own name, the plain ones too.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

// A driver without it is no failure, and the simulated one does not declare it.
extern "C" CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream);

namespace simcudart {

struct Driver {
#define SIMCUDART_USE(symbol) decltype(&::symbol) symbol = nullptr;
#include "driver_uses.inc"
#undef SIMCUDART_USE
};

// REQUIRES: load_driver() has returned true.
extern Driver driver;

// Opens libcuda.so.1 and makes the look-ups of driver_lookups.inc in their order. False: no driver library.
// A name that the driver does not have leaves its slot null and is no failure.
bool load_driver();

// Calls a slot that may be null, with the code that says so (36, "requires a newer driver").
template <typename Slot, typename... Arguments>
CUresult call(Slot slot, Arguments... arguments) {
  return slot != nullptr ? slot(arguments...) : static_cast<CUresult>(36);
}

}  // namespace simcudart
