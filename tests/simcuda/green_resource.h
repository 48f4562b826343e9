// The resources of green contexts: multiprocessors of a device, whole or split. Layer: driver.h.
// Threads: any; a descriptor is constant once published. Owns: descriptors, forever (CUDA cannot destroy them).
#pragma once
#include "tests/simcuda/driver.h"

namespace simcuda {

struct ResourceDescriptor {
  CUdevice device = 0;
  unsigned multiprocessors = 0;
};

// Returns null if the handle is not a descriptor.
const ResourceDescriptor *find_descriptor(CUdevResourceDesc handle);
CUresult tell_resource(CUdevice device, unsigned multiprocessors, CUdevResourceType type, CUdevResource *resource);

}  // namespace simcuda
