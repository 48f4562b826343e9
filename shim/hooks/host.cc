// Pinned memory of the host, allocated by the driver or the program's own and registered: written down, never limited.
// Layer: hooks. Threads: any.
#include "hooks/boundary.h"
#include "hooks/hooks.h"

using ration::driver::real;
using ration::policy::Obtained;
using ration::policy::Policy;
using ration::policy::Request;

namespace {

CUdeviceptr number_of(const void *pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

Request request_of(const char *api, std::uint64_t bytes, const void *caller) {
  return {api, bytes, bytes, caller, false, ration::events::Kind::host, false};
}

CUresult undo_allocation(CUdeviceptr address) {
  return real.cuMemFreeHost.present() ? real.cuMemFreeHost(reinterpret_cast<void *>(address)) : CUDA_ERROR_NOT_FOUND;
}

CUresult undo_registration(CUdeviceptr address) {
  return real.cuMemHostUnregister.present() ? real.cuMemHostUnregister(reinterpret_cast<void *>(address))
                                            : CUDA_ERROR_NOT_FOUND;
}

// `call` is the real one for a place of ours: a failure leaves the program's alone.
template <class Call>
CUresult allocate(const char *api, const void *caller, void **pp, std::uint64_t bytes, const Call &call) {
  if (pp == nullptr) {
    return call(nullptr);
  }
  void *pinned = nullptr;
  const auto act = [&](Obtained &got) {
    const CUresult result = call(&pinned);
    got = {number_of(pinned), bytes};
    return result;
  };
  return ration::hooks::counting([&] { return call(pp); },
                                 [&](Policy &policy) {
                                   const CUresult result =
                                       policy.allocate_host(request_of(api, bytes, caller), act, undo_allocation);
                                   if (result == CUDA_SUCCESS) {
                                     *pp = pinned;
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
  return ration::hooks::counting(call, [&](Policy &policy) {
    return policy.allocate_host(request_of(api, bytes, caller), act, undo_registration);
  });
}

template <class Call>
CUresult end(const char *api, const void *p, const Call &call) {
  return ration::hooks::forwarding(call, [&](Policy &policy) { return policy.free_host(api, p, call); });
}

}  // namespace

// Of CUDA 2.0: a 32-bit size.
extern "C" CUresult cuMemAllocHost(void **pp, unsigned int bytesize) {
  if (!real.cuMemAllocHost.present()) {
    return ration::hooks::kAbsent;
  }
  return allocate("cuMemAllocHost", __builtin_return_address(0), pp, bytesize,
                  [&](void **pinned) { return real.cuMemAllocHost(pinned, bytesize); });
}

extern "C" CUresult cuMemAllocHost_v2(void **pp, size_t bytesize) {
  if (!real.cuMemAllocHost_v2.present()) {
    return ration::hooks::kAbsent;
  }
  return allocate("cuMemAllocHost_v2", __builtin_return_address(0), pp, bytesize,
                  [&](void **pinned) { return real.cuMemAllocHost_v2(pinned, bytesize); });
}

extern "C" CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags) {
  if (!real.cuMemHostAlloc.present()) {
    return ration::hooks::kAbsent;
  }
  return allocate("cuMemHostAlloc", __builtin_return_address(0), pp, bytesize,
                  [&](void **pinned) { return real.cuMemHostAlloc(pinned, bytesize, Flags); });
}

extern "C" CUresult cuMemFreeHost(void *p) {
  if (!real.cuMemFreeHost.present()) {
    return ration::hooks::kAbsent;
  }
  return end("cuMemFreeHost", p, [&] { return real.cuMemFreeHost(p); });
}

extern "C" CUresult cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags) {
  if (!real.cuMemHostRegister.present()) {
    return ration::hooks::kAbsent;
  }
  return pin("cuMemHostRegister", __builtin_return_address(0), p, bytesize,
             [&] { return real.cuMemHostRegister(p, bytesize, Flags); });
}

extern "C" CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags) {
  if (!real.cuMemHostRegister_v2.present()) {
    return ration::hooks::kAbsent;
  }
  return pin("cuMemHostRegister_v2", __builtin_return_address(0), p, bytesize,
             [&] { return real.cuMemHostRegister_v2(p, bytesize, Flags); });
}

extern "C" CUresult cuMemHostUnregister(void *p) {
  if (!real.cuMemHostUnregister.present()) {
    return ration::hooks::kAbsent;
  }
  return end("cuMemHostUnregister", p, [&] { return real.cuMemHostUnregister(p); });
}
