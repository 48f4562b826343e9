#include "logs/page/caller_stack.h"

#include <algorithm>
#include <numeric>

#include "catch.h"

using ration::logs::CallerStack;

namespace {

std::uint64_t sum_of(const CallerStack::Point &point) {
  return std::accumulate(point.bytes.begin(), point.bytes.end(), std::uint64_t{0});
}

// The sums of a stack at its times.
std::vector<std::pair<std::uint64_t, std::uint64_t>> sums_of(const CallerStack &stack) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> sums;
  for (const CallerStack::Point &point : stack.points()) {
    sums.emplace_back(point.ts_ns, sum_of(point));
  }
  return sums;
}

using Sums = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

}  // namespace

TEST_CASE("a stack keeps the highest moment of each part of the run, with what all callers held then") {
  CallerStack stack(1000, 2);
  stack.change(10, 0, 5, false);
  stack.change(20, CallerStack::kCallers, 7, false);
  stack.change(30, 0, 5, true);
  stack.change(800, 1, 1, false);
  stack.finish(1000);
  CHECK(sums_of(stack) == Sums{{0, 0}, {20, 12}, {30, 7}, {800, 8}});
  CHECK(stack.points()[1].bytes[0] == 5);
}

TEST_CASE("what was freed before a long end is not drawn to that end") {
  CallerStack stack(1000, 2);
  stack.change(10, 0, 50, false);
  stack.change(20, 0, 40, true);
  stack.change(30, 0, 10, true);
  stack.finish(1000);
  CHECK(sums_of(stack) == Sums{{0, 0}, {10, 50}, {20, 0}});
}

TEST_CASE("a stack of many changes is nowhere above what was held, and touches the highest of all") {
  constexpr std::uint64_t kEnd = 100'000;
  CallerStack stack(kEnd, 50);
  std::vector<std::uint64_t> held(kEnd + 1, 0);
  for (std::uint64_t ts = 0; ts < kEnd; ++ts) {
    const std::uint64_t before = ts == 0 ? 0 : held[ts - 1];
    const bool is_less = before > ts % 97;
    stack.change(ts, 3, is_less ? before : ts % 1000, is_less);
    held[ts] = is_less ? 0 : before + ts % 1000;
  }
  held[kEnd] = held[kEnd - 1];
  stack.finish(kEnd);
  const Sums sums = sums_of(stack);
  CHECK(sums.size() <= 201);
  std::uint64_t most = 0;
  std::size_t above = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    most = std::max(most, sums[i].second);
    const std::uint64_t end = i + 1 < sums.size() ? sums[i + 1].first : kEnd;
    for (std::uint64_t ts = sums[i].first; ts < end; ++ts) {
      above += sums[i].second > held[ts] ? 1 : 0;
    }
  }
  CHECK(above == 0);
  CHECK(most == *std::max_element(held.begin(), held.end()));
}
