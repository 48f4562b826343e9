#include "shapes/arena.h"

#include <algorithm>

#include "pool/unit.h"

namespace ration::shapes {
namespace {

using pool::replay::Operation;
using pool::replay::Trace;

bool fits(const Trace &trace, std::uint64_t bytes, const NamedPolicy &named, std::size_t &most_holes) {
  const std::unique_ptr<Policy> policy = named.make();
  Arena arena(bytes, *policy);
  std::size_t most = 0;
  for (const Operation &operation : trace.operations) {
    if (operation.is_free) {
      arena.free(operation.id);
      most = std::max(most, arena.holes());
    } else if (!arena.allocate(operation.id, operation.bytes)) {
      return false;
    }
  }
  most_holes = most;
  return true;
}

}  // namespace

Arena::Arena(std::uint64_t bytes, Policy &policy) : policy_(policy) {
  holes_.start = {0};
  holes_.granules = {bytes / pool::kUnitBytes};
  holes_.entered = {0};
}

void Arena::erase(std::size_t hole) {
  for (std::vector<std::uint64_t> *column : {&holes_.start, &holes_.granules, &holes_.entered}) {
    column->erase(column->begin() + static_cast<std::ptrdiff_t>(hole));
  }
}

void Arena::set(std::size_t hole, std::uint64_t start, std::uint64_t granules) {
  holes_.start[hole] = start;
  holes_.granules[hole] = granules;
  holes_.entered[hole] = ++changes_;
}

std::optional<std::uint64_t> Arena::allocate(std::uint32_t id, std::uint64_t bytes) {
  const std::uint64_t granules = pool::units_of(bytes);
  const std::optional<Choice> choice = policy_.choose(holes_, granules);
  if (!choice) return std::nullopt;
  const std::uint64_t hole_start = holes_.start[choice->hole];
  const std::uint64_t rest = holes_.granules[choice->hole] - granules;
  const std::uint64_t start = choice->end == End::kLow ? hole_start : hole_start + rest;
  if (rest == 0) {
    erase(choice->hole);
  } else {
    set(choice->hole, choice->end == End::kLow ? hole_start + granules : hole_start, rest);
  }
  if (id >= blocks_.size()) blocks_.resize(std::size_t{id} + 1);
  blocks_[id] = {start, granules, clock_};
  clock_ += granules;
  live_ += granules;
  policy_.placed(start);
  return start;
}

void Arena::free(std::uint32_t id) {
  const Block &block = blocks_[id];
  live_ -= block.granules;
  policy_.freed({block.start, block.granules, clock_ - block.born, live_});
  const auto above = std::lower_bound(holes_.start.begin(), holes_.start.end(), block.start);
  const auto hole = static_cast<std::size_t>(above - holes_.start.begin());
  const bool joins_next = hole < holes_.size() && *above == block.start + block.granules;
  const bool joins_previous = hole > 0 && holes_.start[hole - 1] + holes_.granules[hole - 1] == block.start;
  if (joins_previous) {
    const std::uint64_t next = joins_next ? holes_.granules[hole] : 0;
    set(hole - 1, holes_.start[hole - 1], holes_.granules[hole - 1] + block.granules + next);
    if (joins_next) erase(hole);
    return;
  }
  if (joins_next) {
    set(hole, block.start, block.granules + holes_.granules[hole]);
    return;
  }
  for (std::vector<std::uint64_t> *column : {&holes_.start, &holes_.granules, &holes_.entered}) {
    column->insert(column->begin() + static_cast<std::ptrdiff_t>(hole), 0);
  }
  set(hole, block.start, block.granules);
}

Smallest smallest_arena(const Trace &trace, const NamedPolicy &policy) {
  Smallest result{};
  std::uint64_t failing = trace.peak_bytes - 1;
  std::uint64_t fitting = trace.peak_bytes + trace.peak_bytes / 32 + 2 * pool::kUnitBytes;
  while (!fits(trace, fitting, policy, result.most_holes)) {
    failing = fitting;
    fitting += fitting / 8;
  }
  while (fitting - failing > std::max(fitting / 2000, std::uint64_t{1})) {
    const std::uint64_t middle = failing + (fitting - failing) / 2;
    (fits(trace, middle, policy, result.most_holes) ? fitting : failing) = middle;
  }
  result.bytes = fitting;
  return result;
}

}  // namespace ration::shapes
