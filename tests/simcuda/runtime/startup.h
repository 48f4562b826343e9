// The driver properties that the runtime reads once per process, at its start. Layer: driver.h.
// Threads: start() from any; the devices are constant once it has returned. Owns: the device table, for ever.
#pragma once

#include "cuda_runtime_api.h"
#include "driver.h"

namespace simcudart {

// The real runtime queries this many attributes of every device once, and later answers from these values.
constexpr int kAttributes = 111;

struct Device {
  CUdevice handle;
  char name[256];
  CUuuid uuid;
  size_t total_bytes;
  int attributes[kAttributes + 1];  // indexed by CUdevice_attribute; index 0 is unused
};

struct Devices {
  const Device *first = nullptr;
  int count = 0;
};

// Loads and initialises the driver at the first call. Later calls return the same result, also in a forked child.
cudaError_t start();

// REQUIRES: start() has succeeded.
const Devices &devices();

}  // namespace simcudart
