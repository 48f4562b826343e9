#include "unit/policy/fake_driver.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace ration::test {

FakeDriver::FakeDriver() {
  if (fake != nullptr) {
    throw std::logic_error("one driver at a time");
  }
  fake = this;
  current = nullptr;
  FakeTimeline::mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  fill_slots();
}

FakeDriver::~FakeDriver() {
  empty_slots();
  current = nullptr;
  fake = nullptr;
}

CUresult FakeDriver::enter(const char *function) {
  {
    const std::lock_guard lock(mutex_);
    ++calls_[function];
    const auto scripted = fails.find(function);
    if (scripted != fails.end()) {
      return scripted->second;
    }
  }
  return timeline.guard(function);
}

int FakeDriver::calls(const std::string &function) const {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(function);
  return found != calls_.end() ? found->second : 0;
}

int FakeDriver::calls() const {
  const std::lock_guard lock(mutex_);
  return std::accumulate(calls_.begin(), calls_.end(), 0,
                         [](int sum, const auto &function) { return sum + function.second; });
}

std::size_t FakeDriver::live_blocks() const {
  const std::lock_guard lock(mutex_);
  return blocks_.size();
}

bool FakeDriver::is_live(CUdeviceptr address) const {
  const std::lock_guard lock(mutex_);
  return blocks_.count(address) != 0;
}

std::vector<CUdeviceptr> FakeDriver::live_addresses() const {
  const std::lock_guard lock(mutex_);
  std::vector<CUdeviceptr> addresses;
  for (const auto &[address, block] : blocks_) {
    addresses.push_back(address);
  }
  return addresses;
}

std::vector<std::uint64_t> FakeDriver::asked() const {
  const std::lock_guard lock(mutex_);
  return asked_;
}

std::uint64_t FakeDriver::used(int device) const {
  const std::lock_guard lock(mutex_);
  return used_locked(device);
}

std::uint64_t FakeDriver::used_locked(int device) const {
  std::uint64_t bytes = taken_by_others + own_bytes[device];
  for (const auto &[context, of_device] : contexts_) {
    bytes += of_device == device ? context_bytes : 0;
  }
  for (const auto &[address, block] : blocks_) {
    bytes += device_of(block.context) == device ? block.bytes : 0;
  }
  return bytes;
}

int FakeDriver::device_of(CUcontext context) const {
  const auto found = contexts_.find(context);
  return found != contexts_.end() ? found->second : -1;
}

CUresult FakeDriver::current_device(CUdevice *device) const {
  const std::lock_guard lock(mutex_);
  if (device_of(current) < 0) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  *device = kFirstHandle + device_of(current);
  return CUDA_SUCCESS;
}

CUresult FakeDriver::memory(std::size_t *free_bytes, std::size_t *total_bytes) {
  const std::lock_guard lock(mutex_);
  if (device_of(current) < 0) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  *total_bytes = total;
  *free_bytes = total - used_locked(device_of(current));
  return CUDA_SUCCESS;
}

CUresult FakeDriver::allocate(CUdeviceptr *address, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  asked_.push_back(bytes);
  if (device_of(current) < 0) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  if (address == nullptr || bytes == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (bytes > total - used_locked(device_of(current)) || bytes > most_at_once) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const auto same = std::find_if(free_again_.rbegin(), free_again_.rend(),
                                 [bytes](const auto &range) { return range.second == bytes; });
  if (same != free_again_.rend()) {
    *address = same->first;
    free_again_.erase(std::next(same).base());
  } else {
    *address = next_address_;
    next_address_ += (bytes + 511) / 512 * 512;
  }
  blocks_[*address] = {bytes, timeline.primary_of(current)};
  return CUDA_SUCCESS;
}

CUresult FakeDriver::free(CUdeviceptr address) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(address);
    if (found == blocks_.end()) {
      return address == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    free_again_.emplace_back(address, found->second.bytes);
    blocks_.erase(found);
  }
  if (const auto hook = after_free) {  // a copy: the test may close it from inside
    hook(address);
  }
  return CUDA_SUCCESS;
}

CUresult FakeDriver::new_event(CUevent *event) {
  *event = timeline.new_event(current);
  return CUDA_SUCCESS;
}

CUresult FakeDriver::event_state(CUevent event) {
  if (const auto hook = on_query) {
    hook();
  }
  if (!timeline.has_event(event)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  for (const CUcontext context : {current, timeline.owner_of(event)}) {
    if (const auto error = broken.find(context); error != broken.end()) {
      return error->second;
    }
  }
  FakeTimeline::Point point;
  if (!timeline.point_of(event, point)) {
    if (!streams_wait || next_passed-- > 0) {
      return CUDA_SUCCESS;
    }
    if (keeps_waiting || ++looks_ % kPolled != 0) {
      return CUDA_ERROR_NOT_READY;
    }
    ++polls;
    if (const auto hook = during_wait) {
      hook();
    }
    streams_wait = false;
    return timeline.has_event(event) ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
  }
  if (current == nullptr) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  return timeline.is_behind(point) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult FakeDriver::wait_for(CUevent event) {
  FakeTimeline::Point point;
  if (timeline.point_of(event, point)) {
    timeline.finish(point);
  } else {
    streams_wait = false;
  }
  return event_state(event);
}

CUresult FakeDriver::destroy_event(CUevent event) {
  return timeline.destroy_event(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult FakeDriver::record_context(CUcontext context, CUevent event) {
  {
    const std::lock_guard lock(mutex_);
    if (device_of(context) < 0) {
      return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
  }
  for (const CUcontext each : {current, context}) {
    if (const auto error = broken.find(each); error != broken.end()) {
      return error->second;
    }
  }
  const CUresult result = timeline.record(context, event);
  if (const auto hook = after_record) {
    hook();
  }
  return result;
}

CUresult FakeDriver::synchronise() {
  {
    const std::lock_guard lock(mutex_);
    if (device_of(current) < 0) {
      return CUDA_ERROR_INVALID_CONTEXT;
    }
  }
  if (const auto error = broken.find(current); error != broken.end()) {
    return error->second;
  }
  const FakeTimeline::Point before = timeline.submitted_to(current);
  if (const auto hook = during_synchronise) {
    hook();
  }
  const CUresult result = timeline.may_synchronise(current);
  if (result == CUDA_SUCCESS) {
    timeline.finish(before);
  }
  return result;
}

}  // namespace ration::test
