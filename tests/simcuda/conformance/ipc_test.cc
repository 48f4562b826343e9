// IPC handles within one process.
#include <cstring>

#include "tests/simcuda/conformance/fixture.h"

namespace simcuda::conformance {
namespace {

bool same(const CUipcMemHandle &one, const CUipcMemHandle &other) {
  return std::memcmp(&one, &other, sizeof one) == 0;
}

TEST_CASE("a handle names the whole allocation, whichever of its addresses is passed") {
  const CurrentContext context;
  const CUdeviceptr device = device_memory(kMiB), other = device_memory(kMiB);
  CUipcMemHandle whole = {}, inside = {}, elsewhere = {};
  REQUIRE(cuIpcGetMemHandle(&whole, device) == CUDA_SUCCESS);
  REQUIRE(cuIpcGetMemHandle(&inside, device + 4096) == CUDA_SUCCESS);
  REQUIRE(cuIpcGetMemHandle(&elsewhere, other) == CUDA_SUCCESS);
  CHECK(same(whole, inside));
  CHECK_FALSE(same(whole, elsewhere));
}

TEST_CASE("new memory at an old address has another handle") {
  const CurrentContext context;
  CUipcMemHandle first = {}, second = {};
  CUdeviceptr device = device_memory(kMiB);
  const CUdeviceptr before = device;
  REQUIRE(cuIpcGetMemHandle(&first, device) == CUDA_SUCCESS);
  REQUIRE(cuMemFree(device) == CUDA_SUCCESS);
  CHECK(cuIpcGetMemHandle(&second, device) == CUDA_ERROR_INVALID_VALUE);
  device = device_memory(kMiB);
  if (simulator()) REQUIRE(device == before);
  REQUIRE(cuIpcGetMemHandle(&second, device) == CUDA_SUCCESS);
  CHECK_FALSE(same(first, second));
}

TEST_CASE("a process cannot open its own handle") {
  const CurrentContext context;
  const CUdeviceptr device = device_memory(kMiB);
  CUipcMemHandle handle = {};
  CUdeviceptr opened = 0;
  REQUIRE(cuIpcGetMemHandle(&handle, device) == CUDA_SUCCESS);
  CHECK(cuIpcOpenMemHandle(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(cuIpcOpenMemHandle(&opened, handle, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(opened == 0);
}

}  // namespace
}  // namespace simcuda::conformance
