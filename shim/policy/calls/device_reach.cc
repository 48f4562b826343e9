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

DeviceReach::Noted::Noted(DeviceReach &reach, const Work &work) noexcept
    : contexts_(reach.contexts_), fences_(reach.fences_) {
  try {
    note(reach, work);
  } catch (...) {  // out of memory of the host
    contexts_.note_anywhere();
  }
}

void DeviceReach::Noted::note(DeviceReach &reach, const Work &work) {
  if (work.anywhere) {
    devices_[0] = Reach::kAllDevices;
  } else {
    std::transform(std::begin(work.addresses), std::end(work.addresses), devices_,
                   [&](CUdeviceptr address) { return address != 0 ? reach.device_at(address) : -1; });
  }
  if (devices_[0] < 0 && devices_[1] < 0) {
    return;
  }
  enter(contexts_.current().context);
  if (!is_default(work.stream)) {
    enter(contexts_.of_stream(work.stream));
  }
  for (const CUcontext party : work.parties) {
    if (party != nullptr) {
      enter(contexts_.find(party));
    }
  }
}

void DeviceReach::Noted::enter(ContextRef context) noexcept {
  if (context == nullptr) {
    return;
  }
  bool reaches = false;
  for (const int device : devices_) {
    if (device >= 0 && device != context->device) {
      context->reach.enter(device);
      reaches = true;
    }
  }
  if (reaches) {
    inside_[count_++] = std::move(context);
  }
}

bool DeviceReach::Noted::leave(CUresult result) noexcept {
  left_ = true;
  if (count_ == 0) {
    return false;
  }
  const bool submitted = result != CUDA_ERROR_INVALID_VALUE || devices_[0] == Reach::kAllDevices;  // or a part of it
  const std::uint64_t number = submitted ? contexts_.tick() : 0;
  for (int i = 0; i < count_; ++i) {
    for (const int device : devices_) {
      if (device >= 0 && device != inside_[i]->device) {
        inside_[i]->reach.leave(device, number);
      }
    }
  }
  return submitted;
}

void DeviceReach::Noted::fence() noexcept {
  for (int i = 0; i < count_; ++i) {
    fences_.end_reach(inside_[i]);
  }
}

}  // namespace ration::policy
