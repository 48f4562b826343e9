#include "logs/page/flame.h"

#include <algorithm>
#include <map>
#include <utility>

namespace ration::logs {
namespace {

constexpr std::size_t kNodes = 5'000;
constexpr std::uint64_t kSmallest = 2'000;  // a node with less than this part of each total is left out
constexpr std::size_t kDeepestNode = 400;

void add(SiteFigures &sum, const SiteFigures &figures) {
  const auto add_group = [](History::Group &to, const History::Group &group) {
    to.bytes += group.bytes;
    to.count += group.count;
  };
  add_group(sum.peak, figures.peak);
  add_group(sum.total, figures.total);
  add_group(sum.left, figures.left);
}

class Tree {
 public:
  Tree() : nodes_(1) {}

  void add_path(const Site &site, const SiteFigures &figures) {
    std::size_t at = 0;
    add(nodes_[0].figures, figures);
    for (const Site::Place &place : site.path) {
      if (nodes_[at].depth == kDeepestNode) {
        break;
      }
      const auto [entry, is_new] = nodes_[at].called.try_emplace(place.name, nodes_.size());
      const std::size_t child = entry->second;
      if (is_new) {
        const std::size_t depth = nodes_[at].depth + 1;
        nodes_.push_back({place, depth, {}, {}});
      }
      at = child;
      add(nodes_[at].figures, figures);
    }
  }

  // The nodes with at least one `part`th of one of the totals.
  Flame cut(std::uint64_t part) const {
    Flame flame;
    std::vector<std::size_t> open = {0};
    while (!open.empty()) {
      const Node &node = nodes_[open.back()];
      open.pop_back();
      if (node.depth != 0) {
        flame.nodes.push_back({node.place, node.depth - 1, node.figures});
      }
      for (auto called = node.called.rbegin(); called != node.called.rend(); ++called) {
        if (is_seen(nodes_[called->second].figures, part)) {
          open.push_back(called->second);
        }
      }
    }
    flame.left_out = nodes_.size() - 1 - flame.nodes.size();
    return flame;
  }

 private:
  struct Node {
    Site::Place place{};
    std::size_t depth = 0;
    SiteFigures figures;
    std::map<std::uint32_t, std::size_t> called;  // indices of called nodes, by name
  };

  bool is_seen(const SiteFigures &figures, std::uint64_t part) const {
    const SiteFigures &all = nodes_[0].figures;
    const auto is_large = [part](const History::Group &group, const History::Group &total) {
      return group.bytes != 0 && group.bytes >= total.bytes / part;
    };
    return is_large(figures.peak, all.peak) || is_large(figures.total, all.total) || is_large(figures.left, all.left);
  }

  std::vector<Node> nodes_;
};

}  // namespace

Flame flame_of(const std::vector<Site> &sites, const std::vector<SiteFigures> &figures) {
  Tree tree;
  for (std::size_t site = 0; site < std::min(sites.size(), figures.size()); ++site) {
    if (figures[site].total.count != 0) {
      tree.add_path(sites[site], figures[site]);
    }
  }
  std::uint64_t part = kSmallest;
  Flame flame = tree.cut(part);
  while (flame.nodes.size() > kNodes && part > 1) {
    part /= 2;
    flame = tree.cut(part);
  }
  return flame;
}

}  // namespace ration::logs
