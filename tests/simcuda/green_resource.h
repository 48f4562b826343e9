// The resources that green contexts are made of: multiprocessors of a device, whole or split. Layer: driver.h.
// Threads: any; a descriptor is constant once it is published. Owns: descriptors, for ever (CUDA cannot destroy one).
#pragma once
#include "tests/simcuda/driver.h"

namespace simcuda {

struct ResourceDescriptor {
  CUdevice device = 0;
  unsigned multiprocessors = 0;
};

// Null for a handle that is none.
const ResourceDescriptor *find_descriptor(CUdevResourceDesc handle);
CUresult tell_resource(CUdevice device, unsigned multiprocessors, CUdevResourceType type, CUdevResource *resource);

}  // namespace simcuda
