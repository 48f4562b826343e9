// When graphs take physical memory, how much, and when it goes back.
#include "tests/simcuda/conformance/capture.h"
#include "tests/simcuda/conformance/graph.h"

namespace simcuda::conformance {
namespace {

// Allocates and frees the blocks: each before the next one, or all at once.
std::vector<CUdeviceptr> add_blocks(NewGraph &graph, const std::vector<std::size_t> &sizes, bool at_once) {
  std::vector<CUdeviceptr> addresses;
  Nodes last;
  for (const std::size_t bytes : sizes) {
    const auto [node, address] = graph.allocate(bytes, last);
    last = {node};
    addresses.push_back(address);
    if (!at_once) last = {graph.free(address, last)};
  }
  for (const CUdeviceptr address : addresses) {
    if (at_once) last = {graph.free(address, last)};
  }
  return addresses;
}

TEST_CASE("a graph takes memory in steps of 32 MiB when it is uploaded or launched, and keeps it until a trim") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  take_drivers_own(stream);
  for (const auto &[bytes, taken] :
       {std::pair{std::size_t{1}, 32}, {31 * kMiB, 32}, {33 * kMiB, 64}, {100 * kMiB, 128}}) {
    const std::size_t expected = static_cast<std::size_t>(taken) * kMiB, free = free_bytes();
    NewGraph graph;
    graph.add_block(bytes);
    Exec exec(graph);
    CHECK(graph_memory() == 0);
    CHECK(free_bytes() == free);
    REQUIRE(cuGraphUpload(exec.get(), stream) == CUDA_SUCCESS);
    REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
    CHECK(graph_memory() == expected);
    CHECK(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == expected);
    CHECK(free_bytes() == free - expected);
    exec.launch(stream);
    CHECK(graph_memory() == expected);
    trim();
    CHECK(graph_memory() == 0);
    CHECK(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == 0);
    CHECK(free_bytes() == free);
    exec.launch(stream);
    exec.launch(stream);
    CHECK(free_bytes() == free - expected);
    exec.destroy();
    graph.destroy();
    CHECK(graph_memory() == expected);
    trim();
    CHECK(free_bytes() == free);
  }
}

TEST_CASE("a graph needs what its blocks hold at once") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  const auto taken = [&](const std::vector<std::size_t> &sizes, bool at_once) {
    trim();
    const std::size_t free = free_bytes();
    NewGraph graph;
    add_blocks(graph, sizes, at_once);
    Exec(graph).launch(stream);
    return (free - free_bytes()) / kMiB;
  };
  take_drivers_own(stream);
  CHECK(taken({64 * kMiB, 64 * kMiB, 64 * kMiB}, false) == 64);
  CHECK(taken({64 * kMiB, 64 * kMiB, 64 * kMiB}, true) == 192);
  CHECK(taken(std::vector<std::size_t>(64, 3 * kMiB / 2), true) == 96);
  // A block lies in one place.
  CHECK(taken({64 * kMiB, 128 * kMiB}, false) == 192);
  CHECK(taken({128 * kMiB, 64 * kMiB}, false) == 128);
  CHECK(taken({10 * kMiB, 20 * kMiB, 30 * kMiB, 40 * kMiB, 50 * kMiB}, false) == 96);
  CHECK(taken({33 * kMiB, 33 * kMiB, 33 * kMiB}, true) == 128);
  trim();
}

TEST_CASE("graphs share the device's graph memory, in one stream and in two") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING), beside = new_stream(CU_STREAM_NON_BLOCKING);
  trim();
  NewGraph first, second;
  first.add_block(64 * kMiB);
  second.add_block(64 * kMiB);
  Exec one(first), other(second);
  one.launch(stream);
  CHECK(graph_memory() == 64 * kMiB);
  other.launch(stream);
  CHECK(graph_memory() == 64 * kMiB);
  REQUIRE(cuGraphLaunch(one.get(), stream) == CUDA_SUCCESS);
  REQUIRE(cuGraphLaunch(other.get(), beside) == CUDA_SUCCESS);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(graph_memory() == 64 * kMiB);
  trim();
  CHECK(graph_memory() == 0);
}

TEST_CASE("launches of graphs that share memory take turns") {
  if (!simulator()) return;  // a real driver may grow its pool instead
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING), beside = new_stream(CU_STREAM_NON_BLOCKING);
  trim();
  NewGraph first, second, plain;
  int calls = 0;
  const CUdeviceptr device = device_memory(64);
  first.add_block(64 * kMiB);
  second.add_block(64 * kMiB);
  second.call(count_call, &calls, {});
  plain.fill(device, 7, 64, {});
  Exec one(first), other(second), without(plain);
  Gate gate;
  gate.hold(stream);
  REQUIRE(cuGraphLaunch(one.get(), stream) == CUDA_SUCCESS);
  without.launch(beside);
  CHECK(read_back(device, 64) == std::vector<unsigned char>(64, 7));
  REQUIRE(cuGraphLaunch(other.get(), beside) == CUDA_SUCCESS);
  CHECK(stays([&] { return cuStreamQuery(beside) == CUDA_ERROR_NOT_READY; }));
  CHECK(calls == 0);
  gate.open();
  REQUIRE(cuStreamSynchronize(beside) == CUDA_SUCCESS);
  CHECK(calls == 1);
  trim();
}

TEST_CASE("neither building nor instantiating a graph is refused for lack of memory, but its upload and launch are",
          "[alone]") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  trim();
  std::size_t free = 0, total = 0;
  REQUIRE(cuMemGetInfo(&free, &total) == CUDA_SUCCESS);
  NewGraph graph;
  graph.add_block(2 * total);
  int calls = 0;
  graph.call(count_call, &calls, {});
  Exec exec(graph);
  CHECK(cuGraphUpload(exec.get(), stream) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(cuGraphLaunch(exec.get(), stream) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(calls == 0);
  if (!simulator()) return;  // the H100's driver 580 keeps all of the device from here on
  CHECK(graph_memory() == 0);
  CHECK(free_bytes() == free);
}

TEST_CASE("what graphs retain goes back to an allocation that needs the room") {
  if (!simulator()) return;  // takes most of the device; an H100 with driver 580.159 was asked for the same alone
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  trim();
  const std::size_t half = free_bytes() / 2 / kMiB * kMiB;
  NewGraph graph;
  graph.add_block(half);
  Exec(graph).launch(stream);
  CHECK(graph_memory() >= half);
  CUdeviceptr block = 0;
  CHECK(cuMemAlloc(&block, free_bytes() + half / 2) == CUDA_SUCCESS);
  CHECK(graph_memory() == 0);
}

TEST_CASE("a trim waits for nothing and keeps what queued launches need") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  trim();
  NewGraph graph;
  graph.add_block(64 * kMiB);
  Exec exec(graph);
  Gate gate;
  gate.hold(stream);
  REQUIRE(cuGraphLaunch(exec.get(), stream) == CUDA_SUCCESS);
  trim();
  CHECK(graph_memory() == 64 * kMiB);
  exec.destroy();
  CHECK(graph_memory() == 64 * kMiB);
  gate.open();
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  trim();
  CHECK(graph_memory() == 0);
}

TEST_CASE("the high marks of graph memory fall when they are reset, and only then") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  trim();
  cuuint64_t zero = 0, one = 1;
  for (const auto high : {CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH}) {
    REQUIRE(cuDeviceSetGraphMemAttribute(0, high, &zero) == CUDA_SUCCESS);
    CHECK(graph_memory(high) == 0);
    NewGraph graph;
    graph.add_block(64 * kMiB);
    Exec(graph).launch(stream);
    trim();
    CHECK(graph_memory(high) == 64 * kMiB);
    CHECK(cuDeviceSetGraphMemAttribute(0, high, &one) == CUDA_ERROR_INVALID_VALUE);
    REQUIRE(cuDeviceSetGraphMemAttribute(0, high, &zero) == CUDA_SUCCESS);
    CHECK(graph_memory(high) == 0);
  }
  CHECK(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &zero) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuDeviceGetGraphMemAttribute(99, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &zero) == CUDA_ERROR_INVALID_DEVICE);
  CHECK(cuDeviceGraphMemTrim(99) == CUDA_ERROR_INVALID_DEVICE);
}

TEST_CASE("a trim during a capture does not disturb it") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  REQUIRE(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  CHECK(cuDeviceGraphMemTrim(0) == CUDA_SUCCESS);
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
  CHECK(cuGraphDestroy(graph) == CUDA_SUCCESS);
}

}  // namespace
}  // namespace simcuda::conformance
