// Blocks that a process shares: whether others can open them, and where they are after their free.
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
struct Exporting : QuarantineFixture {
  Exporting() { context->pool.store(&*pool); }
  ~Exporting() { context->pool.store(nullptr); }

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
    Quarantine::PendingRecord pending;
    std::uint64_t bytes = 0;
    bool due = false;
    return quarantine.retire(*pool, address, bytes, pending, due, &exports);
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

TEST_CASE("a shared block is kept out of quarantine when it is freed, until no process has it open") {
  Exporting fixture;
  const pool::Address block = fixture.take(4096);
  auto lease = fixture.open(fixture.shared(block));
  REQUIRE(lease != nullptr);
  CHECK(fixture.free(block) == Quarantine::Retired::kept);
  CHECK(fixture.free(block) == Quarantine::Retired::not_a_block);
  CHECK(fixture.quarantine.blocks() == 0);
  CHECK(fixture.exports.kept_bytes(0) == 4096);
  CHECK(fixture.exports.kept_bytes(1) == 0);
  fixture.reconcile();
  CHECK(fixture.exports.keeps_any());
  lease.reset();
  fixture.reconcile();
  CHECK_FALSE(fixture.exports.keeps_any());
  CHECK(fixture.quarantine.blocks() == 1);
  CHECK(fixture.collect().blocks == 1);
  CHECK(fixture.retired() == 0);
  CHECK(fixture.pool->blocks.check_invariants().empty());
}

TEST_CASE("a block has one token during its life, and the next block at its place has another") {
  Exporting fixture;
  const pool::Address block = fixture.take();
  const ledger::ExportToken first = fixture.shared(block);
  CHECK(fixture.shared(block).nonce[0] == first.nonce[0]);
  REQUIRE(fixture.free(block) == Quarantine::Retired::kept);
  fixture.reconcile();
  fixture.collect();
  REQUIRE(fixture.take() == block);
  const ledger::ExportToken second = fixture.shared(block);
  CHECK(second.nonce[0] != first.nonce[0]);
  CHECK(fixture.open(first) == nullptr);
  CHECK(fixture.open(second) != nullptr);
  ledger::ExportedBlock found;
  CHECK(fixture.exports.is_own(first));
  CHECK_FALSE(fixture.exports.find_own(first, found));
  REQUIRE(fixture.exports.find_own(second, found));
  CHECK(found.bytes == 512);
}

TEST_CASE("blocks that are not shared enter the quarantine as usual") {
  Exporting fixture;
  const pool::Address block = fixture.take();
  const pool::Address other = fixture.take();
  fixture.shared(block);
  CHECK(fixture.free(other) == Quarantine::Retired::retired);
  CHECK(fixture.free(block) == Quarantine::Retired::kept);
  CHECK(fixture.pool->shared.load() == 0);
}

TEST_CASE("a kept block that the host has no memory to take back stays kept") {
  Exporting fixture;
  const pool::Address block = fixture.take();
  fixture.shared(block);
  REQUIRE(fixture.free(block) == Quarantine::Retired::kept);
  int asked = 0;
  fixture.exports.reconcile(100, [&](const IpcExporter::Kept &) {
    ++asked;
    return false;
  });
  CHECK(asked == 1);
  CHECK(fixture.exports.keeps_any());
  fixture.reconcile();
  CHECK_FALSE(fixture.exports.keeps_any());
}

TEST_CASE("after a context ends nothing it shared can be opened, and its pool is empty") {
  Exporting fixture;
  const pool::Address freed = fixture.take();
  const pool::Address live = fixture.take();
  const ledger::ExportToken of_freed = fixture.shared(freed);
  const ledger::ExportToken of_live = fixture.shared(live);
  const auto lease = fixture.open(of_freed);
  REQUIRE(lease != nullptr);
  REQUIRE(fixture.free(freed) == Quarantine::Retired::kept);
  fixture.exports.forget(*fixture.pool);
  CHECK(fixture.open(of_freed) == nullptr);
  CHECK(fixture.open(of_live) == nullptr);
  CHECK(fixture.retired() == 0);
  CHECK(fixture.pool->shared.load() == 0);
  CHECK(fixture.exports.kept_bytes(0) == 0);
  int offered = 0;
  fixture.exports.reconcile(100, [&](const IpcExporter::Kept &) { return ++offered > 0; });
  CHECK(offered == 0);
  CHECK(fixture.exports.keeps_any());  // the record that is still open
}

TEST_CASE("without a folder nothing is shared, and the reason is given") {
  Exporting fixture;
  IpcExporter homeless{""};
  const std::optional<pool::Block> block = fixture.pool->blocks.find(fixture.take());
  REQUIRE(block);
  ledger::ExportToken token;
  std::string said;
  CHECK(homeless.share(fixture.context, *block, {}, token, said) == IpcExporter::Shared::no_file);
  CHECK_FALSE(said.empty());
  CHECK(fixture.pool->shared.load() == 0);
}

TEST_CASE("of a concurrent free and share of one block the later one sees the first") {
  Exporting fixture;
  constexpr int kRounds = 200;
  std::atomic<int> offered{0};
  std::atomic<int> answered{0};
  pool::Address block = 0;
  IpcExporter::Shared outcome{};
  std::thread sharer([&] {
    FakeDriver::current = fixture.context->handle;
    for (int round = 0; round < kRounds; ++round) {
      offered.wait(round);
      ledger::ExportToken token;
      outcome = fixture.share(block, token);
      ++answered;
      answered.notify_one();
    }
  });
  int wrong = 0;
  for (int round = 0; round < kRounds; ++round) {
    block = fixture.take();
    ++offered;
    offered.notify_one();
    for (int turn = 0; turn < round % 4; ++turn) {
      std::this_thread::yield();
    }
    const bool was_kept = fixture.free(block) == Quarantine::Retired::kept;
    answered.wait(round);
    wrong += was_kept == (outcome == IpcExporter::Shared::shared) ? 0 : 1;
    fixture.reconcile();
    fixture.collect();
  }
  sharer.join();
  CHECK(wrong == 0);
  CHECK(fixture.pool->shared.load() == 0);
}
