// Unmapping under running work: what touches the addresses afterwards is a fault of its context.
#include <functional>

#include "tests/simcuda/conformance/vmm.h"

namespace simcuda::conformance {
namespace {

constexpr CUresult kFault = CUDA_ERROR_ILLEGAL_ADDRESS;

// Three granules, and a stream that waits before `touch`; unmaps the second one meanwhile. The answer of the wait.
CUresult unmapped_under(const std::function<void(CUdeviceptr, CUstream)> &touch) {
  const CUdeviceptr range = reserved(3 * kGranule);
  const CUmemGenericAllocationHandle handle = physical(kGranule);
  for (std::size_t i = 0; i < 3; ++i) {
    REQUIRE(cuMemMap(range + i * kGranule, kGranule, 0, handle, 0) == CUDA_SUCCESS);
  }
  REQUIRE(allow(range, 3 * kGranule, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) == CUDA_SUCCESS);
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  Gate gate;
  gate.hold(stream);
  touch(range, stream);
  REQUIRE(cuMemUnmap(range + kGranule, kGranule) == CUDA_SUCCESS);
  gate.open();
  const CUresult result = cuStreamSynchronize(stream);
  for (const std::size_t i : {std::size_t{0}, std::size_t{2}})
    REQUIRE(cuMemUnmap(range + i * kGranule, kGranule) == CUDA_SUCCESS);
  REQUIRE(cuMemRelease(handle) == CUDA_SUCCESS);
  REQUIRE(cuMemAddressFree(range, 3 * kGranule) == CUDA_SUCCESS);
  return result;
}

TEST_CASE("a fill of a range that was unmapped under it is a fault") {
  const CurrentContext context;
  CHECK(unmapped_under([](CUdeviceptr range, CUstream stream) {
          REQUIRE(cuMemsetD8Async(range, 1, 3 * kGranule, stream) == CUDA_SUCCESS);
        }) == kFault);
}

// One case each: H200, driver 580.159: no context can be made after a fault (700), in the whole process.
TEST_CASE("a single byte that is written there is one") {
  const CurrentContext context;
  CHECK(unmapped_under([](CUdeviceptr range, CUstream stream) {
          REQUIRE(cuMemcpyDtoDAsync(range + kGranule + 12345, range + 1, 1, stream) == CUDA_SUCCESS);
        }) == kFault);
}

TEST_CASE("a single byte that is read there is one") {
  const CurrentContext context;
  CHECK(unmapped_under([](CUdeviceptr range, CUstream stream) {
          REQUIRE(cuMemcpyDtoDAsync(range + 1, range + kGranule + 12345, 1, stream) == CUDA_SUCCESS);
        }) == kFault);
}

TEST_CASE("work beside it is none") {
  const CurrentContext context;
  CHECK(unmapped_under([](CUdeviceptr range, CUstream stream) {
          REQUIRE(cuMemsetD8Async(range, 1, kGranule, stream) == CUDA_SUCCESS);
          REQUIRE(cuMemsetD8Async(range + 2 * kGranule, 1, kGranule, stream) == CUDA_SUCCESS);
        }) == CUDA_SUCCESS);
  CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
}

TEST_CASE("a kernel that touches it is one, and its context never recovers") {
  if (!simulator()) return;
  const auto touch = [](const simcuda_launch *launch) {
    *static_cast<unsigned char *>(simulator().host_view(*static_cast<CUdeviceptr *>(launch->params[0]))) = 1;
  };
  const std::size_t bytes = sizeof(CUdeviceptr);
  REQUIRE(simulator().register_kernel("touch", touch, &bytes, 1) == 0);
  CUcontext broken = nullptr, other = nullptr;
  start_driver();
  REQUIRE(cuCtxCreate(&other, nullptr, 0, 0) == CUDA_SUCCESS);
  REQUIRE(cuCtxCreate(&broken, nullptr, 0, 0) == CUDA_SUCCESS);
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  REQUIRE(cuModuleLoadData(&module, "image") == CUDA_SUCCESS);
  REQUIRE(cuModuleGetFunction(&function, module, "touch") == CUDA_SUCCESS);
  CHECK(unmapped_under([function](CUdeviceptr range, CUstream stream) {
          CUdeviceptr place = range + 2 * kGranule - 1;
          void *params[] = {&place};
          REQUIRE(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr) == CUDA_SUCCESS);
        }) == kFault);
  CUdeviceptr block = 0;
  CHECK(cuMemAlloc(&block, 512) == kFault);
  CHECK(cuCtxSynchronize() == kFault);
  CHECK(cuCtxSetCurrent(other) == CUDA_SUCCESS);
  CHECK(cuMemAlloc(&block, 512) == CUDA_SUCCESS);
  CHECK(cuCtxDestroy(broken) == CUDA_SUCCESS);
  CHECK(cuCtxDestroy(other) == CUDA_SUCCESS);
  CHECK(cuCtxSetCurrent(nullptr) == CUDA_SUCCESS);  // it was on the stack twice
}

TEST_CASE("work goes to what was mapped there since, without a fault") {
  const CurrentContext context;
  const CUdeviceptr range = reserved(kGranule);
  const CUmemGenericAllocationHandle first = physical(kGranule), second = physical(kGranule);
  REQUIRE(cuMemMap(range, kGranule, 0, first, 0) == CUDA_SUCCESS);
  REQUIRE(allow(range, kGranule, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) == CUDA_SUCCESS);
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  Gate gate;
  gate.hold(stream);
  REQUIRE(cuMemsetD8Async(range, 7, kGranule, stream) == CUDA_SUCCESS);
  REQUIRE(cuMemUnmap(range, kGranule) == CUDA_SUCCESS);
  REQUIRE(cuMemMap(range, kGranule, 0, second, 0) == CUDA_SUCCESS);
  REQUIRE(allow(range, kGranule, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) == CUDA_SUCCESS);
  gate.open();
  CHECK(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(read_back(range + kGranule - 1, 1) == std::vector<unsigned char>{7});
  REQUIRE(cuMemUnmap(range, kGranule) == CUDA_SUCCESS);
  for (const auto handle : {first, second}) REQUIRE(cuMemRelease(handle) == CUDA_SUCCESS);
  REQUIRE(cuMemAddressFree(range, kGranule) == CUDA_SUCCESS);
}

}  // namespace
}  // namespace simcuda::conformance
