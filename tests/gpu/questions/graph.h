// Graphs that allocate, as these programs use them. Layer: question.h. Owns: what it created; released at the end of
// the scope.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/gpu/questions/question.h"

namespace question {

inline std::uint64_t attribute(CUgraphMem_attribute which) {
  cuuint64_t value = 0;
  must(cuDeviceGetGraphMemAttribute(0, which, &value));
  return value;
}

inline std::uint64_t reserved() {
  return attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT);
}
inline std::uint64_t used() {
  return attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT);
}

inline CUresult add_allocation(CUgraph graph, std::size_t bytes, std::vector<CUgraphNode> after, CUgraphNode *node,
                               CUdeviceptr *address) {
  CUDA_MEM_ALLOC_NODE_PARAMS params = {};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  params.bytesize = bytes;
  const CUresult code = cuGraphAddMemAllocNode(node, graph, after.data(), after.size(), &params);
  *address = params.dptr;
  return code;
}

// A graph that allocates and frees one block after the other or, if `at_once`, allocates all blocks before it frees the
// first.
class Graph {
 public:
  Graph(const std::vector<std::size_t> &blocks, bool at_once, bool free) {
    must(cuGraphCreate(&graph_, 0));
    std::vector<CUgraphNode> last;
    for (const std::size_t bytes : blocks) {
      CUgraphNode node = nullptr;
      CUdeviceptr address = 0;
      must(add_allocation(graph_, bytes, last, &node, &address));
      addresses_.push_back(address);
      last = {node};
      if (free && !at_once) last = {add_free(address, last)};
    }
    if (free && at_once) {
      for (const CUdeviceptr address : addresses_) last = {add_free(address, last)};
    }
  }
  ~Graph() { destroy(); }
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;

  CUgraphNode add_free(CUdeviceptr address, const std::vector<CUgraphNode> &after) {
    CUgraphNode node = nullptr;
    must(cuGraphAddMemFreeNode(&node, graph_, after.data(), after.size(), address));
    return node;
  }
  void destroy() {
    if (graph_ != nullptr) cuGraphDestroy(graph_);
    graph_ = nullptr;
  }
  CUgraph get() const { return graph_; }
  CUdeviceptr address(std::size_t which = 0) const { return addresses_[which]; }

 private:
  CUgraph graph_ = nullptr;
  std::vector<CUdeviceptr> addresses_;
};

inline CUstream new_stream(Cleanup &cleanup) {
  CUstream stream = nullptr;
  must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  cleanup.add([stream] { cuStreamDestroy(stream); });
  return stream;
}

inline CUgraphExec instantiated(const Graph &graph, unsigned long long flags = 0) {
  CUgraphExec exec = nullptr;
  must(cuGraphInstantiate(&exec, graph.get(), flags));
  return exec;
}

inline void launch(CUgraphExec exec, CUstream stream) {
  must(cuGraphLaunch(exec, stream));
  must(cuStreamSynchronize(stream));
}

// How much device memory a step took, and the attributes of the graph memory after it.
class Steps {
 public:
  Steps(Test &test, std::string name) : test_(test), name_(std::move(name)), free_(free_bytes()) {}
  void after(const std::string &step) {
    const std::size_t now = free_bytes();
    const std::string key = name_ + "." + step;
    test_.number(key + ".taken", static_cast<long long>(free_) - static_cast<long long>(now));
    test_.number(key + ".reserved", reserved());
    test_.number(key + ".used", used());
    free_ = now;
  }

 private:
  Test &test_;
  std::string name_;
  std::size_t free_;
};

}  // namespace question
