#include "pool/size_bins.h"

#include "catch.h"

using namespace ration::pool;

namespace {

constexpr std::uint64_t kSmallest = SizeBins::kSmallestUnits;

}  // namespace

TEST_CASE("empty bins find nothing") {
  const SizeBins bins;
  CHECK_FALSE(bins.find(kSmallest));
  CHECK_FALSE(bins.find(kMaximumBytes / kUnitBytes));
}

TEST_CASE("the tightest hole of the request's own bin is found") {
  SizeBins bins;
  bins.insert(1, kSmallest + 9);
  bins.insert(2, kSmallest + 3);
  bins.insert(3, kSmallest + 6);
  bins.insert(4, kSmallest + 1);
  CHECK(bins.find(kSmallest + 2) == 2);
  CHECK(bins.check() == "");
}

TEST_CASE("a request that its own bin cannot serve goes to the next filled bin") {
  SizeBins bins;
  bins.insert(1, kSmallest);
  bins.insert(2, 5 * kSmallest);
  bins.insert(3, 40 * kSmallest);
  CHECK(bins.find(kSmallest + 1) == 2);
  CHECK(bins.find(6 * kSmallest) == 3);
  CHECK_FALSE(bins.find(41 * kSmallest));
}

TEST_CASE("the last bin of an octave leads to the next octave") {
  SizeBins bins;
  bins.insert(1, 2 * kSmallest);
  CHECK(bins.find(2 * kSmallest - 1) == 1);
}

TEST_CASE("removing from head, middle and tail leaves the rest findable") {
  for (const int gone : {0, 1, 2}) {
    SizeBins bins;
    const std::uint32_t numbers[] = {bins.insert(0, kSmallest), bins.insert(1, kSmallest), bins.insert(2, kSmallest)};
    bins.remove(numbers[gone]);
    CHECK(bins.check() == "");
    CHECK(bins.size() == 2);
    CHECK(bins.record(numbers[gone]) == nullptr);
    for (const int kept : {(gone + 1) % 3, (gone + 2) % 3}) {
      REQUIRE(bins.record(numbers[kept]) != nullptr);
      bins.remove(numbers[kept]);
    }
    CHECK_FALSE(bins.find(kSmallest));
    CHECK(bins.check() == "");
  }
}

TEST_CASE("records are used again") {
  SizeBins bins;
  bins.remove(bins.insert(0, kSmallest));
  const std::size_t bytes = bins.host_bytes();
  for (int round = 0; round < 1000; ++round) bins.remove(bins.insert(0, kSmallest + 17 * kSmallest));
  CHECK(bins.host_bytes() == bytes);
}

TEST_CASE("every size up to the largest has a bin of its own range") {
  for (std::uint64_t units = kSmallest; units <= kMaximumBytes / kUnitBytes; units += units / 3) {
    SizeBins bins;
    bins.insert(7, units);
    CHECK(bins.check() == "");
    CHECK(bins.find(units) == 7);
    CHECK_FALSE(bins.find(units + 1));
  }
}

TEST_CASE("a hole that grows or shrinks is found by its new size") {
  SizeBins bins;
  const std::uint32_t number = bins.insert(1, kSmallest);
  bins.insert(2, 8 * kSmallest);
  for (const std::uint64_t units : {kSmallest + 1, 3 * kSmallest, 9 * kSmallest, kSmallest}) {
    bins.change(number, units);
    CHECK(bins.check() == "");
    CHECK(bins.find(units) == 1);
    CHECK(bins.record(number)->units == units);
  }
}
