// The bytes of graphs' blocks: launched again and again, beside each other, in one stream and in several.
#include <algorithm>
#include <random>

#include "tests/simcuda/conformance/graph.h"

namespace simcuda::conformance {
namespace {

constexpr std::size_t kSlot = 256 * 1024;  // what is compared of each block

// A graph of blocks that are filled, copied onto each other, copied out, and freed by the graph or left. All that
// touches a block is ordered.
class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed) : random_(seed) {
    const std::size_t count = 1 + below(6);
    results_ = device_memory(count * kSlot);
    for (std::size_t i = 0; i < count; ++i) add();
    while (!open_.empty()) close();
  }

  std::size_t bytes() const { return bytes_; }
  std::size_t largest() const { return largest_; }
  const NewGraph &graph() const { return graph_; }

  void check_results() const {
    for (std::size_t i = 0; i < expected_.size(); ++i) {
      const std::vector<unsigned char> seen = read_back(results_ + i * kSlot, kSlot);
      const auto other =
          std::find_if(seen.begin(), seen.end(), [&](unsigned char byte) { return byte != expected_[i]; });
      CHECK(other == seen.end());
    }
  }
  void free_what_is_left(CUstream stream) const {
    for (const CUdeviceptr address : left_) REQUIRE(cuMemFreeAsync(address, stream) == CUDA_SUCCESS);
  }

 private:
  struct Block {
    CUdeviceptr address = 0;
    std::size_t result = 0;
    unsigned char value = 0;
    CUgraphNode last = nullptr;
  };

  std::size_t below(std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_); }

  // After any earlier free, or after none: blocks may then share memory, or may not.
  void add() {
    const std::size_t size = kSlot + below(40) * kMiB + below(1000);
    Nodes after;
    if (!freed_.empty() && below(3) != 0) after = {freed_[below(freed_.size())]};
    Block block;
    block.result = expected_.size();
    block.value = static_cast<unsigned char>(1 + below(255));
    const auto [allocated, address] = graph_.allocate(size, after);
    block.address = address;
    block.last = graph_.fill(address, block.value, kSlot, {allocated});
    expected_.push_back(0);
    bytes_ += size;
    largest_ = std::max(largest_, size);
    open_.push_back(block);
    while (open_.size() > 1 && below(2) == 0) mix();
    if (below(2) == 0) close();
  }

  // One open block becomes a copy of another.
  void mix() {
    Block &to = open_[below(open_.size())], &from = open_[below(open_.size())];
    if (&to == &from) return;
    const Nodes after = to.last == from.last ? Nodes{to.last} : Nodes{to.last, from.last};
    to.last = from.last = graph_.copy(to.address, from.address, kSlot, after);
    to.value = from.value;
  }

  void close() {
    const std::size_t which = below(open_.size());
    const Block block = open_[which];
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(which));
    expected_[block.result] = block.value;
    const CUgraphNode copied = graph_.copy(results_ + block.result * kSlot, block.address, kSlot, {block.last});
    if (below(4) == 0) {
      left_.push_back(block.address);
    } else {
      freed_.push_back(graph_.free(block.address, {copied}));
    }
  }

  std::mt19937 random_;
  NewGraph graph_;
  CUdeviceptr results_ = 0;
  std::size_t bytes_ = 0, largest_ = 0;
  std::vector<Block> open_;
  Nodes freed_;
  std::vector<CUdeviceptr> left_;
  std::vector<unsigned char> expected_;  // of each result
};

TEST_CASE("random graphs of blocks compute the same at each launch, beside each other in several streams") {
  const CurrentContext context;
  const CUstream streams[] = {new_stream(CU_STREAM_NON_BLOCKING), new_stream(CU_STREAM_NON_BLOCKING)};
  for (unsigned seed = 1; seed <= 12; ++seed) {
    trim();
    RandomGraph one(2 * seed), other(2 * seed + 1);
    Exec execs[] = {Exec(one.graph()), Exec(other.graph())};
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 2; ++i) {
        REQUIRE(cuGraphLaunch(execs[i].get(), streams[i]) == CUDA_SUCCESS);
        (i == 0 ? one : other).free_what_is_left(streams[i]);
      }
    }
    REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
    one.check_results();
    other.check_results();
    trim();
    CHECK(graph_memory() == 0);
  }
}

TEST_CASE("a graph takes between its largest block and the sum of all") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  for (unsigned seed = 100; seed < 110; ++seed) {
    trim();
    RandomGraph random(seed);
    Exec(random.graph()).launch(stream);
    const std::uint64_t taken = graph_memory();
    CHECK(taken >= random.largest());
    CHECK(taken < random.bytes() + 64 * kMiB);
    random.check_results();
    random.free_what_is_left(stream);
    REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  }
  trim();
}

TEST_CASE("a block's bytes are lost when it is freed") {
  if (!simulator()) return;
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  NewGraph graph, leaving;
  const auto [first_node, freed] = graph.allocate(kMiB);
  graph.free(freed, {graph.fill(freed, 7, kMiB, {first_node})});
  Exec(graph).launch(stream);
  const auto *const first = static_cast<const unsigned char *>(simulator().host_view(freed));
  REQUIRE(first != nullptr);
  CHECK(*first == 0);
  const auto [second_node, left] = leaving.allocate(kMiB);
  leaving.fill(left, 7, kMiB, {second_node});
  Exec(leaving).launch(stream);
  const auto *const second = static_cast<const unsigned char *>(simulator().host_view(left));
  CHECK(*second == 7);
  REQUIRE(cuMemFreeAsync(left, stream) == CUDA_SUCCESS);
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(*second == 0);
  trim();
}

TEST_CASE("kernels of a graph read and write its blocks") {
  if (!simulator()) return;
  const CurrentContext context;
  const std::size_t sizes[] = {sizeof(CUdeviceptr)};
  simulator().register_kernel(
      "graph_bytes_test_add",
      [](const simcuda_launch *one) {
        auto *const bytes =
            static_cast<unsigned char *>(simulator().host_view(*static_cast<CUdeviceptr *>(one->params[0])));
        for (int i = 0; i < 64; ++i) ++bytes[i];
      },
      sizes, 1);
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  REQUIRE(cuModuleLoadData(&module, "image") == CUDA_SUCCESS);
  REQUIRE(cuModuleGetFunction(&function, module, "graph_bytes_test_add") == CUDA_SUCCESS);
  const CUstream stream = new_stream();
  const CUdeviceptr result = device_memory(64);
  CUdeviceptr block = 0;
  REQUIRE(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  REQUIRE(cuMemAllocAsync(&block, 64, stream) == CUDA_SUCCESS);
  void *params[] = {&block};
  REQUIRE(cuMemsetD8Async(block, 4, 64, stream) == CUDA_SUCCESS);
  REQUIRE(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr) == CUDA_SUCCESS);
  REQUIRE(cuMemcpyDtoDAsync(result, block, 64, stream) == CUDA_SUCCESS);
  REQUIRE(cuMemFreeAsync(block, stream) == CUDA_SUCCESS);
  CUgraph graph = nullptr;
  REQUIRE(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
  Exec exec(graph);
  for (int round = 0; round < 2; ++round) {
    exec.launch(stream);
    CHECK(read_back(result, 64) == std::vector<unsigned char>(64, 5));
  }
  CHECK(cuGraphDestroy(graph) == CUDA_SUCCESS);
  trim();
}

}  // namespace
}  // namespace simcuda::conformance
