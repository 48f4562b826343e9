#include "policy/calls/device_reach.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace ration::policy {
namespace {

constexpr int kFirst64BitVersion = 3020;
// They use arrays and host memory only; arrays are the driver's to free.
constexpr std::string_view kOfArraysAndHost[] = {"cuMemcpyAtoA", "cuMemcpyAtoH", "cuMemcpyHtoA", "cuMemcpyAtoHAsync",
                                                 "cuMemcpyHtoAAsync"};

bool is_default(CUstream stream) {
  return stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

}  // namespace

bool DeviceReach::is_of_family(const char *name, int version) {
  const std::string_view asked = name;
  return version >= kFirst64BitVersion &&
         (asked.starts_with("cuMemcpy") || asked.starts_with("cuMemset") || asked.starts_with("cuGraphLaunch") ||
          asked.starts_with("cuMemBatch")) &&
         std::find(std::begin(kOfArraysAndHost), std::end(kOfArraysAndHost), asked) == std::end(kOfArraysAndHost);
}

// Only of blocks whose frees wait for a fence: those in slabs, and those of mode async, which the driver knows.
int DeviceReach::device_at(CUdeviceptr address) {
  const int device = pools_.device_at(address);
  int ordinal = -1;
  if (device >= 0 || !async_.enabled()) {
    return device;
  }
  const RelaxedCapture relaxed;
  const bool known =
      driver::real.cuPointerGetAttribute.present() &&
      driver::real.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) == CUDA_SUCCESS;
  return known && ordinal >= 0 && ordinal < ledger::kMaxDevices ? ordinal : -1;
}

void DeviceReach::note_now(const Work &work) noexcept try {
  int devices[] = {-1, -1};
  bool any = work.anywhere;
  for (std::size_t i = 0; i < std::size(devices); ++i) {
    devices[i] = work.addresses[i] != 0 && !work.anywhere ? device_at(work.addresses[i]) : -1;
    any |= devices[i] >= 0;
  }
  if (!any) {
    return;
  }
  const auto note = [&](const ContextRef &context) {
    if (context == nullptr) {
      return;
    }
    if (work.anywhere) {
      context->reached.add_all();
    }
    for (const int device : devices) {
      if (device >= 0 && device != context->device) {
        context->reached.add(device);
      }
    }
  };
  note(contexts_.current().context);
  if (!is_default(work.stream)) {
    note(contexts_.of_stream(work.stream));
  }
  for (const CUcontext party : work.parties) {
    if (party != nullptr) {
      note(contexts_.find(party));
    }
  }
} catch (...) {  // out of memory of the host
  contexts_.note_anywhere();
}

}  // namespace ration::policy
