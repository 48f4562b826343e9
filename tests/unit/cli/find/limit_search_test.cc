#include "cli/find/limit_search.h"

#include <algorithm>
#include <vector>

#include "catch.h"

using ration::cli::LimitSearch;
using ration::cli::Tolerance;
using ration::config::kMiB;

namespace {

constexpr std::uint64_t kPage = 2 * kMiB;
constexpr std::uint64_t kDevice = 8192 * kMiB;

// The limits that are tried for a program that succeeds from `needed` bytes on.
std::vector<std::uint64_t> tried(LimitSearch &search, std::uint64_t needed) {
  std::vector<std::uint64_t> limits;
  while (const auto limit = search.next()) {
    limits.push_back(*limit);
    search.record(*limit >= needed);
    REQUIRE(limits.size() < 100);
  }
  return limits;
}

}  // namespace

TEST_CASE("a search finds the smallest limit to the byte where that is asked for") {
  for (const std::uint64_t peak : {std::uint64_t{0}, kMiB, 50'331'648UL, 1'000'000'007UL}) {
    for (const std::uint64_t more : {0UL, 1UL, 900'000UL, 400'000'000UL}) {
      LimitSearch search(peak, kDevice, {1, 0});
      tried(search, peak + more);
      INFO(peak << " + " << more);
      CHECK(search.sufficient() == std::max(peak + more, LimitSearch::kLeast));
    }
  }
}

TEST_CASE("a search ends within its tolerance, with a limit in whole pages that was tried") {
  for (const std::uint64_t needed : {100 * kMiB, 100 * kMiB + 1, 137 * kMiB, 5000 * kMiB + 77}) {
    LimitSearch search(99 * kMiB, kDevice, {});
    const std::vector<std::uint64_t> limits = tried(search, needed);
    INFO(needed);
    CHECK(search.sufficient() >= needed);
    CHECK(search.sufficient() - needed <= std::max(kPage, search.sufficient() / 200));
    CHECK(search.sufficient() % kPage == 0);
    CHECK(std::count(limits.begin(), limits.end(), search.sufficient()) == 1);
  }
}

TEST_CASE("a program that needs its peak is found in a few runs") {
  LimitSearch search(48 * kMiB, kDevice, {});
  CHECK(tried(search, 48 * kMiB).size() <= 3);
  CHECK(search.sufficient() == 48 * kMiB);
}

TEST_CASE("a program that never fails needs the least limit, after three runs") {
  LimitSearch search(6000 * kMiB, kDevice, {});
  CHECK(tried(search, 0).size() == 3);
  CHECK(search.sufficient() == LimitSearch::kLeast);
}

TEST_CASE("a program that fails under every limit needs the ceiling, which is not tried") {
  LimitSearch search(6000 * kMiB, kDevice, {});
  const std::vector<std::uint64_t> limits = tried(search, kDevice);
  CHECK(search.sufficient() == kDevice);
  CHECK(std::count(limits.begin(), limits.end(), kDevice) == 0);
}

TEST_CASE("a search without any memory has the least limit as its ceiling") {
  LimitSearch search(0, 0, {});
  CHECK(tried(search, kDevice) == std::vector{LimitSearch::kLeast});
  CHECK(search.sufficient() == LimitSearch::kLeast);
}

TEST_CASE("a tolerance is the larger of bytes and a share") {
  CHECK(Tolerance{}.at(kMiB) == kPage);
  CHECK(Tolerance{}.at(1000 * kPage) == 5 * kPage);
  CHECK(Tolerance{7, 0}.at(kDevice) == 7);
}
