// Contexts: cost, owned resources, and each thread's current one.
#define __CUDA_API_VERSION_INTERNAL  // the older versions have tests, too: exports keep their own names
#include <cuda.h>

#include <thread>

#include "tests/simcuda/conformance/fixture.h"

namespace simcuda::conformance {
namespace {

std::size_t free_here() {
  std::size_t free = 0;
  REQUIRE(cuMemGetInfo_v2(&free, nullptr) == CUDA_SUCCESS);
  return free;
}

CUcontext current() {
  CUcontext context = nullptr;
  REQUIRE(cuCtxGetCurrent(&context) == CUDA_SUCCESS);
  return context;
}

TEST_CASE("a context costs device memory and releases all its memory when it is destroyed", "[alone]") {
  const CurrentContext watching;
  const std::size_t before = free_here();
  CUcontext context = nullptr;
  REQUIRE(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
  CHECK(free_here() < before);
  device_memory(8 * kMiB);
  device_memory(1);
  REQUIRE(cuCtxDestroy_v2(context) == CUDA_SUCCESS);
  CHECK(current() == watching.get());
  CHECK(free_here() == before);
}

TEST_CASE("every version of cuCtxCreate creates a context and makes it current") {
  start_driver();
  CUcontext made[4] = {};
  REQUIRE(cuCtxCreate(&made[0], 0, 0) == CUDA_SUCCESS);
  CHECK(current() == made[0]);
  REQUIRE(cuCtxCreate_v2(&made[1], CU_CTX_SCHED_SPIN, 0) == CUDA_SUCCESS);
  REQUIRE(cuCtxCreate_v3(&made[2], nullptr, 0, 0, 0) == CUDA_SUCCESS);
  REQUIRE(cuCtxCreate_v4(&made[3], nullptr, 0, 0) == CUDA_SUCCESS);
  CHECK(current() == made[3]);
  unsigned flags = 0, version = 0;
  REQUIRE(cuCtxGetApiVersion(made[1], &version) == CUDA_SUCCESS);
  CHECK(version >= 3020);
  CHECK(cuCtxDestroy(made[3]) == CUDA_SUCCESS);
  CHECK(cuCtxDestroy_v2(made[2]) == CUDA_SUCCESS);
  REQUIRE(cuCtxGetFlags(&flags) == CUDA_SUCCESS);
  CHECK((flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_SPIN);
  CHECK(cuCtxDetach(made[1]) == CUDA_SUCCESS);
  CHECK(cuCtxDestroy_v2(made[0]) == CUDA_SUCCESS);
  CHECK(current() == nullptr);
  CHECK(cuCtxCreate_v2(&made[0], 0x1000, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuCtxCreate_v2(&made[0], 0, 99) == CUDA_ERROR_INVALID_DEVICE);
}

TEST_CASE("cuCtxCreate_v4 creates a plain context from parameters that are all zero") {
  start_driver();
  CUctxCreateParams nothing = {};
  CUcontext context = nullptr;
  REQUIRE(cuCtxCreate_v4(&context, &nothing, CU_CTX_SCHED_YIELD, 0) == CUDA_SUCCESS);
  CHECK(current() == context);
  unsigned flags = 0;
  REQUIRE(cuCtxGetFlags(&flags) == CUDA_SUCCESS);
  CHECK((flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_YIELD);
  CHECK(cuCtxDestroy_v2(context) == CUDA_SUCCESS);
  CHECK(cuCtxCreate_v4(&context, &nothing, 0, 99) == CUDA_ERROR_INVALID_DEVICE);
}

TEST_CASE("cuCtxCreate_v4 refuses parameters that the simulator lacks") {
  if (!simulator()) return;
  start_driver();
  CUcontext context = nullptr;
  CUctxCreateParams affine = {}, graphical = {};
  affine.numExecAffinityParams = 1;
  graphical.cigParams = reinterpret_cast<CUctxCigParam *>(&graphical);
  CHECK(cuCtxCreate_v4(&context, &affine, 0, 0) == CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
  CHECK(cuCtxCreate_v4(&context, &graphical, 0, 0) == CUDA_ERROR_NOT_SUPPORTED);
}

TEST_CASE("an attached context lives until it is detached") {
  const CurrentContext watching;
  CUcontext context = nullptr, same = nullptr;
  REQUIRE(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
  REQUIRE(cuCtxAttach(&same, 0) == CUDA_SUCCESS);
  CHECK(same == context);
  REQUIRE(cuCtxDetach(context) == CUDA_SUCCESS);
  device_memory(16);
  REQUIRE(cuCtxDetach(context) == CUDA_SUCCESS);
  CHECK(current() == watching.get());
}

TEST_CASE("contexts are pushed, popped and set separately on each thread") {
  const CurrentContext first;
  const CurrentContext second;
  CUcontext popped = nullptr;
  REQUIRE(cuCtxPopCurrent_v2(&popped) == CUDA_SUCCESS);
  CHECK(popped == second.get());
  CHECK(current() == first.get());
  REQUIRE(cuCtxPushCurrent_v2(second.get()) == CUDA_SUCCESS);
  REQUIRE(cuCtxSetCurrent(first.get()) == CUDA_SUCCESS);  // replaces the top
  REQUIRE(cuCtxPopCurrent_v2(&popped) == CUDA_SUCCESS);
  CHECK(popped == first.get());
  CHECK(current() == first.get());
  CUcontext elsewhere = first.get();
  CUresult pop = CUDA_SUCCESS;
  std::thread([&] {
    cuCtxGetCurrent(&elsewhere);
    pop = cuCtxPopCurrent_v2(nullptr);
  }).join();
  CHECK(elsewhere == nullptr);
  CHECK(pop == CUDA_ERROR_INVALID_CONTEXT);
  REQUIRE(cuCtxPushCurrent_v2(second.get()) == CUDA_SUCCESS);
}

TEST_CASE("a thread whose context was destroyed by another gets an error") {
  const CurrentContext watching;
  CUcontext context = nullptr;
  REQUIRE(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
  std::thread([&] { cuCtxDestroy_v2(context); }).join();
  CUdeviceptr address = 0;
  CHECK(cuMemAlloc_v2(&address, 1) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  REQUIRE(cuCtxPopCurrent_v2(nullptr) == CUDA_SUCCESS);
  if (simulator()) CHECK(cuCtxDestroy_v2(context) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

TEST_CASE("a primary context lives from its first retain to its last release", "[alone]") {
  start_driver();
  const CurrentContext watching;
  const std::size_t before = free_here();
  unsigned flags = 0;
  int active = 1;
  REQUIRE(cuDevicePrimaryCtxGetState(0, &flags, &active) == CUDA_SUCCESS);
  REQUIRE(active == 0);
  CUcontext first = nullptr, second = nullptr;
  REQUIRE(cuDevicePrimaryCtxRetain(&first, 0) == CUDA_SUCCESS);
  const std::size_t with_primary = free_here();
  CHECK(with_primary < before);
  REQUIRE(cuDevicePrimaryCtxRetain(&second, 0) == CUDA_SUCCESS);
  CHECK(first == second);
  CHECK(free_here() == with_primary);
  CHECK(cuCtxDestroy_v2(first) == CUDA_ERROR_INVALID_CONTEXT);
  REQUIRE(cuCtxPushCurrent_v2(first) == CUDA_SUCCESS);
  device_memory(kMiB);
  REQUIRE(cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
  device_memory(kMiB);  // another reference remains
  REQUIRE(cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS);
  CUdeviceptr address = 0;
  CHECK(cuMemAlloc_v2(&address, 1) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  REQUIRE(cuCtxPopCurrent_v2(nullptr) == CUDA_SUCCESS);
  CHECK(free_here() == before);
  CHECK(cuDevicePrimaryCtxRelease_v2(0) == CUDA_ERROR_INVALID_CONTEXT);
}

// H100, H200, driver 580.159: the state needs both outputs.
TEST_CASE("a reset empties the primary context, in both versions", "[alone]") {
  const CurrentContext watching;
  for (const auto reset : {&cuDevicePrimaryCtxReset, &cuDevicePrimaryCtxReset_v2}) {
    const std::size_t before = free_here();
    CUcontext primary = nullptr;
    REQUIRE(cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
    REQUIRE(cuCtxPushCurrent_v2(primary) == CUDA_SUCCESS);
    const CUdeviceptr address = device_memory(kMiB);
    REQUIRE(reset(0) == CUDA_SUCCESS);
    unsigned flags = 0;
    int active = 1;
    REQUIRE(cuDevicePrimaryCtxGetState(0, &flags, &active) == CUDA_SUCCESS);
    CHECK(active == 0);
    CHECK(cuMemFree_v2(address) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CUcontext again = nullptr;
    REQUIRE(cuDevicePrimaryCtxRetain(&again, 0) == CUDA_SUCCESS);  // and it comes back under the same handle
    CHECK(again == primary);
    CHECK(cuMemFree_v2(address) == CUDA_ERROR_INVALID_VALUE);
    REQUIRE(cuCtxPopCurrent_v2(nullptr) == CUDA_SUCCESS);
    REQUIRE(cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
    REQUIRE(cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
    CHECK(free_here() == before);
  }
}

TEST_CASE("flags of an active primary context change only through the newer function") {
  start_driver();
  CUcontext primary = nullptr;
  REQUIRE(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_YIELD) == CUDA_SUCCESS);
  REQUIRE(cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
  CHECK(cuDevicePrimaryCtxSetFlags(0, 0) == CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE);
  CHECK(cuDevicePrimaryCtxSetFlags_v2(0, CU_CTX_SCHED_SPIN) == CUDA_SUCCESS);
  unsigned flags = 0;
  int active = 0;
  // H200, driver 580.159: both outputs are needed
  CHECK(cuDevicePrimaryCtxGetState(0, nullptr, &active) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuDevicePrimaryCtxGetState(0, &flags, nullptr) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuDevicePrimaryCtxGetState(0, &flags, &active) == CUDA_SUCCESS);
  CHECK((flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_SPIN);
  REQUIRE(cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
  REQUIRE(cuDevicePrimaryCtxSetFlags_v2(0, 0) == CUDA_SUCCESS);
}

TEST_CASE("a context that does not fit is refused with OUT_OF_MEMORY", "[alone]") {
  const CurrentContext filling;
  const CUdeviceptr most = device_memory(free_here() / 2);
  std::vector<CUdeviceptr> rest;
  for (CUdeviceptr block = 0; cuMemAlloc_v2(&block, 64 * kMiB) == CUDA_SUCCESS;) rest.push_back(block);
  CUcontext untouched = nullptr;
  CHECK(cuCtxCreate_v2(&untouched, 0, 0) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(untouched == nullptr);
  CHECK(current() == filling.get());
  CHECK(cuMemFree_v2(most) == CUDA_SUCCESS);
}

TEST_CASE("limits and settings of a context are kept") {
  const CurrentContext context;
  std::size_t value = 0;
  REQUIRE(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 32 * kMiB) == CUDA_SUCCESS);
  REQUIRE(cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE) == CUDA_SUCCESS);
  CHECK(value >= 32 * kMiB);
  CHECK(cuCtxGetLimit(&value, CU_LIMIT_MAX) == CUDA_ERROR_INVALID_VALUE);  // H100, H200, driver 580.159
  CUdevice device = -1;
  CHECK(cuCtxGetDevice(&device) == CUDA_SUCCESS);
  CHECK(device == 0);
  device = -1;
  CHECK(cuCtxGetDevice_v2(&device, context.get()) == CUDA_SUCCESS);
  CHECK(device == 0);
  unsigned long long first = 0, second = 0;
  REQUIRE(cuCtxGetId(context.get(), &first) == CUDA_SUCCESS);
  const CurrentContext other;
  REQUIRE(cuCtxGetId(nullptr, &second) == CUDA_SUCCESS);
  CHECK(first != second);
  CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(cuCtxSynchronize_v2(context.get()) == CUDA_SUCCESS);
}

}  // namespace
}  // namespace simcuda::conformance
