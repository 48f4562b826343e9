// Shared blocks of granules: what an opener gets for their tokens, and when their memory may be used again.
#include "policy/block_pool/part_server.h"

#include "base/clock.h"
#include "catch.h"
#include "ledger/export_lease.h"
#include "pool_checks/checked_device.h"
#include "unit/events/scratch_folder.h"
#include "unit/policy/fake_granules.h"
#include "unit/policy/quarantine_fixture.h"

using namespace ration;
using namespace ration::test;
using policy::IpcExporter;
using policy::Quarantine;

namespace {

constexpr std::uint64_t kSharedPage = pool::CheckedDevice::kPage;
constexpr std::uint64_t kSharedPages = 80;

struct SharingGranules : QuarantineFixture {
  SharingGranules() {
    owner = add_context();
    granules.emplace(*owner);
    owner->pool.store(&*granules);
    REQUIRE(granules->blocks.stitch_from(device.layout()));
    REQUIRE(device.preallocate(granules->blocks, kSharedPages));
  }
  ~SharingGranules() { owner->pool.store(nullptr); }

  pool::Block allocate(std::uint64_t bytes) {
    const pool::AllocateOutcome outcome = granules->blocks.allocate(bytes, device);
    REQUIRE(outcome);
    return outcome.block;
  }
  ledger::ExportToken share(const pool::Block &block) {
    ledger::ExportedBlock in;
    in.kind = ledger::ExportKind::granules;
    in.bytes = block.requested;
    ledger::ExportToken token;
    std::string said;
    REQUIRE(exports.share(owner, block, in, token, said) == IpcExporter::Shared::shared);
    return token;
  }
  ledger::Fetched fetch(const ledger::ExportToken &token, std::uint64_t first = 0) {
    ledger::PartRequest request;
    request.token = token;
    request.first = first;
    parts.clear();
    return ledger::fetch_parts(folder.path(), request, now_ns() + 10'000'000'000, parts);
  }
  Quarantine::Retired free(pool::Address address) {
    Quarantine::PendingRecord pending;
    std::uint64_t bytes = 0;
    bool due = false;
    return quarantine.retire(*granules, address, bytes, pending, due, &exports);
  }
  void reconcile() {
    exports.reconcile(100, [this](const IpcExporter::Kept &kept) {
      return quarantine.take_back(*granules, kept.address, kept.bytes);
    });
  }

  ScratchFolder folder;
  FakeGranules driver_granules;
  pool::CheckedDevice device{kSharedPages};
  policy::ContextRef owner;
  std::optional<policy::ContextPool> granules;
  ledger::Parts parts;
  IpcExporter exports{folder.path()};
};

}  // namespace

TEST_CASE_METHOD(SharingGranules, "an opener gets every handle that a block lies in, a few at a time") {
  const pool::Block before = allocate(kSharedPage / 2);
  const pool::Block block = allocate(70 * kSharedPage);
  const pool::stitch::Stitcher::Parts wanted = granules->blocks.parts_of(block);
  const ledger::ExportToken token = share(block);
  std::size_t seen = 0;
  while (seen < wanted.parts.size()) {
    REQUIRE(fetch(token, seen) == ledger::Fetched::parts);
    CHECK(parts.reply.total == wanted.parts.size());
    REQUIRE(parts.reply.count == std::min<std::size_t>(ledger::kPartsAtOnce, wanted.parts.size() - seen));
    for (std::uint32_t i = 0; i < parts.reply.count; ++i, ++seen) {
      CHECK(FakeGranules::handle_in(parts.files[i].number()) == wanted.parts[seen].handle);
      CHECK(parts.reply.bytes[i] == wanted.parts[seen].bytes);
      CHECK(parts.files[i].number() > STDERR_FILENO);
    }
  }
  CHECK(fetch(token, seen) == ledger::Fetched::no_block);
  std::string said;
  const auto lease = ledger::ExportLease::take(folder.path(), token, said);
  REQUIRE(lease != nullptr);
  CHECK(lease->block().kind == ledger::ExportKind::granules);
  CHECK(lease->block().offset == wanted.offset);
  CHECK(lease->block().slab_bytes == wanted.parts.size() * kSharedPage);
  CHECK(lease->block().bytes == 70 * kSharedPage);
  CHECK(before.address != block.address);
}

TEST_CASE_METHOD(SharingGranules,
                 "a block that is freed while it is open can still be mapped by its opener, and by no other") {
  const pool::Block block = allocate(3 * kSharedPage);
  const ledger::ExportToken token = share(block);
  std::string said;
  auto lease = ledger::ExportLease::take(folder.path(), token, said);
  REQUIRE(free(block.address) == Quarantine::Retired::kept);
  reconcile();
  CHECK(fetch(token) == ledger::Fetched::parts);
  CHECK(ledger::ExportLease::take(folder.path(), token, said) == nullptr);
  lease.reset();
  reconcile();
  CHECK(fetch(token) == ledger::Fetched::no_block);
}

TEST_CASE_METHOD(SharingGranules, "a block is not given back while its parts are being exported") {
  const pool::Block block = allocate(3 * kSharedPage);
  const ledger::ExportToken token = share(block);
  {
    const IpcExporter::Exporting exporting(exports, token, 1);
    REQUIRE(exporting);
    CHECK(exporting.total() >= 3);
    CHECK(exporting.parts().size() == exporting.total() - 1);
    REQUIRE(free(block.address) == Quarantine::Retired::kept);
    reconcile();
    CHECK(exports.keeps_any());
  }
  reconcile();
  CHECK_FALSE(exports.keeps_any());
  CHECK(quarantine.blocks() == 1);
}

TEST_CASE_METHOD(SharingGranules, "nothing of a context that has ended is exported") {
  const ledger::ExportToken token = share(allocate(kSharedPage));
  REQUIRE(fetch(token) == ledger::Fetched::parts);
  owner->ended_by.store("cuCtxDestroy_v2");
  CHECK(fetch(token) == ledger::Fetched::no_block);
  exports.forget(*granules);
  CHECK(fetch(token) == ledger::Fetched::no_block);
  CHECK(granules->in_flight.load() == 0);
}

TEST_CASE_METHOD(SharingGranules, "a driver that exports nothing more is no reason to stop serving") {
  const ledger::ExportToken token = share(allocate(kSharedPage));
  driver.fail("cuMemExportToShareableHandle", CUDA_ERROR_OPERATING_SYSTEM);
  CHECK(fetch(token) == ledger::Fetched::no_descriptors);
  driver.fail_nothing();
  CHECK(fetch(token) == ledger::Fetched::parts);
}

TEST_CASE_METHOD(SharingGranules, "when the process ends, nothing can be asked for, and the socket is gone") {
  const ledger::ExportToken token = share(allocate(kSharedPage));
  const std::string path = folder / ledger::part_socket_name(token.exporter);
  CHECK(std::filesystem::exists(path));
  exports.leave();
  CHECK_FALSE(std::filesystem::exists(path));
  ledger::PartRequest request;
  request.token = token;
  CHECK(ledger::fetch_parts(folder.path(), request, now_ns() + 50'000'000, parts) == ledger::Fetched::no_answer);
}
