// The driver's reports about memory, corrected to what this process can really have.
// Layer: hooks. Threads: any.
#include "hooks/boundary.h"
#include "hooks/hooks.h"
#include "policy/calls/queries.h"

using ration::driver::real;
using ration::hooks::forwarding;
using ration::policy::Queries;

extern "C" {

// Either pointer may be null. If the call fails, both variables keep what the driver left in them.
CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
  return forwarding<Queries>(
      real.cuMemGetInfo_v2,
      [=](Queries &queries, const auto &call) {
        const CUresult result = call();
        if (result == CUDA_SUCCESS) {
          queries.present_memory(free, total);
        }
        return result;
      },
      free, total);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev) {
  return forwarding<Queries>(
      real.cuDeviceTotalMem_v2,
      [=](Queries &queries, const auto &call) {
        const CUresult result = call();
        if (result == CUDA_SUCCESS) {
          queries.present_total(bytes, dev);
        }
        return result;
      },
      bytes, dev);
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr) {
  return forwarding<Queries>(
      real.cuMemGetAddressRange_v2,
      [=](Queries &queries, const auto &call) {
        bool handled = false;
        const CUresult result = queries.address_range(dptr, pbase, psize, handled);
        return handled ? result : call();
      },
      pbase, psize, dptr);
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  return forwarding<Queries>(
      real.cuPointerGetAttribute,
      [=](Queries &queries, const auto &call) {
        if (queries.is_dead(ptr)) {
          return Queries::in_context(CUDA_ERROR_INVALID_VALUE);
        }
        const CUresult result = call();
        if (result == CUDA_SUCCESS) {
          queries.correct_attribute(attribute, ptr, data);
        } else if (attribute == CU_POINTER_ATTRIBUTE_CONTEXT && queries.write_context(ptr, data)) {
          return CUDA_SUCCESS;
        }
        return result;
      },
      data, attribute, ptr);
}

CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes, void **data,
                                CUdeviceptr ptr) {
  return forwarding<Queries>(
      real.cuPointerGetAttributes,
      [=](Queries &queries, const auto &) {
        // For an address outside any memory, as for a null one, this call returns nulls and success (cuda.h).
        const CUdeviceptr asked = queries.is_dead(ptr) ? 0 : ptr;
        const CUresult result = real.cuPointerGetAttributes(numAttributes, attributes, data, asked);
        for (unsigned i = 0; result == CUDA_SUCCESS && i < numAttributes; ++i) {
          queries.correct_attribute(attributes[i], ptr, data[i]);
        }
        return result;
      },
      numAttributes, attributes, data, ptr);
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr) {
  return forwarding<Queries>(
      real.cuPointerSetAttribute,
      [=](Queries &queries, const auto &call) { return queries.set_attribute(attribute, ptr, value, call); }, value,
      attribute, ptr);
}

}  // extern "C"
