// Physical memory with handles, and the addresses that it is mapped at: cuMemCreate and what keeps its memory alive.
// Layer: hooks. Threads: any.
#include <vector>

#include "hooks/boundary.h"
#include "hooks/hooks.h"
#include "hooks/streams.h"
#include "policy/calls/mapped_memory.h"

using ration::driver::real;
using ration::hooks::forwarding;
using ration::hooks::kAbsent;
using ration::policy::Act;
using ration::policy::MappedMemory;

namespace {

template <class Slot>
CUresult map_arrays(const Slot &slot, CUarrayMapInfo *list, unsigned count, CUstream stream, CUstream meant) {
  if (!slot.present()) {
    return kAbsent;
  }
  if (list == nullptr || count == 0) {  // the driver's to answer, and of no copy
    return slot(list, count, stream);
  }
  return forwarding<MappedMemory>([&] { return slot(list, count, stream); },
                                  [&](MappedMemory &memory) {
                                    std::vector<CUarrayMapInfo> entries(list, list + count);
                                    return memory.map_arrays(entries.data(), count, meant,
                                                             [&] { return slot(entries.data(), count, stream); });
                                  });
}

}  // namespace

extern "C" {

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
                     unsigned long long flags) {
  if (!real.cuMemCreate.present()) {
    return kAbsent;
  }
  if (handle == nullptr || prop == nullptr || size == 0) {
    return real.cuMemCreate(handle, size, prop, flags);
  }
  const void *caller = __builtin_return_address(0);
  const auto call = [=](CUmemGenericAllocationHandle *made) { return real.cuMemCreate(made, size, prop, flags); };
  const auto undo = [](CUdeviceptr made) {
    return real.cuMemRelease.present() ? real.cuMemRelease(made) : CUDA_ERROR_NOT_FOUND;
  };
  return ration::hooks::allocating<MappedMemory>(handle, size, call, [&](MappedMemory &memory, Act act) {
    return memory.create({"cuMemCreate", size, size, caller}, prop->location, act, undo, handle);
  });
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  if (!real.cuMemRelease.present()) {
    return kAbsent;
  }
  const auto call = [&] { return real.cuMemRelease(handle); };
  return forwarding<MappedMemory>(call,
                                  [&](MappedMemory &memory) { return memory.release("cuMemRelease", handle, call); });
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr) {
  if (!real.cuMemRetainAllocationHandle.present()) {
    return kAbsent;
  }
  const auto call = [&] { return real.cuMemRetainAllocationHandle(handle, addr); };
  return forwarding<MappedMemory>(call, [&](MappedMemory &memory) {
    return memory.retain("cuMemRetainAllocationHandle", reinterpret_cast<CUdeviceptr>(addr), handle, call);
  });
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  if (!real.cuMemMap.present()) {
    return kAbsent;
  }
  const auto call = [&] { return real.cuMemMap(ptr, size, offset, handle, flags); };
  return forwarding<MappedMemory>(
      call, [&](MappedMemory &memory) { return memory.map("cuMemMap", ptr, size, handle, call); });
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size) {
  if (!real.cuMemUnmap.present()) {
    return kAbsent;
  }
  const auto call = [&] { return real.cuMemUnmap(ptr, size); };
  return forwarding<MappedMemory>(call,
                                  [&](MappedMemory &memory) { return memory.unmap("cuMemUnmap", ptr, size, call); });
}

// On a copy of the list: what is noted down is what the driver was asked for.
CUresult cuMemMapArrayAsync(CUarrayMapInfo *mapInfoList, unsigned int count, CUstream hStream) {
  return map_arrays(real.cuMemMapArrayAsync, mapInfoList, count, hStream, ration::hooks::legacy(hStream));
}
CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo *mapInfoList, unsigned int count, CUstream hStream) {
  return map_arrays(real.cuMemMapArrayAsync_ptsz, mapInfoList, count, hStream, ration::hooks::per_thread(hStream));
}

}  // extern "C"
