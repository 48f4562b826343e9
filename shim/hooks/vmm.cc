// Physical memory with handles, and the addresses at which it is mapped: cuMemCreate and the calls that keep its memory
// alive.
// Layer: hooks. Threads: any.
#include <vector>

#include "hooks/boundary.h"
#include "hooks/hooks.h"
#include "policy/calls/mapped_memory.h"

using ration::driver::real;
using ration::hooks::forwarding;
using ration::policy::Act;
using ration::policy::MappedMemory;

namespace {

// Works on a copy of the list, so what is recorded is what the driver was asked for. The driver handles an empty list.
template <class Slot>
CUresult map_arrays(const Slot &slot, CUarrayMapInfo *list, unsigned count, CUstream stream, CUstream meant) {
  return forwarding<MappedMemory>(
      slot,
      [&](MappedMemory &memory, const auto &call) {
        if (list == nullptr || count == 0) {
          return call();
        }
        std::vector<CUarrayMapInfo> entries(list, list + count);
        return memory.map_arrays(entries.data(), count, meant, [&] { return slot(entries.data(), count, stream); });
      },
      list, count, stream);
}

CUresult undo_create(CUdeviceptr made) {
  return real.cuMemRelease.present() ? real.cuMemRelease(made) : CUDA_ERROR_NOT_FOUND;
}

// True if the driver would try to serve such a request.
bool is_valid(size_t size, const CUmemAllocationProp &prop, unsigned long long flags) {
  constexpr int kMinimum = 0;  // CU_MEM_ALLOC_GRANULARITY_MINIMUM
  size_t granularity = 1;
  if (real.cuMemGetAllocationGranularity.present() &&
      real.cuMemGetAllocationGranularity(&granularity, &prop, kMinimum) != CUDA_SUCCESS) {
    return false;
  }
  return flags == 0 && granularity != 0 && size % granularity == 0;
}

}  // namespace

extern "C" {

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
                     unsigned long long flags) {
  if (real.cuMemCreate.present() && (prop == nullptr || size == 0)) {
    return real.cuMemCreate(handle, size, prop, flags);
  }
  const void *caller = __builtin_return_address(0);
  return ration::hooks::allocating<MappedMemory, ration::hooks::Refused::leaves>(
      real.cuMemCreate, size,
      [=](MappedMemory &memory, Act act) {
        ration::policy::Request request{"cuMemCreate", size, size, caller};
        request.invalid = !is_valid(size, *prop, flags);
        return memory.create(request, prop->location, act, undo_create, handle);
      },
      handle, size, prop, flags);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return forwarding<MappedMemory>(
      real.cuMemRelease,
      [=](MappedMemory &memory, const auto &call) { return memory.release("cuMemRelease", handle, call); }, handle);
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr) {
  return forwarding<MappedMemory>(
      real.cuMemRetainAllocationHandle,
      [=](MappedMemory &memory, const auto &call) {
        return memory.retain("cuMemRetainAllocationHandle", ration::hooks::number_of(addr), handle, call);
      },
      handle, addr);
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  return forwarding<MappedMemory>(
      real.cuMemMap,
      [=](MappedMemory &memory, const auto &call) { return memory.map("cuMemMap", ptr, size, handle, call); }, ptr,
      size, offset, handle, flags);
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size) {
  return forwarding<MappedMemory>(
      real.cuMemUnmap,
      [=](MappedMemory &memory, const auto &call) { return memory.unmap("cuMemUnmap", ptr, size, call); }, ptr, size);
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count) {
  return forwarding<MappedMemory>(
      real.cuMemSetAccess, [=](MappedMemory &memory, const auto &call) { return memory.set_access(ptr, call); }, ptr,
      size, desc, count);
}

CUresult cuMemMapArrayAsync(CUarrayMapInfo *mapInfoList, unsigned int count, CUstream hStream) {
  return map_arrays(real.cuMemMapArrayAsync, mapInfoList, count, hStream, ration::hooks::legacy(hStream));
}

CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo *mapInfoList, unsigned int count, CUstream hStream) {
  return map_arrays(real.cuMemMapArrayAsync_ptsz, mapInfoList, count, hStream, ration::hooks::per_thread(hStream));
}

}  // extern "C"
