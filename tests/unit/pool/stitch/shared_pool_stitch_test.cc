// A SharedPool of granules, on a device that checks its use.
#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "catch.h"
#include "pool_checks/checked_device.h"

using namespace ration::pool;

namespace {

constexpr std::uint64_t kPage = CheckedDevice::kPage;
constexpr std::uint64_t kPages = 64;

struct Fixture {
  void open(std::uint64_t preallocated, std::uint64_t each = 1) {
    REQUIRE(pool.stitch_from(device.layout()));
    REQUIRE(device.preallocate(pool, preallocated, each));
  }
  Block allocate(std::uint64_t bytes) {
    const AllocateOutcome outcome = pool.allocate(bytes, device);
    REQUIRE(outcome);
    device.take(outcome.block);
    return outcome.block;
  }
  void free(const Block &block) {
    device.leave(block.address);
    const FreeOutcome outcome = pool.free(block.address);
    REQUIRE(outcome);
    CHECK(outcome.bytes == block.bytes);
  }
  void check() {
    CHECK(device.wrong() == "");
    CHECK(pool.check_invariants() == "");
  }
  // Requests sizes of their own until blocks are stitched. Keeps a page: an empty pool would begin anew.
  void become_random() {
    kept = allocate(kPage);
    for (std::uint64_t i = 0; i < 20; ++i) free(allocate(kPage + i * 4096));
    REQUIRE(pool.stitch_counts().scarce);
  }
  void become_regular() {
    for (std::uint64_t i = 0; i < 40; ++i) free(allocate(kPage + i % 2 * kPage));
    REQUIRE_FALSE(pool.stitch_counts().scarce);
  }
  static bool is_in_view(const Block &block) { return block.address >= CheckedDevice::kViews; }

  CheckedDevice device{kPages};
  SharedPool pool;
  Block kept{};
};

}  // namespace

TEST_CASE_METHOD(Fixture, "the next block of its size takes a view again, without a driver call") {
  open(kPages);
  become_random();
  const Block first = allocate(7 * kPage / 2);
  REQUIRE(is_in_view(first));
  free(first);
  const std::uint64_t calls = device.calls();
  const std::uint64_t revived = pool.stitch_counts().revived;
  const Block second = allocate(7 * kPage / 2);
  CHECK(second.address == first.address);
  CHECK(device.calls() == calls);
  CHECK(pool.stitch_counts().revived == revived + 1);
  check();
}

TEST_CASE_METHOD(Fixture, "memory comes in granules of at most the size that the layout states") {
  device.provide_parts_of(2 * kPage);
  open(0);
  allocate(7 * kPage);
  CHECK(pool.stitch_counts().granules == 4);
  check();
}

TEST_CASE_METHOD(Fixture, "a request that the device cannot serve takes no part of what it has") {
  device.provide_parts_of(kPage);
  open(0);
  allocate((kPages - 8) * kPage);
  CHECK_FALSE(pool.allocate(9 * kPage, device));
  CHECK(device.room() == 8 * kPage);
  check();
}

TEST_CASE_METHOD(Fixture, "a view is taken again after its granules served other blocks") {
  open(kPages);
  become_random();
  allocate(45 * kPage);
  const Block first = allocate(3 * kPage);
  REQUIRE(is_in_view(first));
  free(first);
  const Block all = allocate(18 * kPage);
  CHECK_FALSE(pool.allocate(1, device));
  free(all);
  const std::uint64_t calls = device.calls();
  const Block second = allocate(3 * kPage);
  CHECK(second.address == first.address);
  CHECK(device.calls() == calls);
  check();
}

TEST_CASE_METHOD(Fixture, "of views of one size, one whose granules are in use is not taken again") {
  open(9);
  device.provide(false);
  become_random();
  const Block first = allocate(3 * kPage);
  const Block second = allocate(3 * kPage);
  free(first);
  free(second);
  const Block other = allocate(5 * kPage);
  const Block third = allocate(3 * kPage);
  check();
  free(other);
  free(third);
  check();
}

TEST_CASE_METHOD(Fixture, "a block in a view is found by any address in it, and by no other") {
  open(kPages);
  become_random();
  const Block block = allocate(7 * kPage / 2 + 1);
  REQUIRE(is_in_view(block));
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{1}, 2 * kPage, block.bytes - 1}) {
    const std::optional<Block> found = pool.find(block.address + offset);
    REQUIRE(found);
    CHECK(found->address == block.address);
    CHECK(found->bytes == block.bytes);
    CHECK(found->requested == 7 * kPage / 2 + 1);
    CHECK(found->slab == 1);
  }
  CHECK_FALSE(pool.find(block.address + block.bytes));
  CHECK_FALSE(pool.find(block.address - 1));
  CHECK_FALSE(pool.free(block.address + 512));
  free(block);
  CHECK_FALSE(pool.find(block.address));
  CHECK_FALSE(pool.free(block.address));
}

TEST_CASE_METHOD(Fixture, "a name and a mark end with the block of a view") {
  open(kPages);
  become_random();
  const Block block = allocate(7 * kPage / 2);
  REQUIRE(is_in_view(block));
  CHECK(pool.name(block.address + kPage, 11) == 11);
  CHECK(pool.name(block.address, 12) == 11);
  CHECK_FALSE(pool.is_marked(block.address));
  CHECK(pool.mark(block.address + kPage, true));
  CHECK(pool.is_marked(block.address));
  free(block);
  CHECK_FALSE(pool.mark(block.address, true));
  const Block next = allocate(7 * kPage / 2);
  REQUIRE(next.address == block.address);
  CHECK_FALSE(pool.is_marked(next.address));
  CHECK(pool.name(next.address, 13) == 13);
}

TEST_CASE_METHOD(Fixture, "live blocks are listed in address order, those in views after those at home") {
  open(kPages);
  become_random();
  const Block first = allocate(7 * kPage / 2);
  const Block second = allocate(9 * kPage / 2);
  REQUIRE(is_in_view(first));
  REQUIRE(is_in_view(second));
  std::array<Block, 8> blocks;
  REQUIRE(pool.live_blocks(0, blocks.data(), blocks.size()) == 3);
  CHECK(blocks[0].address == kept.address);
  CHECK(blocks[1].address == std::min(first.address, second.address));
  CHECK(blocks[2].address == std::max(first.address, second.address));
  CHECK(pool.live_blocks(0, blocks.data(), 2) == 2);
  CHECK(blocks[1].address == std::min(first.address, second.address));
  CHECK(pool.live_blocks(blocks[1].address + 1, blocks.data(), 8) == 1);
  CHECK(blocks[0].address == std::max(first.address, second.address));
}

TEST_CASE_METHOD(Fixture, "a retired view keeps its memory until it is reclaimed") {
  open(9);
  device.provide(false);
  become_random();
  const Block block = allocate(15 * kPage / 2);
  REQUIRE(is_in_view(block));
  CHECK(pool.retire(block.address + 512).kind == FreeOutcome::Kind::kNotABlock);
  REQUIRE(pool.retire(block.address));
  CHECK_FALSE(pool.find(block.address));
  CHECK_FALSE(pool.free(block.address));
  CHECK_FALSE(pool.retire(block.address));
  CHECK(pool.statistics().retired_bytes == block.bytes);
  CHECK(pool.statistics().used_bytes == kept.bytes);
  CHECK_FALSE(pool.allocate(2 * kPage, device));
  check();
  device.leave(block.address);
  CHECK(pool.reclaim(block.address).bytes == block.bytes);
  CHECK_FALSE(pool.reclaim(block.address));
  CHECK(pool.statistics().retired_bytes == 0);
  allocate(8 * kPage);
  check();
}

TEST_CASE_METHOD(Fixture, "a view that is larger than asked is not retired") {
  open(kPages);
  become_random();
  const Block block = allocate(7 * kPage / 2);
  REQUIRE(is_in_view(block));
  const Guard guard(pool.mutex());
  CHECK(pool.retire_locked(block.address, block.bytes - 512).kind == FreeOutcome::Kind::kTooLarge);
  CHECK(pool.retire_locked(block.address, block.bytes));
  CHECK(pool.retired_bytes_locked() == block.bytes);
}

TEST_CASE_METHOD(Fixture, "a granule of several pages is divided for a view that needs fewer, and backs others") {
  open(kPages, 16);
  device.provide(false);
  const std::uint64_t granules = pool.stitch_counts().granules;
  become_random();
  CHECK(pool.stitch_counts().granules > granules);
  CHECK(pool.stitch_counts().granule_bytes == kPages * kPage);
  std::vector<Block> blocks;
  for (std::uint64_t pages = 1; pages <= 10; ++pages) blocks.push_back(allocate(pages * kPage));
  free(kept);
  allocate((kPages - 55) * kPage);
  CHECK_FALSE(pool.allocate(1, device));
  check();
}

TEST_CASE_METHOD(Fixture, "without a preallocation, memory is got as blocks need it") {
  open(0);
  CHECK(device.free_pages() == kPages);
  allocate(4096);
  CHECK(device.free_pages() == kPages - 1);
  allocate(kPage / 2);
  CHECK(device.free_pages() == kPages - 1);
  allocate(5 * kPage);
  CHECK(device.free_pages() == kPages - 6);
  CHECK(pool.statistics().slab_bytes == 6 * kPage);
  check();
}

TEST_CASE_METHOD(Fixture, "new memory joins the hole at the end of the home range") {
  open(0);
  const Block first = allocate(3 * kPage);
  free(first);
  const Block second = allocate(9 * kPage / 2);
  CHECK(device.free_pages() == kPages - 5);
  CHECK_FALSE(is_in_view(second));
  check();
}

TEST_CASE_METHOD(Fixture, "at its limit, a pool serves a block from free pages that are apart") {
  open(0);
  std::vector<Block> pages;
  for (std::uint64_t i = 0; i < kPages; ++i) pages.push_back(allocate(kPage));
  for (std::uint64_t i = 0; i < kPages; i += 2) free(pages[i]);
  const Block half = allocate(kPages / 2 * kPage);
  CHECK(is_in_view(half));
  CHECK_FALSE(pool.allocate(1, device));
  check();
}

TEST_CASE_METHOD(Fixture, "requests of random sizes are stitched, and repeated ones are placed in holes again") {
  open(kPages);
  CHECK_FALSE(pool.stitch_counts().scarce);
  const Block before = allocate(5 * kPage / 2);
  CHECK_FALSE(is_in_view(before));
  become_random();
  const Block random = allocate(5 * kPage / 2 + 4096);
  CHECK(is_in_view(random));
  become_regular();
  const Block after = allocate(kPage);
  CHECK_FALSE(is_in_view(after));
  check();
}

TEST_CASE_METHOD(Fixture, "a stitching pool serves all its memory, however little of a granule is free") {
  open(16, 8);
  device.provide(false);
  std::vector<Block> blocks;
  for (int i = 0; i < 20; ++i) blocks.push_back(allocate(kPage / 2));
  become_random();
  for (std::size_t i = 0; i < 14; ++i) free(blocks[i]);
  std::vector<Block> views;
  for (std::uint64_t i = 0; i < 3; ++i) views.push_back(allocate(2 * kPage + i * 4096));
  for (std::uint64_t bytes = kPage; bytes >= kUnitBytes; bytes /= 2) {
    while (const AllocateOutcome outcome = pool.allocate(bytes, device)) {
      device.take(outcome.block);
    }
  }
  const Statistics statistics = pool.statistics();
  CHECK(statistics.free_bytes == 0);
  CHECK(statistics.used_bytes == 16 * kPage);
  check();
}

TEST_CASE_METHOD(Fixture, "of very many views, those that were left first are dropped") {
  open(kPages);
  device.provide(false);
  become_random();
  std::mt19937_64 random(3);
  std::uint64_t most = 0;
  for (int step = 0; step < 6000; ++step) {
    const Block first = allocate(kPage + random() % (40 * kPage));
    const Block second = allocate(kPage + random() % (20 * kPage));
    free(first);
    free(second);
    most = std::max(most, device.mappings());
    if (step % 500 == 0) check();
  }
  check();
  CHECK(most > 16384);
  // Beside those of dormant views: at home, and in views that rest or are live.
  CHECK(most < 16384 + (8 + 2) * kPages + 100);
}

TEST_CASE_METHOD(Fixture, "blocks are stitched beside any number of holes") {
  open(kPages);
  std::vector<Block> small;
  for (int i = 0; i < 1400; ++i) small.push_back(allocate(8192));
  for (std::size_t i = 0; i < small.size(); i += 2) free(small[i]);
  REQUIRE(pool.statistics().holes > 512);
  become_random();
  for (const std::uint64_t pages : {30U, 20U}) CHECK(is_in_view(allocate(pages * kPage + 4096)));
  check();
}

TEST_CASE_METHOD(Fixture, "a request for more than any device has is refused, and changes nothing") {
  open(8);
  for (const std::uint64_t bytes :
       {SharedPool::kMostBytes, kMaximumBytes, kMaximumBytes + 1, UINT64_MAX, (kPages + 1) * kPage}) {
    CAPTURE(bytes);
    CHECK(pool.allocate(bytes, device).kind == AllocateOutcome::Kind::kNoRoom);
    check();
  }
  CHECK(device.free_pages() == kPages - 8);
  become_random();
  for (const std::uint64_t bytes : {SharedPool::kMostBytes, UINT64_MAX}) {
    CHECK(pool.allocate(bytes, device).kind == AllocateOutcome::Kind::kNoRoom);
    check();
  }
  CHECK(device.free_pages() == kPages - 8);
}

TEST_CASE_METHOD(Fixture, "the statistics count what is in views, and what rests there as free") {
  open(kPages);
  become_random();
  const Block block = allocate(7 * kPage / 2);
  REQUIRE(is_in_view(block));
  Statistics statistics = pool.statistics();
  CHECK(statistics.slab_bytes == kPages * kPage);
  CHECK(statistics.used_bytes == kept.bytes + block.bytes);
  CHECK(statistics.blocks == 2);
  CHECK(statistics.free_bytes == (kPages - 1) * kPage - block.bytes);
  free(block);
  statistics = pool.statistics();
  CHECK(statistics.used_bytes == kept.bytes);
  CHECK(statistics.free_bytes == (kPages - 1) * kPage);
}

TEST_CASE_METHOD(Fixture, "the pages that back blocks are all of them, once, and tell where each begins") {
  open(kPages, 4);
  become_random();
  const Block view = allocate(7 * kPage / 2);
  REQUIRE(is_in_view(view));
  const Block home = allocate(kPage / 2);
  for (const Block &block : {view, home}) {
    std::uint64_t bytes = 0;
    for (const stitch::Stitcher::Backing &each : pool.backing(block)) {
      CHECK(each.offset + each.bytes <= kPage);
      bytes += each.bytes;
    }
    CHECK(bytes == block.bytes);
  }
}

// What lies `offset` into the parts, as backing() has it.
void check_parts(const stitch::Stitcher::Parts &parts, const std::vector<stitch::Stitcher::Backing> &pages) {
  std::size_t part = 0;
  std::uint64_t at = parts.offset;
  for (const stitch::Stitcher::Backing &each : pages) {
    while (part < parts.parts.size() && at >= parts.parts[part].bytes) at -= parts.parts[part++].bytes;
    REQUIRE(part < parts.parts.size());
    CHECK(parts.parts[part].handle == each.handle);
    CHECK(at == each.page * kPage + each.offset);
    at += each.bytes;
  }
  CHECK(part + 1 == parts.parts.size());
  CHECK(parts.offset < parts.parts.front().bytes);
}

TEST_CASE_METHOD(Fixture, "the parts of a block are the handles that it lies in, whole, and no others") {
  open(kPages, 4);
  become_random();
  std::mt19937_64 random(7);
  std::vector<Block> blocks;
  std::size_t in_views = 0;
  for (int round = 0; round < 300; ++round) {
    const AllocateOutcome outcome = pool.allocate(1 + random() % (6 * kPage), device);
    if (outcome) {
      device.take(outcome.block);
      blocks.push_back(outcome.block);
      in_views += is_in_view(outcome.block) ? 1 : 0;
      check_parts(pool.parts_of(outcome.block), pool.backing(outcome.block));
    }
    if (!outcome || blocks.size() > 12) {
      const std::size_t at = random() % blocks.size();
      free(blocks[at]);
      CHECK((!is_in_view(blocks[at]) || pool.parts_of(blocks[at]).parts.empty()));
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  CHECK(in_views > 50);
}

TEST_CASE("a pool of slabs has no parts") {
  SharedPool slabs;
  REQUIRE(slabs.add_slab({0x100000, kPage, 1}) == AddSlabOutcome::kAdded);
  CHECK(slabs.parts_of({0x100000, 512, 512, 1}).parts.empty());
}

TEST_CASE_METHOD(Fixture, "a pool that was reset takes granules anew") {
  open(8);
  become_random();
  pool.reset();
  CHECK_FALSE(pool.stitches());
  CheckedDevice other(kPages);
  REQUIRE(pool.stitch_from(other.layout()));
  REQUIRE(other.preallocate(pool, 8));
  CHECK(pool.allocate(8 * kPage, other));
  CHECK(pool.check_invariants() == "");
}

TEST_CASE_METHOD(Fixture, "of an emptied pool, blocks of one size take all memory, whatever was there before") {
  open(kPages);
  device.provide(false);
  for (std::uint64_t blocks = 1; blocks <= kPages; ++blocks) {
    CAPTURE(blocks);
    for (std::uint64_t i = 0; i < 2 * blocks; ++i) free(allocate(kPage + (blocks * 64 + i) % 512 * 512));
    std::vector<Block> equal;
    for (std::uint64_t i = 0; i < blocks; ++i) equal.push_back(allocate(kPages * kPage / blocks / 512 * 512));
    for (const Block &block : equal) free(block);
  }
  check();
}

TEST_CASE_METHOD(Fixture, "blocks of one size go on in views where they began, however many there are") {
  open(kPages);
  device.provide(false);
  become_random();
  const std::uint64_t bytes = 21 * kPage / 16 / 512 * 512;
  const std::uint64_t fit = (kPages - 1) * kPage / bytes;
  for (std::uint64_t i = 0; i < fit; ++i) allocate(bytes);
  check();
}
