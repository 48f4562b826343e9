// What a graph takes at once, from its nodes and their order.
#include "policy/driver_pools/graph_needs.h"
#include "catch.h"
#include "unit/policy/fake_graphs.h"

using namespace ration;
using namespace ration::test;

namespace {

struct Graphs {
  std::uint64_t of(CUgraph graph, int device = 0) {
    std::uint64_t bytes = 0;
    for (const policy::GraphNeed &need : policy::graph_needs(graph).at_once) {
      bytes += need.device == device ? need.bytes : 0;
    }
    return bytes;
  }

  FakeDriver driver;
  FakeGraphs graphs{driver};
};

FakeGraphs::Node allocated(CUdeviceptr address, std::uint64_t bytes, int device = 0) {
  return FakeGraphs::allocate(address, bytes, device);
}
FakeGraphs::Node freed(CUdeviceptr address) {
  return FakeGraphs::free(address);
}

}  // namespace

TEST_CASE("blocks that are freed before the next ones begin count once") {
  Graphs all;
  const CUgraph graph = all.graphs.graph(
      0, {allocated(1, 80 * kMiB), freed(1), allocated(2, 64 * kMiB), freed(2), allocated(3, 80 * kMiB), freed(3)});
  CHECK(all.of(graph) == 80 * kMiB);
}

// The figures of an H100 (tests/gpu/results), which gives graphs steps of 32 MiB.
TEST_CASE("a block lies in one place") {
  Graphs all;
  const auto after_each_other = [&](std::vector<std::uint64_t> sizes) {
    std::vector<FakeGraphs::Node> nodes;
    for (const std::uint64_t mib : sizes) {
      nodes.push_back(allocated(nodes.size() + 1, mib * kMiB));
      nodes.push_back(freed(nodes.size()));
    }
    return all.of(all.graphs.graph(0, nodes)) / kMiB;
  };
  CHECK(after_each_other({64, 128}) == 192);
  CHECK(after_each_other({128, 64}) == 128);
  CHECK(after_each_other({10, 20, 30, 40, 50}) == 70);
  CHECK(all.of(all.graphs.graph(0, {allocated(1, 33 * kMiB), allocated(2, 33 * kMiB), allocated(3, 33 * kMiB), freed(1),
                                    freed(2), freed(3)})) == 99 * kMiB);
}

TEST_CASE("room between blocks that stay is used where it suffices") {
  Graphs all;
  const auto with = [&](std::uint64_t last) {
    return all.of(all.graphs.graph(0, {allocated(1, 8 * kMiB), allocated(2, 16 * kMiB), allocated(3, 8 * kMiB),
                                       freed(2), allocated(4, last * kMiB)})) /
           kMiB;
  };
  CHECK(with(16) == 32);
  CHECK(with(17) == 49);
}

TEST_CASE("what no dependency orders may be there at once") {
  Graphs all;
  const CUgraph graph =
      all.graphs.graph(0, {allocated(1, 64 * kMiB), freed(1), allocated(2, 64 * kMiB), freed(2)}, false);
  CHECK(all.of(graph) == 128 * kMiB);
}

TEST_CASE("two branches cannot both use again what was freed before them") {
  Graphs all;
  const CUgraph graph = all.graphs.graph(0, {allocated(1, 64 * kMiB), freed(1)});
  // Both allocations follow the free.
  const CUgraph forked =
      all.graphs.graph(0, {allocated(1, 64 * kMiB), freed(1), allocated(2, 64 * kMiB), allocated(3, 64 * kMiB)}, false);
  all.graphs.connect(forked, {{0, 1}, {1, 2}, {1, 3}});
  CHECK(all.of(graph) == 64 * kMiB);
  CHECK(all.of(forked) == 128 * kMiB);
}

TEST_CASE("an order of nodes that is not that of their making counts as well") {
  Graphs all;
  const CUgraph graph =
      all.graphs.graph(0, {allocated(2, 64 * kMiB), freed(2), allocated(1, 64 * kMiB), freed(1)}, false);
  all.graphs.connect(graph, {{2, 3}, {3, 0}, {0, 1}});
  CHECK(all.of(graph) == 64 * kMiB);
}

TEST_CASE("a free of another graph's block gives this graph nothing") {
  Graphs all;
  const CUgraph graph = all.graphs.graph(0, {freed(9), allocated(1, 64 * kMiB)});
  CHECK(all.of(graph) == 64 * kMiB);
  const policy::GraphNeeds needs = policy::graph_needs(graph);
  CHECK(needs.frees == std::vector<CUdeviceptr>{9});
  REQUIRE(needs.left.size() == 1);
  CHECK(needs.left.front().address == 1);
  CHECK(needs.left.front().requested == 64 * kMiB);
}

TEST_CASE("each device has a need of its own, and so has a graph in a graph") {
  Graphs all;
  const CUgraph inner = all.graphs.graph(0, {allocated(5, 32 * kMiB, 0), allocated(6, 16 * kMiB, 1)});
  const CUgraph graph = all.graphs.graph(
      0, {allocated(1, 64 * kMiB, 0), freed(1), allocated(2, 8 * kMiB, 1), freed(2), FakeGraphs::child(inner)});
  CHECK(all.of(graph, 0) == (64 + 32) * kMiB);
  CHECK(all.of(graph, 1) == (24 + 32) * kMiB);
}

TEST_CASE("a graph without allocations, and a driver that does not tell, have no need") {
  Graphs all;
  CHECK(policy::graph_needs(all.graphs.graph(0, {{}, {}})).at_once.empty());
  CHECK(policy::graph_needs(all.graphs.graph(0, {})).at_once.empty());
  const CUgraph graph = all.graphs.graph(0, {allocated(1, kMiB)});
  driver::real.cuGraphNodeGetType.set(nullptr);
  CHECK(policy::graph_needs(graph).at_once.empty());
}

TEST_CASE("where the driver does not tell the order, the sum counts") {
  Graphs all;
  const CUgraph graph = all.graphs.graph(0, {allocated(1, 64 * kMiB), freed(1), allocated(2, 64 * kMiB)});
  driver::real.cuGraphGetEdges_v2.set(nullptr);
  driver::real.cuGraphGetEdges.set(nullptr);
  CHECK(all.of(graph) == 128 * kMiB);
}

TEST_CASE("a graph in graphs counts however deep it lies") {
  Graphs all;
  CUgraph graph = all.graphs.graph(0, {allocated(1, 64 * kMiB), freed(1)});
  for (int depth = 0; depth < 100; ++depth) {
    graph = all.graphs.graph(0, {FakeGraphs::child(graph)});
  }
  CHECK(all.of(graph) == (64 + 32) * kMiB);
}

TEST_CASE("graphs in a graph run where it has them in its order") {
  Graphs all;
  const auto child = [&](CUdeviceptr address) {
    return FakeGraphs::child(all.graphs.graph(0, {allocated(address, 64 * kMiB), freed(address)}));
  };
  CHECK(all.of(all.graphs.graph(0, {child(1), child(2), child(3)})) == (64 + 32) * kMiB);
  CHECK(all.of(all.graphs.graph(0, {child(1), child(2), child(3)}, false)) == (192 + 32) * kMiB);
}

TEST_CASE("a block that a graph in a graph allocates may be freed by the graph around it, or by another one in it") {
  Graphs all;
  const FakeGraphs::Node first = FakeGraphs::child(all.graphs.graph(0, {allocated(1, 64 * kMiB)}));
  const FakeGraphs::Node last = FakeGraphs::child(all.graphs.graph(0, {freed(1)}));
  for (const FakeGraphs::Node &end : {freed(1), last}) {
    const policy::GraphNeeds needs =
        policy::graph_needs(all.graphs.graph(0, {first, end, allocated(2, 64 * kMiB), freed(2)}));
    REQUIRE(needs.at_once.size() == 1);
    CHECK(needs.at_once.front().bytes == (64 + 32) * kMiB);
    CHECK(needs.left.empty());
    CHECK(needs.frees.empty());
  }
}

TEST_CASE("the nodes of a graph without an order of its own stay between those around it") {
  Graphs all;
  const CUgraph empty = all.graphs.graph(0, {});
  const CUgraph graph = all.graphs.graph(
      0, {allocated(1, 64 * kMiB), freed(1), FakeGraphs::child(empty), allocated(2, 64 * kMiB), freed(2)});
  CHECK(all.of(graph) == 64 * kMiB);
}

TEST_CASE("a chain of many thousand blocks needs one of them") {
  Graphs all;
  std::vector<FakeGraphs::Node> nodes;
  for (CUdeviceptr address = 1; address <= 50'000; ++address) {
    nodes.push_back(allocated(address, kMiB + address % 7 * 512));
    nodes.push_back(freed(address));
  }
  CHECK(all.of(all.graphs.graph(0, nodes)) < 3 * kMiB);
}

TEST_CASE("sections of parallel branches, one after another, need one section") {
  Graphs all;
  constexpr std::size_t kSections = 500;
  constexpr std::size_t kBranches = 8;
  std::vector<FakeGraphs::Node> nodes = {{}};
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  for (std::size_t section = 0; section < kSections; ++section) {
    const std::size_t fork = nodes.size() - 1;
    const std::size_t join = nodes.size() + 2 * kBranches;
    for (std::size_t branch = 0; branch < kBranches; ++branch) {
      nodes.push_back(allocated(nodes.size(), kMiB));
      nodes.push_back(freed(nodes.size() - 1));
      edges.insert(edges.end(),
                   {{fork, nodes.size() - 2}, {nodes.size() - 2, nodes.size() - 1}, {nodes.size() - 1, join}});
    }
    nodes.push_back({});
  }
  const CUgraph graph = all.graphs.graph(0, nodes, false);
  all.graphs.connect(graph, edges);
  CHECK(all.of(graph) == kBranches * kMiB);
}

TEST_CASE("a part of a freed block's place that another one took is not free") {
  Graphs all;
  // 1 is freed before 2 and 3, which are there together; 4 follows the free of 1 only.
  const CUgraph graph = all.graphs.graph(0, {allocated(1, 64 * kMiB), freed(1), allocated(2, 16 * kMiB),
                                             allocated(3, 16 * kMiB), allocated(4, 32 * kMiB)});
  CHECK(all.of(graph) == 64 * kMiB);
  const CUgraph more = all.graphs.graph(0, {allocated(1, 64 * kMiB), freed(1), allocated(2, 16 * kMiB),
                                            allocated(3, 16 * kMiB), allocated(4, 33 * kMiB)});
  CHECK(all.of(more) == 97 * kMiB);
}

TEST_CASE("what lies in a circle, which no driver runs, counts in full") {
  Graphs all;
  const CUgraph graph =
      all.graphs.graph(0, {allocated(1, 64 * kMiB), freed(1), allocated(2, 64 * kMiB), freed(2)}, false);
  all.graphs.connect(graph, {{0, 1}, {1, 2}, {2, 3}, {3, 0}});
  CHECK(all.of(graph) == 128 * kMiB);
}
