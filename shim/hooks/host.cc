// Pinned host memory, allocated by the driver or allocated by the program and registered: recorded, never limited.
// Layer: hooks. Threads: any.
#include "hooks/boundary.h"
#include "hooks/hooks.h"
#include "policy/calls/host_memory.h"

using ration::driver::real;
using ration::hooks::Crossing;
using ration::hooks::kAbsent;
using ration::hooks::Refused;
using ration::policy::Act;
using ration::policy::HostMemory;
using ration::policy::Obtained;

namespace {

CUresult undo_allocation(CUdeviceptr address) {
  return real.cuMemFreeHost.present() ? real.cuMemFreeHost(reinterpret_cast<void *>(address)) : CUDA_ERROR_NOT_FOUND;
}

CUresult undo_registration(CUdeviceptr address) {
  return real.cuMemHostUnregister.present() ? real.cuMemHostUnregister(reinterpret_cast<void *>(address))
                                            : CUDA_ERROR_NOT_FOUND;
}

template <class Slot, class Size, class... Rest>
CUresult allocate(const Slot &slot, const char *api, const void *caller, void **pp, Size bytes, Rest... rest) {
  if (!slot.present()) {
    return kAbsent;
  }
  if (pp == nullptr) {
    return slot(pp, bytes, rest...);
  }
  return ration::hooks::obtaining<Crossing::counting, HostMemory, Refused::leaves>(
      pp, bytes, [&](void **pinned) { return slot(pinned, bytes, rest...); },
      [&](HostMemory &memory, Act act) {
        CUdeviceptr pinned = 0;
        const CUresult result = memory.allocate({api, bytes, bytes, caller}, act, undo_allocation, &pinned);
        if (result == CUDA_SUCCESS) {
          *pp = reinterpret_cast<void *>(pinned);
        }
        return result;
      });
}

template <class Slot, class... Rest>
CUresult pin(const Slot &slot, const char *api, const void *caller, void *p, std::uint64_t bytes, Rest... rest) {
  if (!slot.present()) {
    return kAbsent;
  }
  const auto call = [&] { return slot(p, rest...); };
  const auto act = [&](Obtained &got) {
    got = {ration::hooks::number_of(p), bytes};
    return call();
  };
  return ration::hooks::cross<Crossing::counting, HostMemory>(call, [&](HostMemory &memory) {
    CUdeviceptr pinned = 0;
    return memory.allocate({api, bytes, bytes, caller}, act, undo_registration, &pinned);
  });
}

template <class Slot>
CUresult end(const Slot &slot, const char *api, void *p) {
  return ration::hooks::forwarding<HostMemory>(
      slot, [=](HostMemory &memory, const auto &call) { return memory.free(api, p, call); }, p);
}

}  // namespace

extern "C" {

// The version of CUDA 2.0, with a 32-bit size.
CUresult cuMemAllocHost(void **pp, unsigned int bytesize) {
  return allocate(real.cuMemAllocHost, "cuMemAllocHost", __builtin_return_address(0), pp, bytesize);
}

CUresult cuMemAllocHost_v2(void **pp, size_t bytesize) {
  return allocate(real.cuMemAllocHost_v2, "cuMemAllocHost_v2", __builtin_return_address(0), pp, bytesize);
}

CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags) {
  return allocate(real.cuMemHostAlloc, "cuMemHostAlloc", __builtin_return_address(0), pp, bytesize, Flags);
}

CUresult cuMemFreeHost(void *p) {
  return end(real.cuMemFreeHost, "cuMemFreeHost", p);
}

CUresult cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags) {
  return pin(real.cuMemHostRegister, "cuMemHostRegister", __builtin_return_address(0), p, bytesize, bytesize, Flags);
}

CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags) {
  return pin(real.cuMemHostRegister_v2, "cuMemHostRegister_v2", __builtin_return_address(0), p, bytesize, bytesize,
             Flags);
}

CUresult cuMemHostUnregister(void *p) {
  return end(real.cuMemHostUnregister, "cuMemHostUnregister", p);
}

}  // extern "C"
