// Stream-ordered memory in both default-stream flavours, and the driver's pools that it comes from. cuMemFreeAsync also
// takes what cuMemAlloc gave.
// Layer: hooks. Threads: any.
#include "hooks/boundary.h"
#include "hooks/hooks.h"
#include "hooks/streams.h"
#include "policy/calls/stream_memory.h"

using ration::driver::real;
using ration::hooks::legacy;
using ration::hooks::per_thread;
using ration::policy::Act;
using ration::policy::StreamMemory;

namespace {

// One call that allocates: `slot` with the pool, where it names one, and the stream. `stream` is what the flavour
// means.
template <class Slot, class... Rest>
CUresult allocate(const Slot &slot, const char *api, const void *caller, CUdeviceptr *address, std::size_t bytes,
                  CUmemoryPool pool, CUstream stream, Rest... rest) {
  if (!slot.present()) {
    return ration::hooks::kAbsent;
  }
  if (address == nullptr || bytes == 0) {
    return slot(address, bytes, rest...);
  }
  return ration::hooks::allocating<StreamMemory>(
      address, bytes, [&](CUdeviceptr *place) { return slot(place, bytes, rest...); },
      [&](StreamMemory &memory, Act act) {
        return memory.allocate({api, bytes, bytes, caller}, pool, stream, act, address);
      });
}

}  // namespace

extern "C" CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream) {
  return allocate(real.cuMemAllocAsync, "cuMemAllocAsync", __builtin_return_address(0), dptr, bytesize, nullptr,
                  legacy(hStream), hStream);
}

extern "C" CUresult cuMemAllocAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUstream hStream) {
  return allocate(real.cuMemAllocAsync_ptsz, "cuMemAllocAsync_ptsz", __builtin_return_address(0), dptr, bytesize,
                  nullptr, per_thread(hStream), hStream);
}

// A pool that is nothing is the driver's to refuse, whatever is left of the limit.
extern "C" CUresult cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream) {
  return allocate(real.cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", __builtin_return_address(0),
                  pool != nullptr ? dptr : nullptr, bytesize, pool, legacy(hStream), pool, hStream);
}

extern "C" CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool,
                                                 CUstream hStream) {
  return allocate(real.cuMemAllocFromPoolAsync_ptsz, "cuMemAllocFromPoolAsync_ptsz", __builtin_return_address(0),
                  pool != nullptr ? dptr : nullptr, bytesize, pool, per_thread(hStream), pool, hStream);
}

extern "C" CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps) {
  if (!real.cuMemPoolCreate.present()) {
    return ration::hooks::kAbsent;
  }
  const auto call = [&] { return real.cuMemPoolCreate(pool, poolProps); };
  return ration::hooks::forwarding<StreamMemory>(call, [&](StreamMemory &memory) {
    const CUresult result = call();
    if (result == CUDA_SUCCESS) {
      memory.pool_created(*pool, poolProps->location);
    }
    return result;
  });
}

extern "C" CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  if (!real.cuMemPoolDestroy.present()) {
    return ration::hooks::kAbsent;
  }
  const auto call = [&] { return real.cuMemPoolDestroy(pool); };
  return ration::hooks::forwarding<StreamMemory>(call,
                                                 [&](StreamMemory &memory) { return memory.destroy_pool(pool, call); });
}

extern "C" CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep) {
  if (!real.cuMemPoolTrimTo.present()) {
    return ration::hooks::kAbsent;
  }
  const auto call = [&] { return real.cuMemPoolTrimTo(pool, minBytesToKeep); };
  return ration::hooks::forwarding<StreamMemory>(
      call, [&](StreamMemory &memory) { return memory.trim_pool("cuMemPoolTrimTo", pool, call); });
}

extern "C" CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
  if (!real.cuMemFreeAsync.present()) {
    return ration::hooks::kAbsent;
  }
  const auto call = [&] { return real.cuMemFreeAsync(dptr, hStream); };
  return ration::hooks::forwarding<StreamMemory>(
      call, [&](StreamMemory &memory) { return memory.free("cuMemFreeAsync", dptr, legacy(hStream), call); });
}

extern "C" CUresult cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream) {
  if (!real.cuMemFreeAsync_ptsz.present()) {
    return ration::hooks::kAbsent;
  }
  const auto call = [&] { return real.cuMemFreeAsync_ptsz(dptr, hStream); };
  return ration::hooks::forwarding<StreamMemory>(
      call, [&](StreamMemory &memory) { return memory.free("cuMemFreeAsync_ptsz", dptr, per_thread(hStream), call); });
}
