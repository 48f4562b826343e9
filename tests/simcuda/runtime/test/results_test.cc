// Results that a program gets from the small runtime, on the simulated machine of two devices of 8 GiB. Built against
// each flavour; needs LD_LIBRARY_PATH and the SIMCUDA_ settings that ctest sets.
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "catch.h"
#include "simcuda/simcuda.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kGiB = size_t{1} << 30;

std::vector<unsigned char> counting(size_t bytes) {
  std::vector<unsigned char> values(bytes);
  std::iota(values.begin(), values.end(), static_cast<unsigned char>(1));
  return values;
}

// A block of device memory that is freed however the test ends.
class Block {
 public:
  explicit Block(size_t bytes) { REQUIRE(cudaMalloc(&pointer_, bytes) == cudaSuccess); }
  ~Block() { cudaFree(pointer_); }
  Block(const Block &) = delete;
  Block &operator=(const Block &) = delete;
  void *get() const { return pointer_; }

 private:
  void *pointer_ = nullptr;
};

// Functions of the driver and of the simulator, from the library that the runtime opened.
template <typename Function>
Function from_driver(const char *name) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(driver != nullptr);
  void *found = dlsym(driver, name);
  dlclose(driver);
  REQUIRE(found != nullptr);
  return reinterpret_cast<Function>(found);
}

unsigned long long calls(const char *symbol) {
  return from_driver<decltype(&::simcuda_calls)>("simcuda_calls")(symbol);
}

decltype(&::simcuda_host_view) host_view = nullptr;

// Runs on a simulator thread, where Catch must not be called.
void add_one(const simcuda_launch *launch) {
  auto *bytes = static_cast<unsigned char *>(host_view(*static_cast<CUdeviceptr *>(launch->params[0])));
  const unsigned count = launch->grid[0] * launch->block[0];
  for (unsigned i = 0; i < count; ++i) bytes[i] = static_cast<unsigned char>(bytes[i] + 1);
}

// Stands for the host stub that nvcc generates for a __global__ function: an address to launch by.
void add_one_stub() {}

}  // namespace

TEST_CASE("devices are listed with their names and memory") {
  int count = 0;
  REQUIRE(cudaGetDeviceCount(&count) == cudaSuccess);
  CHECK(count == 2);
  cudaDeviceProp properties = {};
  REQUIRE(cudaGetDeviceProperties(&properties, 1) == cudaSuccess);
  CHECK(properties.totalGlobalMem == 8 * kGiB);
  CHECK(properties.name[0] != '\0');
  CHECK(properties.warpSize == 32);
  CHECK(cudaGetDeviceProperties(&properties, 2) == cudaErrorInvalidDevice);
  CHECK(cudaSetDevice(-1) == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("a zero-byte allocation bypasses the driver, and a refused one leaves a null pointer") {
  REQUIRE(cudaFree(nullptr) == cudaSuccess);
  const unsigned long long before = calls("cuMemAlloc_v2");
  void *pointer = &pointer;
  CHECK(cudaMalloc(&pointer, 0) == cudaSuccess);
  CHECK(pointer == nullptr);
  CHECK(calls("cuMemAlloc_v2") == before);
  pointer = &pointer;
  CHECK(cudaMalloc(&pointer, 9 * kGiB) == cudaErrorMemoryAllocation);
  CHECK(pointer == nullptr);
  pointer = &pointer;
  CHECK(cudaMallocAsync(&pointer, 9 * kGiB, nullptr) == cudaErrorMemoryAllocation);
  CHECK(pointer == nullptr);
  CHECK(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  int not_allocated = 0;
  CHECK(cudaFree(&not_allocated) == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
}

TEST_CASE("an allocation reduces free memory, and a free restores it") {
  size_t free_before = 0, free_between = 0, free_after = 0, total = 0;
  REQUIRE(cudaMemGetInfo(&free_before, &total) == cudaSuccess);
  CHECK(total == 8 * kGiB);
  {
    const Block block(64 * kMiB);
    REQUIRE(cudaMemGetInfo(&free_between, &total) == cudaSuccess);
  }
  REQUIRE(cudaMemGetInfo(&free_after, &total) == cudaSuccess);
  CHECK(free_before - free_between == 64 * kMiB);
  CHECK(free_after == free_before);
}

TEST_CASE("copies in every direction move the bytes") {
  const std::vector<unsigned char> sent = counting(100'000);
  std::vector<unsigned char> received(sent.size()), copied(sent.size());
  const Block first(sent.size()), second(sent.size());
  REQUIRE(cudaMemcpy(first.get(), sent.data(), sent.size(), cudaMemcpyHostToDevice) == cudaSuccess);
  REQUIRE(cudaMemcpy(second.get(), first.get(), sent.size(), cudaMemcpyDeviceToDevice) == cudaSuccess);
  REQUIRE(cudaMemcpy(received.data(), second.get(), sent.size(), cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(received == sent);
  REQUIRE(cudaMemcpy(copied.data(), received.data(), sent.size(), cudaMemcpyHostToHost) == cudaSuccess);
  CHECK(copied == sent);
  REQUIRE(cudaMemset(first.get(), 7, sent.size()) == cudaSuccess);
  REQUIRE(cudaMemcpy(received.data(), first.get(), sent.size(), cudaMemcpyDefault) == cudaSuccess);
  CHECK(received == std::vector<unsigned char>(sent.size(), 7));
  CHECK(cudaMemcpy(received.data(), first.get(), 1, static_cast<cudaMemcpyKind>(5)) == cudaErrorInvalidMemcpyDirection);
  CHECK(cudaGetLastError() == cudaErrorInvalidMemcpyDirection);
}

TEST_CASE("work of one stream runs in order, and another stream waits for its event") {
  const std::vector<unsigned char> sent = counting(50'000);
  std::vector<unsigned char> received(sent.size());
  const Block first(sent.size()), second(sent.size());
  cudaStream_t writer = nullptr, reader = nullptr;
  cudaEvent_t written = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&writer, cudaStreamNonBlocking) == cudaSuccess);
  REQUIRE(cudaStreamCreateWithFlags(&reader, cudaStreamNonBlocking) == cudaSuccess);
  REQUIRE(cudaEventCreateWithFlags(&written, cudaEventDisableTiming) == cudaSuccess);
  REQUIRE(cudaMemsetAsync(first.get(), 9, sent.size(), writer) == cudaSuccess);
  REQUIRE(cudaMemcpyAsync(first.get(), sent.data(), sent.size(), cudaMemcpyHostToDevice, writer) == cudaSuccess);
  REQUIRE(cudaEventRecord(written, writer) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(reader, written) == cudaSuccess);
  REQUIRE(cudaMemcpyAsync(second.get(), first.get(), sent.size(), cudaMemcpyDeviceToDevice, reader) == cudaSuccess);
  REQUIRE(cudaMemcpyAsync(received.data(), second.get(), sent.size(), cudaMemcpyDeviceToHost, reader) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(reader) == cudaSuccess);
  CHECK(received == sent);
  CHECK(cudaEventQuery(written) == cudaSuccess);
  CHECK(cudaEventDestroy(written) == cudaSuccess);
  CHECK(cudaStreamDestroy(reader) == cudaSuccess);
  CHECK(cudaStreamDestroy(writer) == cudaSuccess);
}

TEST_CASE("a pitched allocation separates its rows") {
  void *pointer = nullptr;
  size_t pitch = 0;
  REQUIRE(cudaMallocPitch(&pointer, &pitch, 100, 3) == cudaSuccess);
  CHECK(pitch >= 100);
  REQUIRE(cudaMemset(pointer, 1, pitch * 3) == cudaSuccess);
  REQUIRE(cudaMemset2D(pointer, pitch, 2, 100, 3) == cudaSuccess);
  std::vector<unsigned char> rows(pitch * 3);
  REQUIRE(cudaMemcpy(rows.data(), pointer, rows.size(), cudaMemcpyDeviceToHost) == cudaSuccess);
  for (size_t row = 0; row < 3; ++row) {
    CHECK(rows[row * pitch] == 2);
    CHECK(rows[row * pitch + 99] == 2);
    if (pitch > 100) CHECK(rows[row * pitch + 100] == 1);
  }
  CHECK(cudaFree(pointer) == cudaSuccess);
}

TEST_CASE("pointer attributes report the kind of memory") {
  const Block block(kMiB);
  cudaPointerAttributes attributes = {};
  REQUIRE(cudaPointerGetAttributes(&attributes, block.get()) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeDevice);
  CHECK(attributes.device == 0);
  CHECK(attributes.devicePointer == block.get());
  int on_the_stack = 0;
  REQUIRE(cudaPointerGetAttributes(&attributes, &on_the_stack) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
  CHECK(attributes.hostPointer == &on_the_stack);
  void *pinned = nullptr;
  REQUIRE(cudaMallocHost(&pinned, kMiB) == cudaSuccess);
  REQUIRE(cudaPointerGetAttributes(&attributes, pinned) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeHost);
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
}

TEST_CASE("each thread has its own device") {
  int device_of_other = -1;
  cudaError_t set = cudaErrorUnknown;
  size_t free_before = 0, free_after = 0, total = 0;
  REQUIRE(cudaMemGetInfo(&free_before, &total) == cudaSuccess);
  std::thread other([&] {
    set = cudaSetDevice(1);
    cudaGetDevice(&device_of_other);
  });
  other.join();
  int device = -1;
  REQUIRE(cudaGetDevice(&device) == cudaSuccess);
  CHECK(set == cudaSuccess);
  CHECK(device_of_other == 1);
  CHECK(device == 0);
  REQUIRE(cudaMemGetInfo(&free_after, &total) == cudaSuccess);
  CHECK(free_after == free_before);
}

TEST_CASE("a context that the program made current through the driver is used") {
  REQUIRE(cudaFree(nullptr) == cudaSuccess);
  const auto create = from_driver<decltype(&::cuCtxCreate_v4)>("cuCtxCreate_v4");
  const auto destroy = from_driver<decltype(&::cuCtxDestroy_v2)>("cuCtxDestroy_v2");
  const auto attribute = from_driver<decltype(&::cuPointerGetAttribute)>("cuPointerGetAttribute");
  CUresult created = CUDA_ERROR_UNKNOWN, queried = CUDA_ERROR_UNKNOWN;
  cudaError_t allocated = cudaErrorUnknown;
  CUcontext own = nullptr, owner = nullptr;
  int device = -1;
  std::thread other([&] {
    created = create(&own, nullptr, 0, 1);
    void *pointer = nullptr;
    allocated = cudaMalloc(&pointer, kMiB);
    queried = attribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, reinterpret_cast<CUdeviceptr>(pointer));
    cudaGetDevice(&device);
    destroy(own);
  });
  other.join();
  REQUIRE(created == CUDA_SUCCESS);
  REQUIRE(allocated == cudaSuccess);
  REQUIRE(queried == CUDA_SUCCESS);
  CHECK(owner == own);
  CHECK(device == 1);
}

TEST_CASE("a reset frees the allocations, and the device works again") {
  size_t free_before = 0, free_after = 0, total = 0;
  REQUIRE(cudaMemGetInfo(&free_before, &total) == cudaSuccess);
  void *pointer = nullptr;
  REQUIRE(cudaMalloc(&pointer, 256 * kMiB) == cudaSuccess);
  const unsigned long long plain = calls("cuDevicePrimaryCtxReset");
  REQUIRE(cudaDeviceReset() == cudaSuccess);
  CHECK(calls("cuDevicePrimaryCtxReset") == plain + 1);
  CHECK(calls("cuDevicePrimaryCtxReset_v2") == 0);
  REQUIRE(cudaMemGetInfo(&free_after, &total) == cudaSuccess);
  CHECK(free_after == free_before);
  const Block block(kMiB);
  REQUIRE(cudaMemset(block.get(), 0, kMiB) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
}

TEST_CASE("a kernel is launched by its host address") {
  REQUIRE(cudaFree(nullptr) == cudaSuccess);
  host_view = from_driver<decltype(host_view)>("simcuda_host_view");
  const size_t parameter_bytes[] = {sizeof(CUdeviceptr)};
  REQUIRE(from_driver<decltype(&::simcuda_register_kernel)>("simcuda_register_kernel")("add_one", add_one,
                                                                                       parameter_bytes, 1) == 0);
  const auto *stub = reinterpret_cast<const void *>(&add_one_stub);
  CHECK(cudaLaunchKernel(stub, dim3(1), dim3(1), nullptr, 0, nullptr) == cudaErrorInvalidDeviceFunction);
  CHECK(cudaGetLastError() == cudaErrorInvalidDeviceFunction);
  REQUIRE(simcudart_register_kernel(stub, "add_one") == cudaSuccess);
  const Block block(64);
  REQUIRE(cudaMemset(block.get(), 4, 64) == cudaSuccess);
  void *pointer = block.get();
  void *arguments[] = {&pointer};
  REQUIRE(cudaLaunchKernel(stub, dim3(2), dim3(16), arguments, 0, nullptr) == cudaSuccess);
  std::vector<unsigned char> received(64);
  REQUIRE(cudaMemcpy(received.data(), block.get(), 64, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(received[31] == 5);
  CHECK(received[32] == 4);
}

TEST_CASE("the driver's functions can be looked up by name and version") {
  void *function = nullptr;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
  REQUIRE(cudaGetDriverEntryPointByVersion("cuMemAlloc", &function, 12000, cudaEnableDefault, &status) == cudaSuccess);
  CHECK(status == cudaDriverEntryPointSuccess);
  CHECK(function == reinterpret_cast<void *>(from_driver<decltype(&::cuMemAlloc_v2)>("cuMemAlloc_v2")));
  CHECK(cudaGetDriverEntryPointByVersion("cuNoSuch", &function, 12000, cudaEnableDefault, &status) == cudaSuccess);
  CHECK(status == cudaDriverEntryPointSymbolNotFound);
  CHECK(function == nullptr);
}

TEST_CASE("a function that the driver lacks fails as requiring a newer driver") {
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  int priority = 77;
  CHECK(cudaStreamGetPriority(stream, &priority) == cudaErrorCallRequiresNewerDriver);  // see SIMCUDA_MISSING
  CHECK(priority == 77);
  CHECK(cudaGetLastError() == cudaErrorCallRequiresNewerDriver);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
}

TEST_CASE("codes have names and texts") {
  CHECK(std::string(cudaGetErrorName(cudaErrorMemoryAllocation)) == "cudaErrorMemoryAllocation");
  CHECK(std::string(cudaGetErrorString(cudaErrorMemoryAllocation)) == "out of memory");
  CHECK(std::string(cudaGetErrorString(static_cast<cudaError_t>(998))) == "unrecognized error code");
}
