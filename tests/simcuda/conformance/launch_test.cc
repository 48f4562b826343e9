// Kernels are host functions that a test registers; a real driver has no such functions.
#include <cstring>

#include "tests/simcuda/conformance/fixture.h"

namespace simcuda::conformance {
namespace {

// add(unsigned *numbers, unsigned count, unsigned char addend): one launch does the work of all its threads.
void add(const simcuda_launch *launch) {
  const auto address = *static_cast<CUdeviceptr *>(launch->params[0]);
  const auto count = *static_cast<unsigned *>(launch->params[1]);
  const auto addend = *static_cast<unsigned char *>(launch->params[2]);
  auto *numbers = static_cast<unsigned *>(simulator().host_view(address));
  const unsigned threads = launch->grid[0] * launch->block[0];
  for (unsigned i = 0; i < count && i < threads; ++i) numbers[i] += addend;
}

void register_add() {
  const std::size_t sizes[] = {8, 4, 1};
  static const int once = simulator().register_kernel("add", add, sizes, 3);
  REQUIRE(once == 0);
}

std::vector<unsigned> numbers_at(CUdeviceptr address, std::size_t count) {
  std::vector<unsigned> numbers(count);
  REQUIRE(cuMemcpyDtoH(numbers.data(), address, count * sizeof(unsigned)) == CUDA_SUCCESS);
  return numbers;
}

TEST_CASE("a kernel runs in stream order on copies of its arguments") {
  if (!simulator()) return;
  register_add();
  const CurrentContext context;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  REQUIRE(cuModuleLoadData(&module, kImage) == CUDA_SUCCESS);
  REQUIRE(cuModuleGetFunction(&function, module, "add") == CUDA_SUCCESS);
  CUdeviceptr numbers = device_memory(1000 * sizeof(unsigned));
  const CUdeviceptr kept = numbers;
  unsigned count = 1000;
  unsigned char addend = 5;
  void *params[] = {&numbers, &count, &addend};
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  Gate gate;
  REQUIRE(cuMemsetD32Async(numbers, 1, 1000, stream) == CUDA_SUCCESS);
  gate.hold(stream);
  REQUIRE(cuLaunchKernel(function, 10, 1, 1, 128, 1, 1, 0, stream, params, nullptr) == CUDA_SUCCESS);
  numbers = 0;
  count = 0;
  addend = 99;
  gate.open();
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(numbers_at(kept, 1000) == std::vector<unsigned>(1000, 6));
}

TEST_CASE("arguments may come packed in one buffer, and launches through a configuration") {
  if (!simulator()) return;
  register_add();
  const CurrentContext context;
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  REQUIRE(cuLibraryLoadData(&library, kImage, nullptr, nullptr, 0, nullptr, nullptr, 0) == CUDA_SUCCESS);
  REQUIRE(cuLibraryGetKernel(&kernel, library, "add") == CUDA_SUCCESS);
  const auto function = reinterpret_cast<CUfunction>(kernel);  // as the runtime passes it
  CUdeviceptr numbers = device_memory(64);
  REQUIRE(cuMemsetD32(numbers, 0, 16) == CUDA_SUCCESS);
  unsigned char packed[16] = {};
  const unsigned count = 16;
  std::memcpy(packed, &numbers, 8);
  std::memcpy(packed + 8, &count, 4);
  packed[12] = 3;
  std::size_t bytes = 13;
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  REQUIRE(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, extra) == CUDA_SUCCESS);
  CUlaunchConfig config = {};
  config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.blockDimX = 8;
  REQUIRE(cuLaunchKernelEx(&config, function, nullptr, extra) == CUDA_SUCCESS);
  auto expected = std::vector<unsigned>(16, 3);
  std::fill_n(expected.begin(), 8, 6u);
  CHECK(numbers_at(numbers, 16) == expected);
  bytes = 12;
  CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, extra) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuLibraryUnload(library) == CUDA_SUCCESS);
  CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, extra) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("a launch without blocks, with too many threads or of an unknown function is refused") {
  if (!simulator()) return;
  register_add();
  const CurrentContext context;
  CUmodule module = nullptr;
  CUfunction function = nullptr, none = nullptr;
  REQUIRE(cuModuleLoadData(&module, kImage) == CUDA_SUCCESS);
  REQUIRE(cuModuleGetFunction(&function, module, "add") == CUDA_SUCCESS);
  CHECK(cuModuleGetFunction(&none, module, "no such kernel") == CUDA_ERROR_NOT_FOUND);
  CHECK(cuLaunchKernel(function, 0, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuLaunchKernel(function, 1, 1, 1, 1024, 2, 1, 0, nullptr, nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuLaunchKernel(none, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) == CUDA_ERROR_INVALID_HANDLE);
  int threads = 0;
  CHECK(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function) == CUDA_SUCCESS);
  CHECK(threads == 1024);
  int blocks = 0;
  CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 256, 0) == CUDA_SUCCESS);
  CHECK(blocks == 8);
}

TEST_CASE("a device variable has one address per module, costs memory and is freed with the module") {
  if (!simulator()) return;
  static const int once = simulator().register_global("table", 4 * kMiB);
  REQUIRE(once == 0);
  const CurrentContext context;
  const std::size_t before = free_bytes();
  CUmodule module = nullptr;
  CUdeviceptr first = 0, second = 0;
  std::size_t bytes = 0;
  REQUIRE(cuModuleLoadData(&module, kImage) == CUDA_SUCCESS);
  REQUIRE(cuModuleGetGlobal(&first, &bytes, module, "table") == CUDA_SUCCESS);
  REQUIRE(cuModuleGetGlobal(&second, nullptr, module, "table") == CUDA_SUCCESS);
  CHECK(first == second);
  CHECK(bytes == 4 * kMiB);
  CHECK(before - free_bytes() >= 4 * kMiB);  // and what other tests have registered
  CHECK(cuModuleGetGlobal(&first, &bytes, module, "no such variable") == CUDA_ERROR_NOT_FOUND);
  CHECK(cuModuleUnload(module) == CUDA_SUCCESS);
  CHECK(free_bytes() == before);
  CHECK(cuModuleUnload(module) == CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace
}  // namespace simcuda::conformance
