#include "unit/policy/fake_driver.h"

#include <algorithm>
#include <stdexcept>

namespace ration::test {

FakeDriver::FakeDriver() {
  if (fake != nullptr) {
    throw std::logic_error("one driver at a time");
  }
  fake = this;
  current = nullptr;
  fill_slots();
}

FakeDriver::~FakeDriver() {
  empty_slots();
  current = nullptr;
  fake = nullptr;
}

CUresult FakeDriver::enter(const char *function) {
  const std::lock_guard lock(mutex_);
  ++calls_[function];
  const auto scripted = fails.find(function);
  return scripted != fails.end() ? scripted->second : CUDA_SUCCESS;
}

int FakeDriver::calls(const std::string &function) const {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(function);
  return found != calls_.end() ? found->second : 0;
}

std::size_t FakeDriver::live_blocks() const {
  const std::lock_guard lock(mutex_);
  return blocks_.size();
}

bool FakeDriver::is_live(CUdeviceptr address) const {
  const std::lock_guard lock(mutex_);
  return blocks_.count(address) != 0;
}

std::size_t FakeDriver::live_events() const {
  const std::lock_guard lock(mutex_);
  return events_.size();
}

std::uint64_t FakeDriver::used(int device) const {
  const std::lock_guard lock(mutex_);
  return used_locked(device);
}

std::uint64_t FakeDriver::used_locked(int device) const {
  std::uint64_t bytes = taken_by_others;
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
  if (device_of(current) < 0) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  if (address == nullptr || bytes == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (bytes > total - used_locked(device_of(current))) {
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
  blocks_[*address] = {bytes, current};
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
  if (const auto door = after_free) {  // a copy: the test may close it from inside
    door(address);
  }
  return CUDA_SUCCESS;
}

CUresult FakeDriver::create(CUcontext *context, int device) {
  const std::lock_guard lock(mutex_);
  if (free_handles_.empty()) {
    free_handles_.push_back(reinterpret_cast<CUcontext>(next_handle_ += 16));
  }
  *context = free_handles_.back();
  free_handles_.pop_back();
  contexts_[*context] = device;
  current = *context;
  return CUDA_SUCCESS;
}

void FakeDriver::end_context(CUcontext context) {
  for (auto each = blocks_.begin(); each != blocks_.end();) {
    if (each->second.context == context) {
      free_again_.emplace_back(each->first, each->second.bytes);
      each = blocks_.erase(each);
    } else {
      ++each;
    }
  }
  contexts_.erase(context);
  free_handles_.push_back(context);
}

CUresult FakeDriver::destroy(CUcontext context) {
  if (const auto door = during_destroy) {
    door(context);
  }
  {
    const std::lock_guard lock(mutex_);
    if (device_of(context) < 0) {
      return CUDA_ERROR_INVALID_CONTEXT;
    }
    end_context(context);
  }
  if (const auto door = after_destroy) {
    door();
  }
  return CUDA_SUCCESS;
}

CUresult FakeDriver::retain_primary(CUcontext *context, int device) {
  const std::lock_guard lock(mutex_);
  CUcontext &primary = primary_[device];
  if (primary == nullptr) {
    primary = reinterpret_cast<CUcontext>(next_handle_ += 16);
  }
  contexts_[primary] = device;
  ++retained_[device];
  *context = primary;
  return CUDA_SUCCESS;
}

CUresult FakeDriver::release_primary(int device) {
  if (const auto door = during_destroy) {
    door(primary_[device]);
  }
  const std::lock_guard lock(mutex_);
  if (retained_[device] == 0) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  if (--retained_[device] == 0) {
    end_context(primary_[device]);
    primary_[device] = nullptr;
  }
  return CUDA_SUCCESS;
}

CUresult FakeDriver::reset_primary(int device) {
  const std::lock_guard lock(mutex_);
  if (primary_[device] != nullptr) {
    end_context(primary_[device]);
    primary_[device] = nullptr;
    retained_[device] = 0;
  }
  return CUDA_SUCCESS;
}

bool FakeDriver::primary_is_active(int device) const {
  const std::lock_guard lock(mutex_);
  return primary_[device] != nullptr;
}

CUresult FakeDriver::new_event(CUevent *event) {
  const std::lock_guard lock(mutex_);
  *event = reinterpret_cast<CUevent>(next_handle_ += 16);
  events_.insert(*event);
  return CUDA_SUCCESS;
}

CUresult FakeDriver::event_state(CUevent event) {
  const std::lock_guard lock(mutex_);
  if (events_.count(event) == 0) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  return streams_wait && next_passed-- <= 0 ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult FakeDriver::wait_for(CUevent event) {
  streams_wait = false;
  return event_state(event);
}

CUresult FakeDriver::destroy_event(CUevent event) {
  const std::lock_guard lock(mutex_);
  return events_.erase(event) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace ration::test
