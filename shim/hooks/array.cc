// CUDA arrays: memory that has a handle but no address.
// Layer: hooks. Threads: any.
#include <algorithm>
#include <cstdint>
#include <iterator>

#include "hooks/boundary.h"
#include "hooks/hooks.h"
#include "policy/calls/array_memory.h"

using ration::driver::real;
using ration::hooks::Crossing;
using ration::hooks::kAbsent;
using ration::hooks::number_of;
using ration::hooks::Refused;
using ration::policy::Act;
using ration::policy::ArrayMemory;
using ration::policy::ArrayShape;

namespace {

CUresult undo_array(CUdeviceptr handle) {
  return real.cuArrayDestroy.present() ? real.cuArrayDestroy(reinterpret_cast<CUarray>(handle)) : CUDA_ERROR_NOT_FOUND;
}

CUresult undo_mipmapped(CUdeviceptr handle) {
  return real.cuMipmappedArrayDestroy.present()
             ? real.cuMipmappedArrayDestroy(reinterpret_cast<CUmipmappedArray>(handle))
             : CUDA_ERROR_NOT_FOUND;
}

// False if no device can have an array of this size: every bound that a device states is an int
// (CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE…), and the width is never 0.
bool can_be(const CUDA_ARRAY3D_DESCRIPTOR &shape) {
  return shape.Width != 0 && shape.Width <= INT32_MAX && shape.Height <= INT32_MAX && shape.Depth <= INT32_MAX;
}

// Formats with planes have three channels; there are no formats between these and the basic ones.
bool is_element(const CUDA_ARRAY3D_DESCRIPTOR &shape) {
  const bool basic = shape.Format < CU_AD_FORMAT_NV12;
  constexpr CUarray_format kBasic[] = {
      CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_UNSIGNED_INT32, CU_AD_FORMAT_SIGNED_INT8,
      CU_AD_FORMAT_SIGNED_INT16,  CU_AD_FORMAT_SIGNED_INT32,   CU_AD_FORMAT_HALF,           CU_AD_FORMAT_FLOAT};
  if (basic && std::find(std::begin(kBasic), std::end(kBasic), shape.Format) == std::end(kBasic)) {
    return false;
  }
  return shape.NumChannels >= 1 && shape.NumChannels <= 4 && (!basic || shape.NumChannels != 3);
}

ArrayShape shape_of(const CUDA_ARRAY_DESCRIPTOR_v1 &flat) {
  return {{flat.Width, flat.Height, 0, flat.Format, flat.NumChannels, 0}};
}
ArrayShape shape_of(const CUDA_ARRAY_DESCRIPTOR &flat) {
  return {{flat.Width, flat.Height, 0, flat.Format, flat.NumChannels, 0}};
}
ArrayShape shape_of(const CUDA_ARRAY3D_DESCRIPTOR_v1 &deep) {
  return {{deep.Width, deep.Height, deep.Depth, deep.Format, deep.NumChannels, deep.Flags}};
}
ArrayShape shape_of(const CUDA_ARRAY3D_DESCRIPTOR &deep) {
  return {deep};
}
ArrayShape shape_of(const CUDA_ARRAY3D_DESCRIPTOR &deep, unsigned levels) {
  return {deep, levels, true};
}

// Works on a copy of the descriptor, so that what is charged is what the driver is asked for.
template <class Slot, class Handle, class Descriptor, class... Levels>
CUresult create(const Slot &slot, const char *api, const void *caller, CUresult (*undo)(CUdeviceptr), Handle *handle,
                const Descriptor *given, Levels... levels) {
  if (!slot.present()) {
    return kAbsent;
  }
  if (handle == nullptr || given == nullptr) {
    return slot(handle, given, levels...);
  }
  const Descriptor asked = *given;
  const ArrayShape shape = shape_of(asked, levels...);
  const auto make = [&](Handle *made) { return slot(made, &asked, levels...); };
  return ration::hooks::obtaining<Crossing::allocating, ArrayMemory, Refused::leaves>(
      handle, 0, make, [&](ArrayMemory &arrays, Act act) {
        if (!can_be(shape.descriptor)) {
          return ration::policy::Admission::refuse_as_driver(act, undo);
        }
        CUdeviceptr made = 0;
        ration::policy::Request request{api, 0, 0, caller};
        request.invalid = !is_element(shape.descriptor);
        const CUresult result = arrays.create(request, shape, act, undo, &made);
        if (result == CUDA_SUCCESS) {
          *handle = reinterpret_cast<Handle>(made);
        }
        return result;
      });
}

// The ledger does not record levels, planes, and arrays from graphics or other processes: the driver alone answers.
template <class Slot, class Handle>
CUresult destroy(const Slot &slot, const char *api, Handle handle) {
  return ration::hooks::forwarding<ArrayMemory>(
      slot, [=](ArrayMemory &arrays, const auto &call) { return arrays.destroy(api, number_of(handle), call); },
      handle);
}

}  // namespace

extern "C" {

CUresult cuArrayCreate(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR_v1 *pAllocateArray) {
  return create(real.cuArrayCreate, "cuArrayCreate", __builtin_return_address(0), undo_array, pHandle, pAllocateArray);
}

CUresult cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray) {
  return create(real.cuArrayCreate_v2, "cuArrayCreate_v2", __builtin_return_address(0), undo_array, pHandle,
                pAllocateArray);
}

CUresult cuArray3DCreate(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR_v1 *pAllocateArray) {
  return create(real.cuArray3DCreate, "cuArray3DCreate", __builtin_return_address(0), undo_array, pHandle,
                pAllocateArray);
}

CUresult cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray) {
  return create(real.cuArray3DCreate_v2, "cuArray3DCreate_v2", __builtin_return_address(0), undo_array, pHandle,
                pAllocateArray);
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
                                unsigned int numMipmapLevels) {
  return create(real.cuMipmappedArrayCreate, "cuMipmappedArrayCreate", __builtin_return_address(0), undo_mipmapped,
                pHandle, pMipmappedArrayDesc, numMipmapLevels);
}

CUresult cuArrayDestroy(CUarray hArray) {
  return destroy(real.cuArrayDestroy, "cuArrayDestroy", hArray);
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray) {
  return destroy(real.cuMipmappedArrayDestroy, "cuMipmappedArrayDestroy", hMipmappedArray);
}

}  // extern "C"
