// Graphs that allocate, for one test, in addition to its FakeDriver. All graphs share one pool on the first device. The
// pool grows in steps, and only a trim gives back memory that no launch needs. Threads: one, except for the hooks.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "unit/policy/fake_driver.h"

namespace ration::test {

class FakeGraphs {
 public:
  explicit FakeGraphs(FakeDriver &driver);
  FakeGraphs(const FakeGraphs &) = delete;
  FakeGraphs &operator=(const FakeGraphs &) = delete;

  struct Node {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    CUdeviceptr address = 0;
    std::uint64_t bytes = 0;
    int device = 0;
    CUgraph child = nullptr;
  };
  struct Graph {
    std::deque<Node> nodes;
    std::vector<std::pair<std::size_t, std::size_t>> edges;
    std::uint64_t takes = 0;  // what the driver takes for it immediately
  };

  // Each node comes after the one before it, unless `ordered` is false.
  CUgraph graph(std::uint64_t takes, const std::vector<Node> &nodes, bool ordered = true);
  // Replaces the edges of the graph.
  void connect(CUgraph graph, std::vector<std::pair<std::size_t, std::size_t>> edges) {
    graphs_.at(graph).edges = std::move(edges);
  }
  static Node allocate(CUdeviceptr address, std::uint64_t bytes, int device = 0) {
    return {CU_GRAPH_NODE_TYPE_MEM_ALLOC, address, bytes, device, nullptr};
  }
  static Node free(CUdeviceptr address) { return {CU_GRAPH_NODE_TYPE_MEM_FREE, address, 0, 0, nullptr}; }
  static Node child(CUgraph graph) { return {CU_GRAPH_NODE_TYPE_GRAPH, 0, 0, 0, graph}; }

  // The driver's calls.
  CUresult instantiate(CUgraphExec *exec, CUgraph graph);
  CUresult run(const char *function, CUgraphExec exec);

  bool takes_at_instantiation = false;
  int of_ours = 0;  // instantiations of graphs that the program did not create
  std::uint64_t step = 32 * kMiB;
  std::uint64_t in_use = 0;      // part of the reserved bytes; a trim leaves it, and no other graph gets it
  std::function<void()> on_run;  // inside a launch, before it takes anything
  std::uint64_t reserved = 0;
  int trims = 0;

 private:
  CUresult take(std::uint64_t bytes);
  void fill_slots_of_ours();

  FakeDriver &driver_;
  std::map<CUgraph, Graph> graphs_;
  std::map<CUgraphExec, std::uint64_t> execs_;
  CUgraph ours_ = nullptr;
  std::uintptr_t next_ = 0x1000;
};

}  // namespace ration::test
