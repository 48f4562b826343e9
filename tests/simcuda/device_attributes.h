// The values that cuDeviceGetAttribute returns. Layer: driver.h. Threads: any.
#pragma once
#include "tests/simcuda/driver.h"

namespace simcuda {
int attribute_of(const Device &device, CUdevice_attribute attribute);
}  // namespace simcuda
