// Stream-ordered memory, in both variants of the default stream, and the driver's pools that it comes from.
// cuMemFreeAsync also frees memory from cuMemAlloc.
// Layer: hooks. Threads: any.
#include "hooks/boundary.h"
#include "hooks/hooks.h"
#include "policy/calls/stream_memory.h"

using ration::driver::real;
using ration::hooks::forwarding;
using ration::hooks::legacy;
using ration::hooks::per_thread;
using ration::policy::Act;
using ration::policy::StreamMemory;

namespace {

// `stream` is the stream that the call means, with the default stream of its variant. `rest` is the pool, if the call
// has one, and the stream. A request for zero bytes or with a null pool goes to the driver, whatever is left of the
// limit.
template <class Slot, class... Rest>
CUresult allocate(const Slot &slot, const char *api, const void *caller, CUdeviceptr *address, std::size_t bytes,
                  CUmemoryPool pool, CUstream stream, Rest... rest) {
  if (slot.present() && (bytes == 0 || (sizeof...(Rest) == 2 && pool == nullptr))) {
    return slot(address, bytes, rest...);
  }
  return ration::hooks::allocating<StreamMemory>(
      slot, bytes,
      [&](StreamMemory &memory, Act act) {
        return memory.allocate({api, bytes, bytes, caller}, pool, stream, act, address);
      },
      address, bytes, rest...);
}

template <class Slot>
CUresult free(const Slot &slot, const char *api, CUdeviceptr address, CUstream stream, CUstream meant) {
  return forwarding<StreamMemory>(
      slot, [=](StreamMemory &memory, const auto &call) { return memory.free(api, address, meant, call); }, address,
      stream);
}

// Calls a driver function that reads or sets something of a pool.
template <class Slot, class... Rest>
CUresult of_pool(const Slot &slot, CUmemoryPool pool, Rest... rest) {
  return forwarding<StreamMemory>(
      slot, [&](StreamMemory &memory, const auto &) { return slot(memory.behind(pool), rest...); }, pool, rest...);
}

}  // namespace

extern "C" {

CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream) {
  return allocate(real.cuMemAllocAsync, "cuMemAllocAsync", __builtin_return_address(0), dptr, bytesize, nullptr,
                  legacy(hStream), hStream);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUstream hStream) {
  return allocate(real.cuMemAllocAsync_ptsz, "cuMemAllocAsync_ptsz", __builtin_return_address(0), dptr, bytesize,
                  nullptr, per_thread(hStream), hStream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream) {
  return allocate(real.cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", __builtin_return_address(0), dptr, bytesize,
                  pool, legacy(hStream), pool, hStream);
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream) {
  return allocate(real.cuMemAllocFromPoolAsync_ptsz, "cuMemAllocFromPoolAsync_ptsz", __builtin_return_address(0), dptr,
                  bytesize, pool, per_thread(hStream), pool, hStream);
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps) {
  return forwarding<StreamMemory>(
      real.cuMemPoolCreate,
      [=](StreamMemory &memory, const auto &call) { return memory.create_pool(pool, poolProps, call); }, pool,
      poolProps);
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  return forwarding<StreamMemory>(
      real.cuMemPoolDestroy, [=](StreamMemory &memory, const auto &call) { return memory.destroy_pool(pool, call); },
      pool);
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep) {
  return forwarding<StreamMemory>(
      real.cuMemPoolTrimTo,
      [=](StreamMemory &memory, const auto &) { return memory.trim_pool("cuMemPoolTrimTo", pool, minBytesToKeep); },
      pool, minBytesToKeep);
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value) {
  return of_pool(real.cuMemPoolSetAttribute, pool, attr, value);
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value) {
  return of_pool(real.cuMemPoolGetAttribute, pool, attr, value);
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count) {
  return of_pool(real.cuMemPoolSetAccess, pool, map, count);
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool, CUmemLocation *location) {
  return forwarding<StreamMemory>(
      real.cuMemPoolGetAccess,
      [=](StreamMemory &memory, const auto &) {
        return real.cuMemPoolGetAccess(flags, memory.behind(memPool), location);
      },
      flags, memPool, location);
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
  return free(real.cuMemFreeAsync, "cuMemFreeAsync", dptr, hStream, legacy(hStream));
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream) {
  return free(real.cuMemFreeAsync_ptsz, "cuMemFreeAsync_ptsz", dptr, hStream, per_thread(hStream));
}

}  // extern "C"
