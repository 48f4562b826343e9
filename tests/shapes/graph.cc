// Graph analytics: compressed graphs that stay for many queries, frontiers that grow and shrink by powers within a
// query, sorts and scans that need as much memory again as their input.
#include <algorithm>
#include <bit>

#include "shapes/random.h"
#include "shapes/recorder.h"
#include "shapes/shapes.h"

namespace ration::shapes {
namespace {

using Id = Recorder::Id;

constexpr std::uint64_t kQuestions = 1'500;
constexpr std::uint64_t kMostEdges = std::uint64_t{3} << 30;  // of all loaded graphs
constexpr std::uint64_t kSmallestBuffer = 64 << 10;

struct Graph {
  std::uint64_t vertices, edges;
  std::vector<Id> arrays;
};

// A buffer that doubles when it is full. The old one lives until it has been copied.
class Growing {
 public:
  explicit Growing(Recorder &recorder) : recorder_(recorder), id_(recorder.allocate(kSmallestBuffer)) {}
  Growing(const Growing &) = delete;
  Growing &operator=(const Growing &) = delete;
  ~Growing() { recorder_.free(id_); }
  void hold(std::uint64_t bytes) {
    const std::uint64_t capacity = std::max(std::bit_ceil(bytes), kSmallestBuffer);
    if (capacity <= recorder_.bytes(id_) && capacity * 16 > recorder_.bytes(id_)) return;
    const Id larger = recorder_.allocate(capacity);
    recorder_.free(id_);
    id_ = larger;
  }

 private:
  Recorder &recorder_;
  Id id_;
};

class Analytics {
 public:
  explicit Analytics(std::uint64_t seed) : random_(seed) {}

  pool::replay::Trace run(std::uint64_t questions) {
    load();
    for (; questions > 0; --questions) {
      if (random_.one_in(12)) load();
      const Graph &graph = graphs_[random_.between(0, graphs_.size() - 1)];
      switch (random_.between(0, 3)) {
        case 0:
        case 1:
          search(graph);
          break;
        case 2:
          rank(graph);
          break;
        default:
          components(graph);
          break;
      }
    }
    return recorder_.take();
  }

 private:
  void load() {
    Graph graph{};
    graph.vertices = random_.log_uniform(1 << 18, 7);
    graph.edges = graph.vertices * random_.between(6, 40);
    while (!graphs_.empty() && edges_ + graph.edges > kMostEdges) unload();
    edges_ += graph.edges;
    const Id from = recorder_.allocate(graph.edges * 4);
    const Id to = recorder_.allocate(graph.edges * 4);
    const Id sorted_from = recorder_.allocate(graph.edges * 4);
    const Id sorted_to = recorder_.allocate(graph.edges * 4);
    recorder_.pass(graph.edges / 12 + (1 << 20));
    recorder_.free({from, to});
    graph.arrays = {recorder_.allocate((graph.vertices + 1) * 8), recorder_.allocate(graph.edges * 4)};
    recorder_.pass(graph.vertices / 16 + 4096);
    recorder_.free({sorted_from, sorted_to});
    if (random_.one_in(2)) graph.arrays.push_back(recorder_.allocate(graph.edges * 4));  // weights of edges
    graphs_.push_back(graph);
  }

  void unload() {
    const std::size_t which = random_.between(0, graphs_.size() - 1);
    edges_ -= graphs_[which].edges;
    recorder_.free(graphs_[which].arrays);
    graphs_.erase(graphs_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  // Breadth first: a frontier that grows by a power, covers most of the graph at once, and shrinks.
  void search(const Graph &graph) {
    const Id distances = recorder_.allocate(graph.vertices * 4);
    const Id visited = recorder_.allocate(graph.vertices / 8 + 64);
    {
      Growing frontier(recorder_);
      Growing next(recorder_);
      const std::uint64_t growth = random_.between(4, 40);
      std::uint64_t wave = 1;
      std::uint64_t left = graph.vertices - 1;
      for (bool ebbs = false; left > 0 && wave > 0;) {
        const std::uint64_t reached = std::min(left, ebbs ? wave / growth : wave * growth);
        const std::uint64_t neighbours = std::min(wave * (graph.edges / graph.vertices + 1), graph.edges);
        recorder_.pass(wave / 128 * 8 + 1024);  // a scan over the degrees
        const Id expanded = recorder_.allocate(neighbours * 4 + 512);
        next.hold(reached * 4 + 512);
        recorder_.free(expanded);
        frontier.hold(reached * 4 + 512);
        ebbs = ebbs || reached > left / 2;
        left -= reached;
        wave = reached;
      }
    }
    recorder_.free({visited, distances});
  }

  void rank(const Graph &graph) {
    const Id old_ranks = recorder_.allocate(graph.vertices * 4);
    const Id ranks = recorder_.allocate(graph.vertices * 4);
    for (std::uint64_t iterations = random_.between(5, 30); iterations > 0; --iterations) {
      const Id shares = recorder_.allocate(graph.vertices * 4);
      recorder_.pass(graph.vertices / 512 + 1024);
      recorder_.free(shares);
    }
    recorder_.free(old_ranks);
    // The best results, sorted.
    const Id order = recorder_.allocate(graph.vertices * 4);
    const Id sorted = recorder_.allocate(graph.vertices * 8);
    recorder_.pass(graph.vertices / 12 + (1 << 20));
    recorder_.free({order, ranks, sorted});
  }

  void components(const Graph &graph) {
    const Id labels = recorder_.allocate(graph.vertices * 4);
    std::uint64_t edges = graph.edges;
    Id open = recorder_.allocate(edges * 8);
    while (edges > 4096) {
      edges = edges / random_.between(2, 8) + 1;
      const Id flags = recorder_.allocate(graph.vertices);
      const Id fewer = recorder_.allocate(edges * 8);
      recorder_.free({flags, open});
      open = fewer;
    }
    recorder_.free({open, labels});
  }

  Random random_;
  Recorder recorder_;
  std::vector<Graph> graphs_;
  std::uint64_t edges_ = 0;  // of all graphs
};

}  // namespace

pool::replay::Trace graph(std::uint64_t seed, double length) {
  return Analytics(seed).run(repeated(kQuestions, length));
}

}  // namespace ration::shapes
