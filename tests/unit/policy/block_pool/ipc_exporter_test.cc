// Blocks that a process shares: whether anybody can open them, and where they are once they are freed.
#include "policy/block_pool/ipc_exporter.h"

#include <atomic>
#include <thread>

#include "catch.h"
#include "ledger/export_lease.h"
#include "unit/events/scratch_folder.h"
#include "unit/policy/quarantine_fixture.h"

using namespace ration;
using namespace ration::test;
using policy::IpcExporter;
using policy::Quarantine;

namespace {

// A fixture whose pool belongs to its context as a program's does.
struct Shop : QuarantineFixture {
  Shop() { context->pool.store(&*pool); }
  ~Shop() { context->pool.store(nullptr); }

  IpcExporter::Shared share(pool::Address address, ledger::ExportToken &token) {
    const std::optional<pool::Block> block = pool->blocks.find(address);
    if (!block) {
      return IpcExporter::Shared::not_a_block;
    }
    ledger::ExportedBlock in;
    in.offset = block->address - kSlab;
    in.bytes = block->requested;
    in.slab_bytes = kBytes;
    std::string said;
    return exports.share(context, *block, in, token, said);
  }
  ledger::ExportToken shared(pool::Address address) {
    ledger::ExportToken token;
    REQUIRE(share(address, token) == IpcExporter::Shared::shared);
    return token;
  }
  std::unique_ptr<ledger::ExportLease> open(const ledger::ExportToken &token) {
    std::string said;
    return ledger::ExportLease::take(folder.path(), token, said);
  }
  Quarantine::Retired free(pool::Address address) {
    Quarantine::PendingRecord ticket;
    std::uint64_t bytes = 0;
    bool due = false;
    return quarantine.retire(*pool, address, bytes, ticket, due, &exports);
  }
  void reconcile() {
    exports.reconcile(
        100, [this](const IpcExporter::Kept &kept) { return quarantine.take_back(*pool, kept.address, kept.bytes); });
  }

  static constexpr std::uint64_t kSlab = 0x100000000;
  ScratchFolder folder;
  IpcExporter exports{folder.path()};
};

}  // namespace

TEST_CASE("a shared block is kept out of quarantine when it is freed, until nobody has it open") {
  Shop shop;
  const pool::Address block = shop.take(4096);
  auto lease = shop.open(shop.shared(block));
  REQUIRE(lease != nullptr);
  CHECK(shop.free(block) == Quarantine::Retired::kept);
  CHECK(shop.free(block) == Quarantine::Retired::not_a_block);
  CHECK(shop.quarantine.blocks() == 0);
  CHECK(shop.exports.kept_bytes(0) == 4096);
  CHECK(shop.exports.kept_bytes(1) == 0);
  shop.reconcile();
  CHECK(shop.exports.keeps_any());
  lease.reset();
  shop.reconcile();
  CHECK_FALSE(shop.exports.keeps_any());
  CHECK(shop.quarantine.blocks() == 1);
  CHECK(shop.collect().blocks == 1);
  CHECK(shop.retired() == 0);
  CHECK(shop.pool->blocks.check_invariants().empty());
}

TEST_CASE("a block has one token as long as it lives, and the next one at its place another") {
  Shop shop;
  const pool::Address block = shop.take();
  const ledger::ExportToken first = shop.shared(block);
  CHECK(shop.shared(block).nonce[0] == first.nonce[0]);
  REQUIRE(shop.free(block) == Quarantine::Retired::kept);
  shop.reconcile();
  shop.collect();
  REQUIRE(shop.take() == block);
  const ledger::ExportToken second = shop.shared(block);
  CHECK(second.nonce[0] != first.nonce[0]);
  CHECK(shop.open(first) == nullptr);
  CHECK(shop.open(second) != nullptr);
  ledger::ExportedBlock found;
  CHECK(shop.exports.is_own(first));
  CHECK_FALSE(shop.exports.find_own(first, found));
  REQUIRE(shop.exports.find_own(second, found));
  CHECK(found.bytes == 512);
}

TEST_CASE("other blocks of a pool that shares go their usual way") {
  Shop shop;
  const pool::Address block = shop.take();
  const pool::Address other = shop.take();
  shop.shared(block);
  CHECK(shop.free(other) == Quarantine::Retired::retired);
  CHECK(shop.free(block) == Quarantine::Retired::kept);
  CHECK(shop.pool->shared.load() == 0);
}

TEST_CASE("a kept block that the host has no memory to take back stays kept") {
  Shop shop;
  const pool::Address block = shop.take();
  shop.shared(block);
  REQUIRE(shop.free(block) == Quarantine::Retired::kept);
  int asked = 0;
  shop.exports.reconcile(100, [&](const IpcExporter::Kept &) {
    ++asked;
    return false;
  });
  CHECK(asked == 1);
  CHECK(shop.exports.keeps_any());
  shop.reconcile();
  CHECK_FALSE(shop.exports.keeps_any());
}

TEST_CASE("a context that goes takes along what it shared: nothing of it opens, and its pool is empty") {
  Shop shop;
  const pool::Address freed = shop.take();
  const pool::Address live = shop.take();
  const ledger::ExportToken of_freed = shop.shared(freed);
  const ledger::ExportToken of_live = shop.shared(live);
  const auto lease = shop.open(of_freed);
  REQUIRE(lease != nullptr);
  REQUIRE(shop.free(freed) == Quarantine::Retired::kept);
  shop.exports.forget(*shop.pool);
  CHECK(shop.open(of_freed) == nullptr);
  CHECK(shop.open(of_live) == nullptr);
  CHECK(shop.retired() == 0);
  CHECK(shop.pool->shared.load() == 0);
  CHECK(shop.exports.kept_bytes(0) == 0);
  int offered = 0;
  shop.exports.reconcile(100, [&](const IpcExporter::Kept &) { return ++offered > 0; });
  CHECK(offered == 0);
  CHECK(shop.exports.keeps_any());  // the record that is still open
}

TEST_CASE("without a folder nothing is shared, and why is said") {
  Shop shop;
  IpcExporter homeless{""};
  const std::optional<pool::Block> block = shop.pool->blocks.find(shop.take());
  REQUIRE(block);
  ledger::ExportToken token;
  std::string said;
  CHECK(homeless.share(shop.context, *block, {}, token, said) == IpcExporter::Shared::no_file);
  CHECK_FALSE(said.empty());
  CHECK(shop.pool->shared.load() == 0);
}

TEST_CASE("of a free and a share of one block, in two threads at once, the later one knows of the first") {
  Shop shop;
  constexpr int kRounds = 200;
  std::atomic<int> offered{0};
  std::atomic<int> answered{0};
  pool::Address block = 0;
  IpcExporter::Shared outcome{};
  std::thread sharer([&] {
    FakeDriver::current = shop.context->handle;
    for (int round = 0; round < kRounds; ++round) {
      offered.wait(round);
      ledger::ExportToken token;
      outcome = shop.share(block, token);
      ++answered;
      answered.notify_one();
    }
  });
  int wrong = 0;
  for (int round = 0; round < kRounds; ++round) {
    block = shop.take();
    ++offered;
    offered.notify_one();
    for (int turn = 0; turn < round % 4; ++turn) {
      std::this_thread::yield();
    }
    const bool was_kept = shop.free(block) == Quarantine::Retired::kept;
    answered.wait(round);
    wrong += was_kept == (outcome == IpcExporter::Shared::shared) ? 0 : 1;
    shop.reconcile();
    shop.collect();
  }
  sharer.join();
  CHECK(wrong == 0);
  CHECK(shop.pool->shared.load() == 0);
}
