#include "pool/indexed_pool.h"

#include <cstdint>
#include <vector>

#include "catch.h"
#include "pool/host_array.h"

using namespace ration::pool;

namespace {

struct Item {
  std::uint64_t value;
  union {
    std::uint32_t next_spare;
    std::uint32_t other;
  };
};

}  // namespace

TEST_CASE("items keep their content and their index while the pool grows into pages of the system") {
  IndexedPool<Item, 8> items;
  std::vector<std::uint32_t> taken;
  const std::size_t count = 8 * host_array::kPagesFrom / sizeof(Item);
  for (std::size_t number = 0; number < count; ++number) {
    REQUIRE(items.prepare(1));
    taken.push_back(items.take());
    items.at(taken.back()) = {number, {static_cast<std::uint32_t>(number)}};
  }
  CHECK(items.host_bytes() > 4 * host_array::kPagesFrom);
  for (std::size_t number = 0; number < count; ++number) REQUIRE(items.at(taken[number]).value == number);
  CHECK(items.index_of(items.at(taken[count / 2])) == taken[count / 2]);
}

TEST_CASE("growth makes a bounded number of items spare, and as many as were asked for") {
  IndexedPool<Item, 8> items;
  REQUIRE(items.prepare(1'000'000));
  CHECK(items.has(1'000'000));
  std::size_t most = 0;
  for (std::size_t number = 0; number < 2'000'000; ++number) {
    const std::size_t before = items.capacity();
    REQUIRE(items.prepare(1));
    if (number > 0) most = std::max(most, items.capacity() - before);
    (void)items.take();
  }
  CHECK(most > 0);
  CHECK(most <= 2048);  // a sixteenth of the items is 62,500
}

TEST_CASE("a pool of bounded size serves its last item and no more") {
  constexpr std::uint32_t kMost = 5000;
  IndexedPool<Item, sizeof(Item), kMost> items;
  for (std::uint32_t number = 1; number <= kMost; ++number) {
    REQUIRE(items.prepare(1));
    CHECK(items.take() == number);
  }
  CHECK(items.is_full());
  CHECK(!items.prepare(1));
  items.give(7);
  REQUIRE(items.prepare(1));
  CHECK(items.take() == 7);
}
