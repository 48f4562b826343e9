// Graphs that allocate, through the policy: when they are charged, refused, and what they share.
#include <utility>

#include "catch.h"
#include "unit/policy/fake_graphs.h"
#include "unit/policy/program.h"

using namespace ration;
using namespace ration::test;

namespace {

constexpr CUdeviceptr kLeft = 0x70'0000'0000;

struct Launching {
  explicit Launching(std::uint64_t limit) : program(limit_of(limit)) {
    program.create();
    program.parts.graph_memory.note_allocation();
  }
  // One block of `bytes`, freed at the end of the graph.
  CUgraph block(std::uint64_t bytes) {
    return graphs.graph(bytes, {FakeGraphs::allocate(1, bytes), FakeGraphs::free(1)});
  }
  // A block that is freed, and one after it that stays.
  CUgraph leaving(std::uint64_t freed, std::uint64_t left) {
    return graphs.graph(freed + left,
                        {FakeGraphs::allocate(1, freed), FakeGraphs::allocate(kLeft, left), FakeGraphs::free(1)});
  }
  CUgraphExec instantiate(CUgraph graph, unsigned long long flags = 0) {
    CUgraphExec exec = nullptr;
    last = program.parts.graph_memory.instantiate("cuGraphInstantiateWithFlags", graph, flags, &exec,
                                                  [&] { return graphs.instantiate(&exec, graph); });
    return exec;
  }
  CUresult launch(CUgraphExec exec, CUstream stream = nullptr) {
    return program.parts.graph_memory.run(policy::GraphMemory::Run::launch, "cuGraphLaunch", exec, stream,
                                          [&] { return graphs.run("cuGraphLaunch", exec); });
  }
  CUresult upload(CUgraphExec exec) {
    return program.parts.graph_memory.run(policy::GraphMemory::Run::upload, "cuGraphUpload", exec, nullptr,
                                          [&] { return graphs.run("cuGraphUpload", exec); });
  }
  CUresult destroy(CUgraphExec exec) {
    return program.parts.graph_memory.destroy(exec, [] { return CUDA_SUCCESS; });
  }
  std::uint64_t charged() const { return program.charged(); }
  std::uint64_t denied() { return program.denied(events::Reason::limit); }
  int launches() const { return driver.calls("cuGraphLaunch"); }

  FakeDriver driver;
  FakeGraphs graphs{driver};
  Program program;
  CUresult last = CUDA_SUCCESS;
};

}  // namespace

TEST_CASE("a graph is charged when the driver takes its memory, by what the driver reserves") {
  Launching all(128 * kMiB);
  const CUgraphExec exec = all.instantiate(all.block(33 * kMiB));
  CHECK(all.charged() == 0);
  CHECK(all.launch(exec) == CUDA_SUCCESS);
  CHECK(all.charged() == 64 * kMiB);
  CHECK(all.destroy(exec) == CUDA_SUCCESS);
  CHECK(all.charged() == 64 * kMiB);  // the driver keeps it for the next graph
}

TEST_CASE("a graph beyond the limit is refused before the driver acts") {
  Launching all(128 * kMiB);
  const CUgraphExec small = all.instantiate(all.block(kMiB));
  const CUgraphExec large = all.instantiate(all.block(129 * kMiB));
  CHECK(all.last == CUDA_SUCCESS);  // this driver was seen to take nothing yet
  CHECK(all.launch(large) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(all.launches() == 0);
  CHECK(all.denied() == 1);
  CHECK(all.charged() == 0);
  CHECK(all.launch(small) == CUDA_SUCCESS);
}

TEST_CASE("a driver that takes the memory at the instantiation is refused there") {
  Launching all(128 * kMiB);
  all.graphs.takes_at_instantiation = true;
  CUgraphExec exec = all.instantiate(all.block(129 * kMiB));
  CHECK(all.last == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(all.driver.calls("cuGraphInstantiateWithFlags") == all.graphs.of_ours);
  CHECK(all.graphs.reserved == 0);
  CHECK(all.charged() == 0);
  exec = all.instantiate(all.block(64 * kMiB));
  CHECK(all.last == CUDA_SUCCESS);
  CHECK(all.charged() == 64 * kMiB);
  all.instantiate(all.block(129 * kMiB));
  CHECK(all.last == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(all.driver.calls("cuGraphInstantiateWithFlags") == all.graphs.of_ours + 1);
  CHECK(all.launch(exec) == CUDA_SUCCESS);
  CHECK(all.charged() == 64 * kMiB);
}

TEST_CASE("the first graph of a program may be one that never fits, or not yet") {
  Launching all(128 * kMiB);
  const CUgraphExec never = all.instantiate(all.block(129 * kMiB));
  CHECK(all.last == CUDA_SUCCESS);
  CHECK(all.graphs.of_ours == 1);
  CHECK(all.charged() == 0);
  CHECK(all.launch(never) == CUDA_ERROR_OUT_OF_MEMORY);
  const CUdeviceptr other = all.program.take(64 * kMiB);
  const CUgraphExec later = all.instantiate(all.block(96 * kMiB));
  CHECK(all.last == CUDA_SUCCESS);
  CHECK(all.graphs.of_ours == 1);  // it is known now
  REQUIRE(all.program.free(other) == CUDA_SUCCESS);
  CHECK(all.launch(later) == CUDA_SUCCESS);
}

TEST_CASE("no graph of ours takes what the limit does not leave") {
  Launching all(128 * kMiB);
  all.graphs.takes_at_instantiation = true;
  REQUIRE(all.program.take(97 * kMiB) != kUntouched);
  all.instantiate(all.block(64 * kMiB));
  CHECK(all.last == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(all.graphs.of_ours == 0);
}

TEST_CASE("launching again reserves nothing") {
  Launching all(64 * kMiB);
  const CUgraphExec exec = all.instantiate(all.block(64 * kMiB));
  REQUIRE(all.launch(exec) == CUDA_SUCCESS);
  const int asked = all.driver.calls("cuDeviceGetGraphMemAttribute");
  CHECK(all.launch(exec) == CUDA_SUCCESS);
  CHECK(all.driver.calls("cuDeviceGetGraphMemAttribute") == asked);
  CHECK(all.driver.calls("cuGraphUpload") == 0);
}

TEST_CASE("graphs in turns share one memory, also where the limit leaves no more") {
  Launching all(64 * kMiB);
  const CUgraphExec one = all.instantiate(all.block(64 * kMiB));
  const CUgraphExec other = all.instantiate(all.block(48 * kMiB));
  for (int i = 0; i < 3; ++i) {
    CHECK(all.launch(one) == CUDA_SUCCESS);
    CHECK(all.launch(other) == CUDA_SUCCESS);
  }
  CHECK(all.graphs.trims == 0);
  CHECK(all.charged() == 64 * kMiB);
  CHECK(all.denied() == 0);
}

TEST_CASE("what another graph still needs is not shared: no more than the limit stays taken") {
  Launching all(96 * kMiB);
  const CUgraphExec one = all.instantiate(all.block(64 * kMiB));
  const CUgraphExec other = all.instantiate(all.block(64 * kMiB));
  REQUIRE(all.launch(one) == CUDA_SUCCESS);
  all.graphs.in_use = 64 * kMiB;  // an unfreed block, say
  CHECK(all.launch(other) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(all.launches() == 1);
  CHECK(all.graphs.reserved == 64 * kMiB);
  CHECK(all.charged() == 64 * kMiB);
}

TEST_CASE("memory of idle graphs goes back before another API is refused") {
  Launching all(64 * kMiB);
  const CUgraphExec exec = all.instantiate(all.block(64 * kMiB));
  REQUIRE(all.launch(exec) == CUDA_SUCCESS);
  CHECK(all.program.take(64 * kMiB) != kUntouched);
  CHECK(all.graphs.reserved == 0);
  CHECK(all.launch(exec) == CUDA_ERROR_OUT_OF_MEMORY);  // it has to take it again
  CHECK(all.launches() == 1);
}

TEST_CASE("no trim of ours comes between a launch that relies on its memory and the driver") {
  Launching all(64 * kMiB);
  const CUgraphExec exec = all.instantiate(all.block(64 * kMiB));
  REQUIRE(all.launch(exec) == CUDA_SUCCESS);
  all.graphs.on_run = [&] {
    CHECK(all.program.take(32 * kMiB) == kUntouched);
    CHECK(all.graphs.trims == 0);
  };
  CHECK(all.launch(exec) == CUDA_SUCCESS);
  CHECK(all.charged() == all.graphs.reserved);
  CHECK(all.graphs.trims == 1);  // owed
}

TEST_CASE("after the program's own trim a launch is charged again") {
  Launching all(64 * kMiB);
  const CUgraphExec exec = all.instantiate(all.block(64 * kMiB));
  REQUIRE(all.launch(exec) == CUDA_SUCCESS);
  CHECK(all.program.parts.graph_memory.trim("cuDeviceGraphMemTrim", FakeDriver::kFirstHandle, [] {
    return driver::real.cuDeviceGraphMemTrim(FakeDriver::kFirstHandle);
  }) == CUDA_SUCCESS);
  CHECK(all.charged() == 0);
  REQUIRE(all.program.take(32 * kMiB) != kUntouched);
  CHECK(all.launch(exec) == CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_CASE("an update that needs more is charged at the next launch") {
  Launching all(96 * kMiB);
  const CUgraphExec exec = all.instantiate(all.block(32 * kMiB));
  REQUIRE(all.launch(exec) == CUDA_SUCCESS);
  CHECK(all.program.parts.graph_memory.update(exec, all.block(128 * kMiB), [] { return CUDA_SUCCESS; }) ==
        CUDA_SUCCESS);
  CHECK(all.launch(exec) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(all.launches() == 1);
}

TEST_CASE("a launch that is wrong has its own code, and takes nothing") {
  Launching all(64 * kMiB);
  const CUgraphExec exec = all.instantiate(all.block(64 * kMiB));
  all.driver.fails["cuGraphLaunch"] = CUDA_ERROR_INVALID_VALUE;
  CHECK(all.launch(exec) == CUDA_ERROR_INVALID_VALUE);
  CHECK(all.charged() == 0);
  CHECK(all.program.tally().failed_allocs == 0);
}

TEST_CASE("on a full device the driver is not asked for what it cannot have") {
  Launching all(1024 * kMiB);
  const CUgraphExec exec = all.instantiate(all.block(512 * kMiB));
  all.driver.taken_by_others = all.driver.total - 256 * kMiB;
  CHECK(all.launch(exec) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(all.launches() == 0);
  CHECK(all.program.denied(events::Reason::device) == 1);
  all.driver.taken_by_others = 0;
  CHECK(all.launch(exec) == CUDA_SUCCESS);
}

TEST_CASE("a driver that does not tell what graphs reserve: charged from the instantiation to the end") {
  Launching all(128 * kMiB);
  driver::real.cuDeviceGetGraphMemAttribute.set(nullptr);
  const CUgraphExec exec = all.instantiate(all.block(100 * kMiB));
  CHECK(all.charged() == 100 * kMiB);
  CHECK(all.launch(exec) == CUDA_SUCCESS);
  all.instantiate(all.block(100 * kMiB));
  CHECK(all.last == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(all.destroy(exec) == CUDA_SUCCESS);
  CHECK(all.charged() == 0);
}

TEST_CASE("a process without graphs that allocate is asked nothing") {
  FakeDriver driver;
  FakeGraphs graphs(driver);
  Program program(limit_of(64 * kMiB));
  program.create();
  CUgraphExec exec = nullptr;
  const CUgraph graph = graphs.graph(0, {{}});
  CHECK(program.parts.graph_memory.instantiate("cuGraphInstantiateWithFlags", graph, false, &exec,
                                               [&] { return graphs.instantiate(&exec, graph); }) == CUDA_SUCCESS);
  CHECK(driver.calls("cuGraphGetNodes") == 0);
  CHECK_FALSE(program.parts.graph_memory.holds_any());
}

TEST_CASE("a graph's need and what others have left are rounded together") {
  Launching all(128 * kMiB);
  const CUgraphExec leaves = all.instantiate(all.leaving(512, kMiB));
  const CUgraphExec exec = all.instantiate(all.block(95 * kMiB));
  REQUIRE(all.launch(leaves) == CUDA_SUCCESS);
  all.graphs.in_use = kMiB;
  REQUIRE(all.program.take(32 * kMiB) != kUntouched);
  CHECK(all.launch(exec) == CUDA_SUCCESS);
  CHECK(all.graphs.reserved == 96 * kMiB);
}

TEST_CASE("what a graph has left itself is there again for its next launch or upload") {
  Launching all(96 * kMiB);
  const CUgraphExec exec =
      all.instantiate(all.leaving(32 * kMiB, 32 * kMiB), CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
  const CUgraphExec other = all.instantiate(all.block(16 * kMiB));
  REQUIRE(all.launch(exec) == CUDA_SUCCESS);
  all.graphs.in_use = 32 * kMiB;
  REQUIRE(all.launch(other) == CUDA_SUCCESS);
  all.graphs.in_use = 0;
  REQUIRE(all.program.take(32 * kMiB) != kUntouched);
  CHECK(all.launch(exec) == CUDA_SUCCESS);
  all.graphs.in_use = 32 * kMiB;
  REQUIRE(all.launch(other) == CUDA_SUCCESS);
  all.graphs.in_use = 0;
  CHECK(all.upload(exec) == CUDA_SUCCESS);
  CHECK(all.graphs.reserved == 64 * kMiB);
  CHECK(all.denied() == 0);
}

TEST_CASE("a launch whose blocks are there already is wrong, not short of memory") {
  Launching all(96 * kMiB);
  const CUgraphExec exec = all.instantiate(all.leaving(32 * kMiB, 32 * kMiB));
  REQUIRE(all.launch(exec) == CUDA_SUCCESS);
  REQUIRE(all.program.parts.graph_memory.trim("cuDeviceGraphMemTrim", FakeDriver::kFirstHandle, [] {
    return driver::real.cuDeviceGraphMemTrim(FakeDriver::kFirstHandle);
  }) == CUDA_SUCCESS);
  REQUIRE(all.program.take(64 * kMiB) != kUntouched);
  CHECK(all.launch(exec) == CUDA_ERROR_INVALID_VALUE);
  CHECK(all.denied() == 0);
  CHECK(all.launches() == 1);
}

TEST_CASE("what graphs have left ends with the last context of the device") {
  FakeDriver driver;
  FakeGraphs graphs(driver);
  Program program(limit_of(128 * kMiB));
  const CUcontext one = program.create();
  const CUcontext other = program.create();
  program.parts.graph_memory.note_allocation();
  const CUgraph graph = graphs.graph(32 * kMiB, {FakeGraphs::allocate(kLeft, 32 * kMiB)});
  CUgraphExec exec = nullptr;
  REQUIRE(program.parts.graph_memory.instantiate("cuGraphInstantiate", graph, 0, &exec,
                                                 [&] { return graphs.instantiate(&exec, graph); }) == CUDA_SUCCESS);
  REQUIRE(program.parts.graph_memory.run(policy::GraphMemory::Run::launch, "cuGraphLaunch", exec, nullptr,
                                         [&] { return graphs.run("cuGraphLaunch", exec); }) == CUDA_SUCCESS);
  const auto live = [&] { return program.parts.stream_pools.known_of_graphs(0)->graphs->live_bytes.load(); };
  REQUIRE(program.destroy(one) == CUDA_SUCCESS);
  CHECK(live() == 32 * kMiB);
  driver.taken_by_others -= std::exchange(graphs.reserved, 0);
  REQUIRE(program.destroy(other) == CUDA_SUCCESS);
  CHECK(live() == 0);
  CHECK(program.charged() == 0);
  CHECK_FALSE(program.parts.books.blocks.find(kLeft));
}
