// What the driver reports about memory, as this process can really have it.
// Layer: hooks. Threads: any.
#include "hooks/boundary.h"
#include "hooks/hooks.h"

using ration::driver::real;
using ration::policy::Policy;

// Programs pass NULL for what they do not want to know; a failed call leaves both untouched.
extern "C" CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
  if (!real.cuMemGetInfo_v2.present()) {
    return ration::hooks::kAbsent;
  }
  return ration::hooks::forwarding([&] { return real.cuMemGetInfo_v2(free, total); },
                                   [&](Policy &policy) {
                                     size_t free_bytes = 0;
                                     size_t total_bytes = 0;
                                     const CUresult result =
                                         real.cuMemGetInfo_v2(free != nullptr ? &free_bytes : nullptr,
                                                              total != nullptr ? &total_bytes : nullptr);
                                     if (result != CUDA_SUCCESS) {
                                       return result;
                                     }
                                     policy.present_memory(&free_bytes, &total_bytes);
                                     if (free != nullptr) {
                                       *free = free_bytes;
                                     }
                                     if (total != nullptr) {
                                       *total = total_bytes;
                                     }
                                     return result;
                                   });
}

extern "C" CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev) {
  if (!real.cuDeviceTotalMem_v2.present()) {
    return ration::hooks::kAbsent;
  }
  const auto act = [&] { return real.cuDeviceTotalMem_v2(bytes, dev); };
  return ration::hooks::forwarding(act, [&](Policy &policy) {
    const CUresult result = act();
    if (result == CUDA_SUCCESS) {
      policy.present_total(bytes, dev);
    }
    return result;
  });
}

// The driver's own answers are right for the driver's own allocations, which is what every block of mode direct is.
extern "C" CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr) {
  return real.cuMemGetAddressRange_v2.present() ? real.cuMemGetAddressRange_v2(pbase, psize, dptr)
                                                : ration::hooks::kAbsent;
}

extern "C" CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  return real.cuPointerGetAttribute.present() ? real.cuPointerGetAttribute(data, attribute, ptr)
                                              : ration::hooks::kAbsent;
}

extern "C" CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes, void **data,
                                           CUdeviceptr ptr) {
  return real.cuPointerGetAttributes.present() ? real.cuPointerGetAttributes(numAttributes, attributes, data, ptr)
                                               : ration::hooks::kAbsent;
}
