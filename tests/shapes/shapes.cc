#include "shapes/shapes.h"

#include <algorithm>
#include <array>

namespace ration::shapes {
namespace {

constexpr std::array<Shape, 8> kShapes{{
    {"train", train},
    {"serve", serve},
    {"steady1k", steady1k},
    {"steady10k", steady10k},
    {"experts", experts},
    {"diffusion", diffusion},
    {"graph", graph},
    {"rays", rays},
}};

}  // namespace

std::span<const Shape> all() {
  return kShapes;
}

const Shape *find(std::string_view name) {
  const auto *const found =
      std::find_if(kShapes.begin(), kShapes.end(), [name](const Shape &shape) { return shape.name == name; });
  return found == kShapes.end() ? nullptr : &*found;
}

std::uint64_t repeated(std::uint64_t times, double length) {
  return std::max(static_cast<std::uint64_t>(static_cast<double>(times) * length), std::uint64_t{1});
}

}  // namespace ration::shapes
