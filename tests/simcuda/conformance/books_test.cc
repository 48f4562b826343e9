// The bytes that the simulated device holds for this process, by kind.
#include "tests/simcuda/conformance/graph.h"

namespace simcuda::conformance {
namespace {

simcuda_books books(CUdevice device) {
  simcuda_books read = {};
  REQUIRE(simulator().device_books(device, &read) == 0);
  return read;
}

TEST_CASE("the device's figures follow every allocation, free and context") {
  if (!simulator()) return;
  const CurrentContext staying;
  std::size_t free = 0, total = 0;
  const simcuda_books before = books(0), other_before = books(1);
  CHECK(before.contexts >= 1);
  REQUIRE(cuMemGetInfo(&free, &total) == CUDA_SUCCESS);
  CHECK(before.allocation_bytes + before.context_bytes + before.pool_bytes == total - free);
  const CUdeviceptr device = device_memory(1000);
  {
    const CurrentContext going;
    device_memory(5 * kMiB);
    const simcuda_books now = books(0);
    CHECK(now.allocations == before.allocations + 2);
    CHECK(now.allocation_bytes == before.allocation_bytes + 1024 + 5 * kMiB);
    CHECK(now.contexts == before.contexts + 1);
    REQUIRE(cuMemGetInfo(&free, &total) == CUDA_SUCCESS);
    CHECK(now.allocation_bytes + now.context_bytes + now.pool_bytes == total - free);
  }
  REQUIRE(cuCtxSetCurrent(staying.get()) == CUDA_SUCCESS);
  CHECK(books(0).allocations == before.allocations + 1);
  CHECK(books(0).context_bytes == before.context_bytes);
  REQUIRE(cuMemFree(device) == CUDA_SUCCESS);
  CHECK(books(0).allocation_bytes == before.allocation_bytes);
  CHECK(books(1).allocations == other_before.allocations);
  simcuda_books none = {};
  CHECK(simulator().device_books(99, &none) == -1);
  CHECK(simulator().device_books(0, nullptr) == -1);
}

TEST_CASE("what the device's graphs have reserved is among its figures") {
  if (!simulator()) return;
  const CurrentContext context;
  trim();
  const simcuda_books before = books(0);
  CHECK(before.graph_bytes == 0);
  NewGraph graph;
  const CUdeviceptr left = graph.allocate(33 * kMiB).address;
  Exec(graph).launch(new_stream());
  const simcuda_books now = books(0);
  CHECK(now.graph_bytes == 64 * kMiB);
  CHECK(now.allocation_bytes == before.allocation_bytes);
  REQUIRE(cuMemFree(left) == CUDA_SUCCESS);
  trim();
  CHECK(books(0).graph_bytes == 0);
}

}  // namespace
}  // namespace simcuda::conformance
