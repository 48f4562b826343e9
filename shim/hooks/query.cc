// What the driver reports about memory, as this process can really have it.
// Layer: hooks. Threads: any.
#include "hooks/boundary.h"
#include "hooks/hooks.h"
#include "policy/calls/queries.h"

using ration::driver::real;
using ration::policy::Queries;

// Programs pass NULL for what they do not want to know; a failed call leaves both untouched.
extern "C" CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
  if (!real.cuMemGetInfo_v2.present()) {
    return ration::hooks::kAbsent;
  }
  return ration::hooks::forwarding<Queries>([&] { return real.cuMemGetInfo_v2(free, total); },
                                            [&](Queries &queries) {
                                              size_t free_bytes = 0;
                                              size_t total_bytes = 0;
                                              const CUresult result =
                                                  real.cuMemGetInfo_v2(free != nullptr ? &free_bytes : nullptr,
                                                                       total != nullptr ? &total_bytes : nullptr);
                                              if (result != CUDA_SUCCESS) {
                                                return result;
                                              }
                                              queries.present_memory(&free_bytes, &total_bytes);
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
  const auto call = [&] { return real.cuDeviceTotalMem_v2(bytes, dev); };
  return ration::hooks::forwarding<Queries>(call, [&](Queries &queries) {
    const CUresult result = call();
    if (result == CUDA_SUCCESS) {
      queries.present_total(bytes, dev);
    }
    return result;
  });
}

extern "C" CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr) {
  if (!real.cuMemGetAddressRange_v2.present()) {
    return ration::hooks::kAbsent;
  }
  const auto call = [&] { return real.cuMemGetAddressRange_v2(pbase, psize, dptr); };
  return ration::hooks::forwarding<Queries>(call, [&](Queries &queries) {
    bool handled = false;
    const CUresult result = queries.address_range(dptr, pbase, psize, handled);
    return handled ? result : call();
  });
}

extern "C" CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  if (!real.cuPointerGetAttribute.present()) {
    return ration::hooks::kAbsent;
  }
  const auto call = [&] { return real.cuPointerGetAttribute(data, attribute, ptr); };
  return ration::hooks::forwarding<Queries>(call, [&](Queries &queries) {
    if (queries.is_dead(ptr)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const CUresult result = call();
    if (result == CUDA_SUCCESS) {
      queries.correct_attribute(attribute, ptr, data);
    } else if (attribute == CU_POINTER_ATTRIBUTE_CONTEXT && queries.write_context(ptr, data)) {
      return CUDA_SUCCESS;
    }
    return result;
  });
}

extern "C" CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes, void **data,
                                           CUdeviceptr ptr) {
  if (!real.cuPointerGetAttributes.present()) {
    return ration::hooks::kAbsent;
  }
  const auto call = [&](CUdeviceptr about) {
    return real.cuPointerGetAttributes(numAttributes, attributes, data, about);
  };
  return ration::hooks::forwarding<Queries>([&] { return call(ptr); },
                                            [&](Queries &queries) {
                                              // Of what is no memory this one answers nulls and success (cuda.h): let
                                              // it.
                                              const CUresult result = call(queries.is_dead(ptr) ? 0 : ptr);
                                              for (unsigned i = 0; result == CUDA_SUCCESS && i < numAttributes; ++i) {
                                                queries.correct_attribute(attributes[i], ptr, data[i]);
                                              }
                                              return result;
                                            });
}

extern "C" CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr) {
  if (!real.cuPointerSetAttribute.present()) {
    return ration::hooks::kAbsent;
  }
  const auto call = [&] { return real.cuPointerSetAttribute(value, attribute, ptr); };
  return ration::hooks::forwarding<Queries>(
      call, [&](Queries &queries) { return queries.set_attribute(attribute, ptr, value, call); });
}
