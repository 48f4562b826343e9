// Replays on granules: what a reader of the placements can check, and the smallest arenas.
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "catch.h"
#include "logs/replay/granule_arena.h"
#include "logs/replay/granule_costs.h"
#include "pool/stitch/sizes.h"
#include "shapes/shapes.h"
#include "tests/bench/pool_replay/replay.h"

using namespace ration::pool;
using namespace ration::pool::replay;

namespace {

constexpr std::uint64_t kPage = GranuleArena::kPageBytes;

// Reads placements as anyone would: each block's pages, and that no byte of a page belongs to two.
struct Reader {
  std::uint64_t pages;
  std::map<std::uint64_t, std::map<std::uint64_t, std::uint64_t>> used;  // page -> start -> end
  struct Part {
    std::uint64_t page, start, end;
  };
  std::map<std::string, std::vector<Part>> blocks;

  void allocate(const std::string &id, std::uint64_t bytes, std::istream &words) {
    std::vector<Part> &parts = blocks[id];
    std::uint64_t left = bytes;
    for (std::string word; words >> word;) {
      const std::size_t colon = word.find(':');
      const std::uint64_t page = std::stoull(word.substr(0, colon));
      const std::uint64_t start = colon == std::string::npos ? 0 : std::stoull(word.substr(colon + 1));
      REQUIRE(page < pages);
      REQUIRE(left > 0);
      const std::uint64_t part = std::min(left, kPage - start);
      REQUIRE((colon != std::string::npos || part == kPage));
      auto &held = used[page];
      const auto after = held.upper_bound(start);
      REQUIRE((after == held.end() || start + part <= after->first));
      REQUIRE((after == held.begin() || std::prev(after)->second <= start));
      held[start] = start + part;
      parts.push_back({page, start, start + part});
      left -= part;
    }
    REQUIRE(left == 0);
  }
  void free(const std::string &id) {
    for (const Part &part : blocks.at(id)) used[part.page].erase(part.start);
    blocks.erase(id);
  }
};

void check_placements(const Trace &trace, std::uint64_t arena, std::size_t expected) {
  std::ostringstream out;
  REQUIRE_FALSE(ration::pool::replay::replay(trace, arena, Backing::vmm, &out));
  Reader reader{arena / kPage, {}, {}};
  std::istringstream lines(out.str());
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    std::istringstream words(line);
    std::string verb;
    std::string id;
    words >> verb >> id;
    if (verb == "f") {
      reader.free(id);
      continue;
    }
    std::uint64_t bytes = 0;
    words >> bytes;
    reader.allocate(id, bytes, words);
  }
  CHECK(count == expected);
}

}  // namespace

TEST_CASE("of granules, no byte of a page ever backs two blocks, in the smallest arena and in an ample one",
          "[alone]") {
  for (const char *name : {"serve", "steady1k", "train", "graph"}) {
    CAPTURE(name);
    const Trace trace = ration::shapes::find(name)->generate(5, 0.05);
    check_placements(trace, find_minimum(trace, Backing::vmm), trace.operations.size());
    check_placements(trace, 2 * trace.peak_bytes + 64 * kPage, trace.operations.size());
  }
}

TEST_CASE("a request is served while whole free pages suffice for it, whatever the program did before") {
  std::mt19937_64 random(11);
  const auto below = [&random](std::uint64_t n) { return random() % n; };
  constexpr std::uint64_t kPages = 512;
  for (int round = 0; round < 20; ++round) {
    GranuleArena arena(kPages * kPage);
    SharedPool pool;
    arena.preallocate(pool);
    std::map<Address, std::uint64_t> live;
    std::uint64_t used = 0;
    for (int step = 0; step < 2000; ++step) {
      const bool large = below(2) == 0;
      const std::uint64_t bytes = 1 + below(large ? 40 * kPage : kPage / 2);
      const AllocateOutcome outcome = pool.allocate(bytes, arena);
      if (outcome) {
        live[outcome.block.address] = outcome.block.bytes;
        used += outcome.block.bytes;
      }
      while (!live.empty() && (used > kPages * kPage * 9 / 10 || below(3) == 0)) {
        auto at = live.begin();
        std::advance(at, below(live.size()));
        used -= at->second;
        REQUIRE(pool.free(at->first));
        live.erase(at);
      }
    }
    // Every second page is freed, and half of the memory is one block then.
    while (!live.empty()) {
      REQUIRE(pool.free(live.begin()->first));
      live.erase(live.begin());
    }
    std::vector<Address> pages;
    for (;;) {
      const AllocateOutcome outcome = pool.allocate(kPage, arena);
      if (!outcome) break;
      pages.push_back(outcome.block.address);
    }
    CHECK(pages.size() == kPages);
    for (std::size_t i = 0; i < pages.size(); i += 2) REQUIRE(pool.free(pages[i]));
    const AllocateOutcome half = pool.allocate(kPages / 2 * kPage, arena);
    CHECK(half);
    CHECK_FALSE(pool.allocate(1, arena));
    REQUIRE(pool.free(half.block.address));
    CHECK(pool.allocate(kPages / 2 * kPage, arena));
  }
}

TEST_CASE("a program that repeats itself makes no driver call after its first steps") {
  const Trace trace = ration::shapes::find("train")->generate(3, 0.2);
  Driver driver;
  REQUIRE_FALSE(
      ration::pool::replay::replay(trace, trace.peak_bytes + trace.peak_bytes / 20, Backing::vmm, nullptr, &driver));
  CHECK(driver.last_operation == 0);
  CHECK(driver.preallocation.create <= 1024);
}

TEST_CASE("a preallocation of any size takes at most a quarter of a second by the published costs") {
  namespace costs = ration::pool::replay::costs;
  for (const std::uint64_t gib : {1U, 2U, 3U, 4U, 8U, 16U, 40U, 60U, 80U, 140U}) {
    double us = 0;
    for (const std::uint64_t bytes : stitch::preallocation_sizes(gib << 30U, kPage)) {
      us += costs::factor(bytes) * (costs::kCreateUs + costs::kMapUs + costs::kAccessUs);
    }
    INFO(gib << " GiB: " << us << " us");
    CHECK(us <= 250e3);
  }
}
