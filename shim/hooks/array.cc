// CUDA arrays: memory with a handle and no address.
// Layer: hooks. Threads: any.
#include <cstdint>

#include "hooks/boundary.h"
#include "hooks/hooks.h"
#include "policy/calls/array_memory.h"

using ration::driver::real;
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

// Every bound that a device can state is an int (CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE…), and no width is 0.
bool can_be(const CUDA_ARRAY3D_DESCRIPTOR &shape) {
  return shape.Width != 0 && shape.Width <= INT32_MAX && shape.Height <= INT32_MAX && shape.Depth <= INT32_MAX;
}

// `make` is the real call for a handle; only success writes the program's.
template <class Handle, class Make>
CUresult create(const char *api, const void *caller, Handle *handle, const ArrayShape &shape,
                CUresult (*undo)(CUdeviceptr), const Make &make) {
  if (!can_be(shape.descriptor)) {
    Handle made = nullptr;
    const CUresult result = make(&made);  // the driver's own refusal
    return result == CUDA_SUCCESS ? (undo(reinterpret_cast<CUdeviceptr>(made)), CUDA_ERROR_OUT_OF_MEMORY) : result;
  }
  return ration::hooks::allocating<ArrayMemory>(handle, 0, make, [&](ArrayMemory &arrays, Act act) {
    CUdeviceptr made = 0;
    const CUresult result = arrays.create({api, 0, 0, caller}, shape, act, undo, &made);
    if (result == CUDA_SUCCESS) {
      *handle = reinterpret_cast<Handle>(made);
    }
    return result;
  });
}

template <class Descriptor>
CUDA_ARRAY3D_DESCRIPTOR flat(const Descriptor &shape) {
  return {shape.Width, shape.Height, 0, shape.Format, shape.NumChannels, 0};
}

}  // namespace

// Each works on a copy of the descriptor: what is charged is what the driver is asked for.
extern "C" CUresult cuArrayCreate(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR_v1 *pAllocateArray) {
  if (!real.cuArrayCreate.present()) {
    return ration::hooks::kAbsent;
  }
  if (pHandle == nullptr || pAllocateArray == nullptr) {
    return real.cuArrayCreate(pHandle, pAllocateArray);
  }
  const CUDA_ARRAY_DESCRIPTOR_v1 asked = *pAllocateArray;
  return create("cuArrayCreate", __builtin_return_address(0), pHandle, {flat(asked)}, undo_array,
                [&](CUarray *made) { return real.cuArrayCreate(made, &asked); });
}

extern "C" CUresult cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray) {
  if (!real.cuArrayCreate_v2.present()) {
    return ration::hooks::kAbsent;
  }
  if (pHandle == nullptr || pAllocateArray == nullptr) {
    return real.cuArrayCreate_v2(pHandle, pAllocateArray);
  }
  const CUDA_ARRAY_DESCRIPTOR asked = *pAllocateArray;
  return create("cuArrayCreate_v2", __builtin_return_address(0), pHandle, {flat(asked)}, undo_array,
                [&](CUarray *made) { return real.cuArrayCreate_v2(made, &asked); });
}

extern "C" CUresult cuArray3DCreate(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR_v1 *pAllocateArray) {
  if (!real.cuArray3DCreate.present()) {
    return ration::hooks::kAbsent;
  }
  if (pHandle == nullptr || pAllocateArray == nullptr) {
    return real.cuArray3DCreate(pHandle, pAllocateArray);
  }
  const CUDA_ARRAY3D_DESCRIPTOR_v1 asked = *pAllocateArray;
  const CUDA_ARRAY3D_DESCRIPTOR shape = {asked.Width,  asked.Height,      asked.Depth,
                                         asked.Format, asked.NumChannels, asked.Flags};
  return create("cuArray3DCreate", __builtin_return_address(0), pHandle, {shape}, undo_array,
                [&](CUarray *made) { return real.cuArray3DCreate(made, &asked); });
}

extern "C" CUresult cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray) {
  if (!real.cuArray3DCreate_v2.present()) {
    return ration::hooks::kAbsent;
  }
  if (pHandle == nullptr || pAllocateArray == nullptr) {
    return real.cuArray3DCreate_v2(pHandle, pAllocateArray);
  }
  const CUDA_ARRAY3D_DESCRIPTOR asked = *pAllocateArray;
  return create("cuArray3DCreate_v2", __builtin_return_address(0), pHandle, {asked}, undo_array,
                [&](CUarray *made) { return real.cuArray3DCreate_v2(made, &asked); });
}

extern "C" CUresult cuMipmappedArrayCreate(CUmipmappedArray *pHandle,
                                           const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
                                           unsigned int numMipmapLevels) {
  if (!real.cuMipmappedArrayCreate.present()) {
    return ration::hooks::kAbsent;
  }
  if (pHandle == nullptr || pMipmappedArrayDesc == nullptr) {
    return real.cuMipmappedArrayCreate(pHandle, pMipmappedArrayDesc, numMipmapLevels);
  }
  const CUDA_ARRAY3D_DESCRIPTOR asked = *pMipmappedArrayDesc;
  return create("cuMipmappedArrayCreate", __builtin_return_address(0), pHandle, {asked, numMipmapLevels, true},
                undo_mipmapped,
                [&](CUmipmappedArray *made) { return real.cuMipmappedArrayCreate(made, &asked, numMipmapLevels); });
}

// Levels, planes and what graphics or another process lent are in no book: the driver's to answer.
extern "C" CUresult cuArrayDestroy(CUarray hArray) {
  if (!real.cuArrayDestroy.present()) {
    return ration::hooks::kAbsent;
  }
  const auto call = [&] { return real.cuArrayDestroy(hArray); };
  return ration::hooks::forwarding<ArrayMemory>(call, [&](ArrayMemory &arrays) {
    return arrays.destroy("cuArrayDestroy", reinterpret_cast<std::uintptr_t>(hArray), call);
  });
}

extern "C" CUresult cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray) {
  if (!real.cuMipmappedArrayDestroy.present()) {
    return ration::hooks::kAbsent;
  }
  const auto call = [&] { return real.cuMipmappedArrayDestroy(hMipmappedArray); };
  return ration::hooks::forwarding<ArrayMemory>(call, [&](ArrayMemory &arrays) {
    return arrays.destroy("cuMipmappedArrayDestroy", reinterpret_cast<std::uintptr_t>(hMipmappedArray), call);
  });
}
