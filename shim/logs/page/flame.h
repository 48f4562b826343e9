// The stacks of a device's blocks as one tree, without nodes that are too small to see. Layer: logs. Values.
#pragma once

#include <cstdint>
#include <vector>

#include "logs/page/page_log.h"

namespace ration::logs {

struct FlameNode {
  Site::Place place;
  std::size_t depth = 0;
  SiteFigures figures;  // includes the figures of all functions called from here
};

struct Flame {
  std::vector<FlameNode> nodes;  // each node comes before the nodes of the functions it called
  std::uint64_t left_out = 0;
};

Flame flame_of(const std::vector<Site> &sites, const std::vector<SiteFigures> &figures);

}  // namespace ration::logs
