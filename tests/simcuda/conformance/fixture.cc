#include "tests/simcuda/conformance/fixture.h"

#include <dlfcn.h>

#include <numeric>

namespace simcuda::conformance {
namespace {

template <class Function>
void find(Function &function, const char *name) {
  function = reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
}

}  // namespace

void start_driver() {
  static const CUresult once = cuInit(0);
  REQUIRE(once == CUDA_SUCCESS);
}

CurrentContext::CurrentContext(CUdevice device) {
  start_driver();
  REQUIRE(cuCtxCreate(&context_, nullptr, 0, device) == CUDA_SUCCESS);
}

CurrentContext::~CurrentContext() {
  cuCtxDestroy(context_);
}

CUdeviceptr device_memory(std::size_t bytes) {
  CUdeviceptr address = 0;
  REQUIRE(cuMemAlloc(&address, bytes) == CUDA_SUCCESS);
  return address;
}

CUstream new_stream(unsigned flags) {
  CUstream stream = nullptr;
  REQUIRE(cuStreamCreate(&stream, flags) == CUDA_SUCCESS);
  return stream;
}

CUevent new_event(unsigned flags) {
  CUevent event = nullptr;
  REQUIRE(cuEventCreate(&event, flags) == CUDA_SUCCESS);
  return event;
}

std::size_t free_bytes() {
  std::size_t free = 0;
  REQUIRE(cuMemGetInfo(&free, nullptr) == CUDA_SUCCESS);
  return free;
}

bool supports(CUdevice_attribute attribute) {
  int supported = 0;
  REQUIRE(cuDeviceGetAttribute(&supported, attribute, 0) == CUDA_SUCCESS);
  return supported != 0;
}

std::vector<unsigned char> counting(std::size_t bytes, unsigned char first) {
  std::vector<unsigned char> values(bytes);
  std::iota(values.begin(), values.end(), first);
  return values;
}

std::vector<unsigned char> read_back(CUdeviceptr address, std::size_t bytes) {
  std::vector<unsigned char> values(bytes);
  REQUIRE(cuMemcpyDtoH(values.data(), address, bytes) == CUDA_SUCCESS);
  return values;
}

bool runs_through(CUstream stream) {
  constexpr std::size_t kBytes = 64;
  const CUdeviceptr device = device_memory(kBytes);
  std::vector<unsigned char> seen(kBytes);
  for (const unsigned char value : {std::uint8_t{1}, std::uint8_t{2}}) {
    REQUIRE(cuMemsetD8Async(device, value, kBytes, stream) == CUDA_SUCCESS);
    REQUIRE(cuMemcpyDtoHAsync(seen.data(), device, kBytes, stream) == CUDA_SUCCESS);
    REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
    if (seen != std::vector<unsigned char>(kBytes, value)) return false;
  }
  return true;
}

Gate::~Gate() {
  open();
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return inside_ == 0; });
}

void Gate::hold(CUstream stream) {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    ++inside_;
  }
  REQUIRE(cuLaunchHostFunc(stream, &Gate::wait, this) == CUDA_SUCCESS);
}

void Gate::await() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return reached_; });
}

void Gate::open() {
  const std::lock_guard<std::mutex> guard(mutex_);
  open_ = true;
  changed_.notify_all();
}

bool Gate::is_open() {
  const std::lock_guard<std::mutex> guard(mutex_);
  return open_;
}

void Gate::wait(void *gate) {
  auto *self = static_cast<Gate *>(gate);
  std::unique_lock<std::mutex> lock(self->mutex_);
  self->reached_ = true;
  self->changed_.notify_all();
  self->changed_.wait(lock, [self] { return self->open_; });
  --self->inside_;
  self->changed_.notify_all();
}

const Simulator &simulator() {
  static const Simulator once = [] {
    Simulator found = {};
    find(found.calls, "simcuda_calls");
    find(found.calls_reset, "simcuda_calls_reset");
    find(found.costs_ns, "simcuda_costs_ns");
    find(found.exports, "simcuda_exports");
    find(found.register_kernel, "simcuda_register_kernel");
    find(found.register_global, "simcuda_register_global");
    find(found.host_view, "simcuda_host_view");
    find(found.device_books, "simcuda_device_books");
    return found;
  }();
  return once;
}

}  // namespace simcuda::conformance
