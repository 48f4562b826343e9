// Queries of NVML that have no simulated answer: monitors look them up, and show that there is none.
// Layer: nvml_library.h. Threads: any.
#include "tests/simcuda/nvml_library.h"

namespace {

nvmlReturn_t not_supported() {
  return simcuda::machine() == nullptr ? NVML_ERROR_UNINITIALIZED : NVML_ERROR_NOT_SUPPORTED;
}

}  // namespace

// Arguments are not read, so none is declared.
#define SIMCUDA_NVML(name)                                                \
  extern "C" __attribute__((visibility("default"))) nvmlReturn_t name() { \
    return not_supported();                                               \
  }
#include "tests/simcuda/nvml_not_supported.inc"
#undef SIMCUDA_NVML
