// The blocks that a graph allocates: while it runs, and where it does not free them.
#include <functional>
#include <thread>

#include "tests/simcuda/conformance/graph.h"

namespace simcuda::conformance {
namespace {

constexpr std::size_t kBlockBytes = 64 * kMiB;

CUresult range_of(CUdeviceptr address, std::size_t *bytes) {
  CUdeviceptr base = 0;
  const CUresult result = cuMemGetAddressRange(&base, bytes, address);
  if (result == CUDA_SUCCESS) CHECK(base == address);
  return result;
}

TEST_CASE("a block that its graph does not free lives on, through graph and executable graph, until it is freed") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  const std::vector<std::function<CUresult(CUdeviceptr)>> ends = {
      [](CUdeviceptr address) { return cuMemFree(address); },
      [=](CUdeviceptr address) { return cuMemFreeAsync(address, stream); }};
  take_drivers_own(stream);
  for (const auto &end : ends) {
    trim();
    const std::size_t free = free_bytes();
    NewGraph graph;
    const auto [node, address] = graph.allocate(kBlockBytes);
    std::size_t bytes = 0;
    graph.fill(address, 7, kBlockBytes, {node});
    Exec exec(graph);
    CHECK(range_of(address, &bytes) == CUDA_ERROR_NOT_FOUND);
    exec.launch(stream);
    CHECK(range_of(address, &bytes) == CUDA_SUCCESS);
    CHECK(bytes == kBlockBytes);
    CHECK(cuGraphLaunch(exec.get(), stream) == CUDA_ERROR_INVALID_VALUE);
    CHECK(end(address) == CUDA_SUCCESS);
    if (simulator()) CHECK(end(address) == CUDA_ERROR_INVALID_VALUE);  // a real driver may crash
    CHECK(range_of(address, &bytes) == CUDA_ERROR_NOT_FOUND);
    exec.launch(stream);
    exec.destroy();
    graph.destroy();
    trim();
    CHECK(graph_memory() == kBlockBytes);
    CHECK(read_back(address, kBlockBytes) == std::vector<unsigned char>(kBlockBytes, 7));
    CHECK(end(address) == CUDA_SUCCESS);
    REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
    CHECK(graph_memory() == kBlockBytes);
    trim();
    CHECK(graph_memory() == 0);
    CHECK(free_bytes() == free);
  }
}

TEST_CASE("a graph that frees at launch can be launched again while its block lives") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  trim();
  NewGraph graph;
  const CUdeviceptr address = graph.allocate(kBlockBytes).address;
  Exec exec(graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
  cuuint64_t flags = 0;
  REQUIRE(cuGraphExecGetFlags(exec.get(), &flags) == CUDA_SUCCESS);
  CHECK(flags == CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
  for (int round = 0; round < 3; ++round) {
    exec.launch(stream);
    CHECK(graph_memory() == kBlockBytes);
  }
  exec.destroy();
  CHECK(cuMemFree(address) == CUDA_SUCCESS);
  trim();
  CHECK(graph_memory() == 0);
}

TEST_CASE("a block is freed in its stream's order") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  trim();
  NewGraph graph;
  const CUdeviceptr address = graph.allocate(kBlockBytes).address;
  Exec exec(graph);
  void *pinned = nullptr;
  REQUIRE(cuMemHostAlloc(&pinned, 64, 0) == CUDA_SUCCESS);
  Gate gate;
  gate.hold(stream);
  for (int round = 0; round < 2; ++round) {
    REQUIRE(cuGraphLaunch(exec.get(), stream) == CUDA_SUCCESS);
    REQUIRE(cuMemsetD8Async(address, 5, kBlockBytes, stream) == CUDA_SUCCESS);
    REQUIRE(cuMemcpyDtoHAsync(pinned, address, 64, stream) == CUDA_SUCCESS);
    REQUIRE(cuMemFreeAsync(address, stream) == CUDA_SUCCESS);
  }
  trim();
  CHECK(graph_memory() == kBlockBytes);
  gate.open();
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  const auto *const bytes = static_cast<const unsigned char *>(pinned);
  CHECK(std::vector<unsigned char>(bytes, bytes + 64) == std::vector<unsigned char>(64, 5));
  trim();
  CHECK(graph_memory() == 0);
}

TEST_CASE("cuMemFree of a graph's block waits for the launch that allocates it") {
  if (!simulator()) return;  // not measured
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  NewGraph graph;
  const CUdeviceptr address = graph.allocate(kBlockBytes).address;
  Exec exec(graph);
  Gate gate;
  gate.hold(stream);
  REQUIRE(cuGraphLaunch(exec.get(), stream) == CUDA_SUCCESS);
  CUresult result = CUDA_ERROR_UNKNOWN;
  bool open = false;
  std::thread freeing([&] {
    cuCtxSetCurrent(context.get());
    result = cuMemFree(address);
    open = gate.is_open();
  });
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  gate.open();
  freeing.join();
  CHECK(open);
  CHECK(result == CUDA_SUCCESS);
  trim();
}

TEST_CASE("a graph frees the block of another one, which is launched before") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  trim();
  NewGraph allocating, freeing;
  const auto [allocated, address] = allocating.allocate(kBlockBytes);
  freeing.free(address, {});
  CUgraphNode node = nullptr;
  CHECK(cuGraphAddMemFreeNode(&node, allocating.get(), &allocated, 1, address) != CUDA_SUCCESS);
  Exec first(allocating), second(freeing);
  for (int round = 0; round < 2; ++round) {
    first.launch(stream);
    second.launch(stream);
    std::size_t bytes = 0;
    CHECK(range_of(address, &bytes) == CUDA_ERROR_NOT_FOUND);
  }
  trim();
  CHECK(graph_memory() == 0);
}

TEST_CASE("a live block of a graph is described as stream-ordered memory is") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  NewGraph graph;
  const CUdeviceptr address = graph.allocate(1000).address;
  Exec exec(graph);
  unsigned type = 0;
  if (simulator()) {  // not measured
    CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == CUDA_ERROR_INVALID_VALUE);
  }
  exec.launch(stream);
  CHECK(attribute<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address + 999) == CU_MEMORYTYPE_DEVICE);
  CHECK(attribute<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) == 0);
  CHECK(attribute<bool>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, address) == false);
  CUcontext owner = context.get();
  void *where = &owner;
  CUpointer_attribute which = CU_POINTER_ATTRIBUTE_CONTEXT;
  CHECK(cuPointerGetAttributes(1, &which, &where, address) == CUDA_SUCCESS);
  CHECK(owner == nullptr);
  if (simulator()) CHECK(cuPointerGetAttribute(&owner, which, address) == CUDA_ERROR_INVALID_VALUE);  // not measured
  CUipcMemHandle handle = {};
  CHECK(cuIpcGetMemHandle(&handle, address) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFree(address) == CUDA_SUCCESS);
}

TEST_CASE("a device's graph memory ends with its last context") {
  if (!simulator()) return;  // not measured
  start_driver();
  std::size_t before = 0;
  NewGraph graph;
  const CUdeviceptr address = graph.allocate(kBlockBytes).address;
  Exec exec(graph);
  {
    const CurrentContext context;
    trim();
    before = free_bytes();
    exec.launch(new_stream());
    CHECK(free_bytes() == before - kBlockBytes);
  }
  const CurrentContext context;
  CHECK(free_bytes() == before);
  CHECK(cuMemFree(address) == CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace simcuda::conformance
