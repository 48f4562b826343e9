// Imported blocks: how often the driver is called, what an address belongs to, and when the exporter may reuse a block.
#include "policy/imports/ipc_importer.h"

#include "catch.h"
#include "ledger/export_file.h"
#include "unit/events/scratch_folder.h"
#include "unit/policy/quarantine_fixture.h"

using namespace ration;
using namespace ration::test;
using policy::IpcImporter;

namespace {

constexpr CUdeviceptr kBase = 0x700000000;

struct Importing : QuarantineFixture {
  Importing() {
    std::string said;
    file = ledger::ExportFile::make(folder.path(), said);
    REQUIRE(file != nullptr);
  }
  // A block in slab number `slab`, each of which the driver has a handle for.
  ledger::ExportToken publish(std::uint32_t record, std::uint64_t offset, unsigned char slab = 0) {
    ledger::ExportedBlock in;
    in.handle[0] = slab;
    in.offset = offset;
    in.bytes = 1000;
    in.slab_bytes = kMiB;
    return file->publish(record, in, ledger::export_nonce());
  }
  CUresult open(const ledger::ExportToken &token, CUdeviceptr &address) {
    return imports.open(
        token, context,
        [this](const CUipcMemHandle &handle, CUdeviceptr *base) {
          ++opened;
          *base = kBase + static_cast<unsigned char>(handle.reserved[0]) * 2 * kMiB;
          return answer;
        },
        &address);
  }
  CUdeviceptr opened_at(const ledger::ExportToken &token) {
    CUdeviceptr address = kUntouched;
    REQUIRE(open(token, address) == CUDA_SUCCESS);
    return address;
  }
  CUresult close(CUdeviceptr address) {
    bool handled = false;
    const CUresult result = imports.close(address, context, handled);
    REQUIRE(handled);
    return result;
  }
  bool is_open(std::uint32_t record) { return ledger::ExportFile::Snapshot(*file).is_open(record); }

  ScratchFolder folder;
  std::unique_ptr<ledger::ExportFile> file;
  IpcImporter imports{fences, folder.path()};
  int opened = 0;
  CUresult answer = CUDA_SUCCESS;
};

}  // namespace

TEST_CASE("blocks of one slab are opened by one driver call, each at its own address") {
  Importing fixture;
  const CUdeviceptr first = fixture.opened_at(fixture.publish(0, 512));
  const CUdeviceptr second = fixture.opened_at(fixture.publish(1, 4096));
  const CUdeviceptr elsewhere = fixture.opened_at(fixture.publish(2, 512, 1));
  CHECK(first == kBase + 512);
  CHECK(second == kBase + 4096);
  CHECK(elsewhere == kBase + 2 * kMiB + 512);
  CHECK(fixture.opened == 2);
  REQUIRE(fixture.imports.block_at(second + 999));
  CHECK(fixture.imports.block_at(second + 999)->base == second);
  CHECK(fixture.imports.block_at(second + 999)->bytes == 1000);
  CHECK_FALSE(fixture.imports.block_at(second + 1000));
  CHECK(fixture.imports.covers(second + 1000));
  CHECK_FALSE(fixture.imports.covers(kBase + kMiB));
  CHECK(fixture.close(first + 1) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a token that is opened twice gives one address, and is open until it is closed twice") {
  Importing fixture;
  const ledger::ExportToken token = fixture.publish(0, 512);
  const CUdeviceptr address = fixture.opened_at(token);
  CHECK(fixture.opened_at(token) == address);
  CHECK(fixture.opened == 1);
  CHECK(fixture.close(address) == CUDA_SUCCESS);
  CHECK(fixture.is_open(0));
  CHECK(fixture.close(address) == CUDA_SUCCESS);
  CHECK_FALSE(fixture.is_open(0));
  CHECK_FALSE(fixture.imports.covers(address));
}

TEST_CASE("a block that has ended is not opened again, even where it is still open") {
  Importing fixture;
  const ledger::ExportToken token = fixture.publish(0, 512);
  fixture.opened_at(token);
  fixture.file->end(0);
  CUdeviceptr address = kUntouched;
  CHECK(fixture.open(token, address) == CUDA_ERROR_INVALID_VALUE);
  CHECK(address == kUntouched);
}

TEST_CASE("a block that the driver does not open is not imported") {
  Importing fixture;
  fixture.answer = CUDA_ERROR_MAP_FAILED;
  CUdeviceptr address = kUntouched;
  CHECK(fixture.open(fixture.publish(0, 512), address) == CUDA_ERROR_MAP_FAILED);
  CHECK(address == kUntouched);
  CHECK_FALSE(fixture.is_open(0));
  CHECK_FALSE(fixture.imports.covers(kBase));
}

TEST_CASE("the exporter may reuse a block once all work submitted before its close has finished") {
  Importing fixture;
  const CUdeviceptr address = fixture.opened_at(fixture.publish(0, 512));
  fixture.driver.timeline.submit(fixture.context->handle);
  CHECK(fixture.close(address) == CUDA_SUCCESS);
  CHECK(fixture.is_open(0));
  fixture.imports.poll();
  CHECK(fixture.is_open(0));
  const FakeTimeline::Point before = fixture.driver.timeline.submitted();
  fixture.driver.timeline.submit(fixture.context->handle);  // of no concern to it
  fixture.driver.timeline.finish(before);
  fixture.imports.poll();
  CHECK_FALSE(fixture.is_open(0));
}

TEST_CASE("a close during a capture leaves the capture valid, and the block is released after it") {
  Importing fixture;
  const CUdeviceptr address = fixture.opened_at(fixture.publish(0, 512));
  FakeDriver::current = fixture.context->handle;

  const CUstream stream = fixture.driver.timeline.open_stream(fixture.context->handle);
  fixture.captures.begin_capture();
  REQUIRE(fixture.driver.timeline.begin_capture(stream, fixture.context->handle) == CUDA_SUCCESS);
  fixture.captures.finish_begin(stream, CUDA_SUCCESS, fixture.context);
  CHECK(fixture.close(address) == CUDA_SUCCESS);
  CHECK(fixture.is_open(0));
  const std::uint64_t number = fixture.captures.number_of(stream, fixture.context);
  const CUresult ended = fixture.driver.timeline.end_capture(stream);
  CHECK(ended == CUDA_SUCCESS);
  fixture.captures.finish_end(number, ended);
  fixture.imports.poll();
  CHECK_FALSE(fixture.is_open(0));
}

TEST_CASE("the imports of a context end with it") {
  Importing fixture;
  const policy::ContextRef gone = fixture.context;
  const CUdeviceptr address = fixture.opened_at(fixture.publish(0, 512));
  fixture.context = fixture.add_context();
  const CUdeviceptr same = fixture.opened_at(fixture.publish(1, 512));
  CHECK(same == address);  // the fake driver's word
  fixture.imports.finish_end(gone);
  CHECK_FALSE(fixture.is_open(0));
  CHECK(fixture.is_open(1));
  CHECK(fixture.imports.covers(same));
}
