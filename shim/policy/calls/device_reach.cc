#include "policy/calls/device_reach.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "policy/calls/call_parts.h"

namespace ration::policy {
namespace {

constexpr int kFirst64BitVersion = 3020;
// These use only arrays and host memory, and the driver itself frees arrays.
constexpr std::string_view kOfArraysAndHost[] = {"cuMemcpyAtoA", "cuMemcpyAtoH", "cuMemcpyHtoA", "cuMemcpyAtoHAsync",
                                                 "cuMemcpyHtoAAsync"};

bool is_default(CUstream stream) {
  return stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

}  // namespace

DeviceReach::DeviceReach(const CallParts &parts)
    : parts_(parts), contexts_(parts.contexts), fences_(parts.fences), sync_memops_(parts.sync_memops) {}

bool DeviceReach::is_of_family(const char *name, int version) {
  const std::string_view asked = name;
  return version >= kFirst64BitVersion &&
         (asked.starts_with("cuMemcpy") || asked.starts_with("cuMemset") || asked.starts_with("cuGraphLaunch") ||
          asked.starts_with("cuMemBatch")) &&
         std::find(std::begin(kOfArraysAndHost), std::end(kOfArraysAndHost), asked) == std::end(kOfArraysAndHost);
}

// The device of a block whose free waits for a fence; else -1. Such blocks are those of pools, those of mode async,
// which the driver knows, and those of other processes in granules, to which a copy must be given access.
int DeviceReach::device_at(CUdeviceptr address) {
  int device = parts_.pools.slabs.device_at(address);
  if (device < 0) {
    const ContextRef opener = parts_.imports.opener_in_granules(address);
    device = opener != nullptr ? opener->device : -1;
  }
  int ordinal = -1;
  if (device >= 0 || !parts_.options.async) {
    return device;
  }
  const RelaxedCapture relaxed;
  const bool known =
      driver::real.cuPointerGetAttribute.present() &&
      driver::real.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) == CUDA_SUCCESS;
  return known && ordinal >= 0 && ordinal < ledger::kMaxDevices ? ordinal : -1;
}

DeviceReach::Used DeviceReach::used_abroad(const Work &work) noexcept {
  if (work.anywhere) {
    return {{Reach::kAllDevices, -1}};
  }
  const auto at = [this](CUdeviceptr address) { return address != 0 ? device_at(address) : -1; };
  const Used used{{at(work.addresses[0]), at(work.addresses[1])}};
  return used.any() && is_abroad(work, used) ? used : Used{};
}

bool DeviceReach::is_abroad(const Work &work, const Used &used) noexcept try {
  bool abroad = false;
  each_context(work, [&](const ContextRef &context) { abroad |= used.is_abroad(*context); });
  return abroad;
} catch (...) {
  return true;
}

// Visits the contexts that the work may belong to.
template <class Visit>
void DeviceReach::each_context(const Work &work, const Visit &visit) {
  const auto visit_known = [&visit](const ContextRef &context) {
    if (context != nullptr) {
      visit(context);
    }
  };
  visit_known(contexts_.current().context);
  if (!is_default(work.stream)) {
    visit_known(contexts_.of_stream(work.stream));
  }
  for (const CUcontext party : work.parties) {
    if (party != nullptr) {
      visit_known(contexts_.find(party));
    }
  }
}

bool DeviceReach::has_unsealed_frees() noexcept {
  return parts_.pools.devices.has_unsealed_frees() || parts_.async_pools.has_unsealed_frees();
}

void DeviceReach::seal_frees() noexcept {
  if (has_unsealed_frees()) {
    parts_.pools.devices.seal_frees();
    if (parts_.options.async) {
      parts_.async_pools.seal_frees();
    }
  }
  fences_.take_unsealed_note();
  if (has_unsealed_frees()) {  // not all were sealed, or others came
    fences_.note_unsealed();
  }
}

bool DeviceReach::is_marked(const Work &work) noexcept {
  return std::any_of(std::begin(work.addresses), std::end(work.addresses), [this](CUdeviceptr address) {
    return address != 0 && sync_memops_.is_marked(address).value_or(false);
  });
}

DeviceReach::Noted::Noted(DeviceReach &reach, const Work &work, const Used &used) noexcept
    : contexts_(reach.contexts_), fences_(reach.fences_), used_(used) {
  try {
    reach.each_context(work, [&](const ContextRef &context) {
      enter(context);
      used_.each_abroad(*context, [&](int device) {
        reach.parts_.pools.granules.peer_may_access(device, context->device);
        reach.parts_.imports.peer_may_access(device, context->device);
      });
    });
  } catch (...) {  // out of memory of the host
    contexts_.note_anywhere();
  }
}

void DeviceReach::Noted::enter(const ContextRef &context) noexcept {
  if (used_.is_abroad(*context)) {
    used_.each_abroad(*context, [&](int device) { context->reach.enter(device); });
    inside_[count_++] = context;
  }
}

bool DeviceReach::Noted::leave(CUresult result) noexcept {
  left_ = true;
  if (count_ == 0) {
    return false;
  }
  const bool submitted =
      result != CUDA_ERROR_INVALID_VALUE || used_.devices[0] == Reach::kAllDevices;  // at least a part of it
  const std::uint64_t number = submitted ? contexts_.tick() : 0;
  for (int i = 0; i < count_; ++i) {
    used_.each_abroad(*inside_[i], [&](int device) { inside_[i]->reach.leave(device, number); });
  }
  return submitted;
}

void DeviceReach::Noted::fence() noexcept {
  for (int i = 0; i < count_; ++i) {
    fences_.end_reach(inside_[i]);
  }
}

}  // namespace ration::policy
