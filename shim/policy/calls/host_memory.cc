#include "policy/calls/host_memory.h"

#include "policy/calls/call_parts.h"

namespace ration::policy {
namespace {

using driver::real;

constexpr int kIntegrated = 18;  // cuda.h, CU_DEVICE_ATTRIBUTE_INTEGRATED

}  // namespace

CUresult HostMemory::allocate(Request request, Act act, Undo undo, CUdeviceptr *address) {
  request.kind = events::Kind::host;
  request.charged = false;
  const Contexts::Current where = parts_.admission.current();
  const auto act_here = [&](Obtained &got) {
    const CUresult result = act(got);
    return result == CUDA_ERROR_OUT_OF_MEMORY && where.error == CUDA_SUCCESS && shares_memory_with(where.device)
               ? parts_.admission.act_with_room(request, where, act, got)
               : result;
  };
  return parts_.admission.obtain(parts_.books.blocks, request, where, act_here, undo, address);
}

CUresult HostMemory::free(const char *api, const void *address, DriverCall call) {
  return parts_.books.end(parts_.books.blocks, api, reinterpret_cast<std::uintptr_t>(address),
                          [&](const Block *) { return call(); });
}

bool HostMemory::shares_memory_with(int device) {
  const Device *known = parts_.devices.find(device);
  int integrated = 0;
  return known != nullptr && real.cuDeviceGetAttribute.present() &&
         real.cuDeviceGetAttribute(&integrated, kIntegrated, known->handle) == CUDA_SUCCESS && integrated != 0;
}

}  // namespace ration::policy
