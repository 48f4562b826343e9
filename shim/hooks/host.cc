// Pinned memory of the host, allocated by the driver or the program's own and registered: recorded, never limited.
// Layer: hooks. Threads: any.
#include "hooks/boundary.h"
#include "hooks/hooks.h"
#include "policy/calls/host_memory.h"

using ration::driver::real;
using ration::hooks::Crossing;
using ration::hooks::kAbsent;
using ration::hooks::number_of;
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

// A failure leaves the program's place alone, whatever the driver wrote.
template <class Call>
CUresult allocate(const char *api, const void *caller, void **pp, std::uint64_t bytes, const Call &call) {
  if (pp == nullptr) {
    return call(nullptr);
  }
  return ration::hooks::obtaining<Crossing::counting, HostMemory>(pp, bytes, call, [&](HostMemory &memory, Act act) {
    Obtained pinned;
    const CUresult result = memory.allocate(
        {api, bytes, bytes, caller},
        [&](Obtained &got) {
          const CUresult answer = act(got);
          pinned = got;
          return answer;
        },
        undo_allocation);
    if (result == CUDA_SUCCESS) {
      *pp = reinterpret_cast<void *>(pinned.address);
    }
    return result;
  });
}

template <class Call>
CUresult pin(const char *api, const void *caller, void *p, std::uint64_t bytes, const Call &call) {
  const auto act = [&](Obtained &got) {
    got = {number_of(p), bytes};
    return call();
  };
  return ration::hooks::cross<Crossing::counting, HostMemory>(call, [&](HostMemory &memory) {
    return memory.allocate({api, bytes, bytes, caller}, act, undo_registration);
  });
}

template <class Call>
CUresult end(const char *api, const void *p, const Call &call) {
  return ration::hooks::forwarding<HostMemory>(call, [&](HostMemory &memory) { return memory.free(api, p, call); });
}

}  // namespace

// Of CUDA 2.0: a 32-bit size.
extern "C" CUresult cuMemAllocHost(void **pp, unsigned int bytesize) {
  if (!real.cuMemAllocHost.present()) {
    return kAbsent;
  }
  return allocate("cuMemAllocHost", __builtin_return_address(0), pp, bytesize,
                  [&](void **pinned) { return real.cuMemAllocHost(pinned, bytesize); });
}

extern "C" CUresult cuMemAllocHost_v2(void **pp, size_t bytesize) {
  if (!real.cuMemAllocHost_v2.present()) {
    return kAbsent;
  }
  return allocate("cuMemAllocHost_v2", __builtin_return_address(0), pp, bytesize,
                  [&](void **pinned) { return real.cuMemAllocHost_v2(pinned, bytesize); });
}

extern "C" CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags) {
  if (!real.cuMemHostAlloc.present()) {
    return kAbsent;
  }
  return allocate("cuMemHostAlloc", __builtin_return_address(0), pp, bytesize,
                  [&](void **pinned) { return real.cuMemHostAlloc(pinned, bytesize, Flags); });
}

extern "C" CUresult cuMemFreeHost(void *p) {
  if (!real.cuMemFreeHost.present()) {
    return kAbsent;
  }
  return end("cuMemFreeHost", p, [&] { return real.cuMemFreeHost(p); });
}

extern "C" CUresult cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags) {
  if (!real.cuMemHostRegister.present()) {
    return kAbsent;
  }
  return pin("cuMemHostRegister", __builtin_return_address(0), p, bytesize,
             [&] { return real.cuMemHostRegister(p, bytesize, Flags); });
}

extern "C" CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags) {
  if (!real.cuMemHostRegister_v2.present()) {
    return kAbsent;
  }
  return pin("cuMemHostRegister_v2", __builtin_return_address(0), p, bytesize,
             [&] { return real.cuMemHostRegister_v2(p, bytesize, Flags); });
}

extern "C" CUresult cuMemHostUnregister(void *p) {
  if (!real.cuMemHostUnregister.present()) {
    return kAbsent;
  }
  return end("cuMemHostUnregister", p, [&] { return real.cuMemHostUnregister(p); });
}
