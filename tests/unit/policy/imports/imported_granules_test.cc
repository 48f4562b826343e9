// Blocks of granules that this process opens: what is mapped, in which order it goes, and what a refusal leaves.
#include "policy/imports/imported_granules.h"

#include <thread>

#include "catch.h"
#include "ledger/export_file.h"
#include "policy/imports/ipc_importer.h"
#include "unit/events/scratch_folder.h"
#include "unit/policy/fake_granules.h"
#include "unit/policy/quarantine_fixture.h"

using namespace ration;
using namespace ration::test;
using policy::IpcImporter;
using Done = std::vector<std::string>;

namespace {

// An exporter whose blocks lie in handles 11, 12 and so on, of so many MiB.
struct ImportingGranules : QuarantineFixture {
  ImportingGranules() {
    FakeDriver::current = context->handle;
    std::string said;
    file = ledger::ExportFile::make(folder.path(), said);
    REQUIRE(file != nullptr);
    REQUIRE(ledger::PartSocket::open(folder.path(), file->exporter(), said));
    server = std::thread([this] { serve(); });
  }
  ~ImportingGranules() {
    ledger::PartSocket::shut();
    server.join();
    ledger::PartSocket::remove(folder.path(), file->exporter());
  }
  void serve() {
    ledger::PartRequest request;
    for (auto received = ledger::PartSocket::receive(request); received != ledger::PartSocket::Received::closed;
         received = ledger::PartSocket::receive(request)) {
      if (received == ledger::PartSocket::Received::nothing) {
        continue;
      }
      ledger::PartReply reply;
      reply.state = ledger::PartsState::sent;
      reply.total = sizes.size();
      int files[ledger::kPartsAtOnce];
      for (std::uint64_t i = request.first; i < sizes.size() && reply.count < at_once; ++i) {
        files[reply.count] = FakeGranules::file_of(11 + i);
        reply.bytes[reply.count++] = sizes[i] * kMiB;
      }
      (void)ledger::PartSocket::answer(reply, files);
      for (std::uint32_t i = 0; i < reply.count; ++i) {
        close(files[i]);
      }
      ledger::PartSocket::hang_up();
    }
  }
  ledger::ExportToken publish(std::uint64_t all) {
    ledger::ExportedBlock in;
    in.kind = ledger::ExportKind::granules;
    in.offset = 512;
    in.bytes = 1000;
    in.slab_bytes = all * kMiB;
    return file->publish(0, in, ledger::export_nonce());
  }
  CUresult open(const ledger::ExportToken &token, CUdeviceptr &address) {
    return imports.open(
        token, context, [](const CUipcMemHandle &, CUdeviceptr *) { return CUDA_ERROR_UNKNOWN; }, &address);
  }
  CUresult close_block(CUdeviceptr address) {
    bool handled = false;
    const CUresult result = imports.close(address, context, handled);
    CHECK(handled);
    return result;
  }
  bool is_open() { return ledger::ExportFile::Snapshot(*file).is_open(0); }

  ScratchFolder folder;
  FakeGranules granules;
  std::vector<std::uint64_t> sizes{2, 4, 2};
  std::uint32_t at_once = 2;
  std::unique_ptr<ledger::ExportFile> file;
  std::thread server;
  IpcImporter imports{fences, folder.path()};
};

}  // namespace

TEST_CASE_METHOD(ImportingGranules, "a block's parts are mapped side by side, and no handle is kept") {
  CUdeviceptr address = kUntouched;
  REQUIRE(open(publish(8), address) == CUDA_SUCCESS);
  CHECK(address == FakeGranules::kBase + 512);
  CHECK(granules.done() == Done{"reserve of 8", "map 11 of 2", "release 11", "map 12 at 2 of 4", "release 12",
                                "map 13 at 6 of 2", "release 13", "allow 0 of 8"});
  CHECK(imports.block_at(address + 999));
  CHECK_FALSE(imports.block_at(address + 1000));
  CHECK(imports.covers(FakeGranules::kBase + 8 * kMiB - 1));
  CHECK(imports.opener_in_granules(address) == context);
  CHECK(imports.opener_in_granules(address + 1000) == nullptr);
}

TEST_CASE_METHOD(ImportingGranules, "the exporter may reuse the memory only when it is no longer mapped here") {
  CUdeviceptr address = kUntouched;
  const ledger::ExportToken token = publish(8);
  REQUIRE(open(token, address) == CUDA_SUCCESS);
  CUdeviceptr again = kUntouched;
  REQUIRE(open(token, again) == CUDA_SUCCESS);
  CHECK(again == address);
  granules.done();
  bool open_when_unmapped = false;
  granules.when_unmapped = [&] { open_when_unmapped = is_open(); };
  CHECK(close_block(address) == CUDA_SUCCESS);
  CHECK(granules.done().empty());
  CHECK(close_block(address) == CUDA_SUCCESS);
  CHECK(granules.done() == Done{"unmap of 8", "free of 8"});
  CHECK(open_when_unmapped);
  CHECK_FALSE(is_open());
}

TEST_CASE_METHOD(ImportingGranules, "a block that is closed stays mapped until the work on it has finished") {
  CUdeviceptr address = kUntouched;
  REQUIRE(open(publish(8), address) == CUDA_SUCCESS);
  granules.done();
  driver.timeline.submit(context->handle);
  CHECK(close_block(address) == CUDA_SUCCESS);
  CHECK(granules.done().empty());
  CHECK(is_open());
  driver.timeline.finish(driver.timeline.submitted());
  imports.poll();
  CHECK(granules.done() == Done{"unmap of 8", "free of 8"});
  CHECK_FALSE(is_open());
}

TEST_CASE_METHOD(ImportingGranules, "a part that cannot be mapped undoes those before it") {
  granules.unmappable = 13;
  CUdeviceptr address = kUntouched;
  CHECK(open(publish(8), address) == CUDA_ERROR_MAP_FAILED);
  CHECK(address == kUntouched);
  CHECK(granules.done() == Done{"reserve of 8", "map 11 of 2", "release 11", "map 12 at 2 of 4", "release 12",
                                "release 13", "unmap of 6", "free of 8"});
  CHECK_FALSE(is_open());
}

TEST_CASE_METHOD(ImportingGranules, "parts of another size than the block's record says are not mapped") {
  CUdeviceptr address = kUntouched;
  CHECK(open(publish(7), address) == CUDA_ERROR_INVALID_VALUE);
  CHECK(open(publish(9), address) == CUDA_ERROR_INVALID_VALUE);
  CHECK(address == kUntouched);
  CHECK_FALSE(is_open());
}

TEST_CASE_METHOD(ImportingGranules, "the driver's lack of addresses or memory is what the program hears") {
  CUdeviceptr address = kUntouched;
  driver.fails["cuMemAddressReserve"] = CUDA_ERROR_OUT_OF_MEMORY;
  CHECK(open(publish(8), address) == CUDA_ERROR_OUT_OF_MEMORY);
  driver.fails = {{"cuMemImportFromShareableHandle", CUDA_ERROR_NOT_PERMITTED}};
  CHECK(open(publish(8), address) == CUDA_ERROR_MAP_FAILED);
  driver.fails = {{"cuMemSetAccess", CUDA_ERROR_INVALID_DEVICE}};
  CHECK(open(publish(8), address) == CUDA_ERROR_MAP_FAILED);
  CHECK_FALSE(is_open());
}

TEST_CASE_METHOD(ImportingGranules,
                 "the memory's own device has access, and every peer of the opener's, before and after") {
  granules.device = 1;
  imports.peer_may_access(0, 2);
  CUdeviceptr address = kUntouched;
  REQUIRE(open(publish(8), address) == CUDA_SUCCESS);
  Done done = granules.done();
  CHECK(Done(done.end() - 3, done.end()) == Done{"allow 0 of 8", "allow 1 of 8", "allow 2 of 8"});
  imports.peer_may_access(0, 3);
  imports.peer_may_access(0, 3);
  imports.peer_may_access(1, 3);
  CHECK(granules.done() == Done{"allow 3 of 8"});
}

TEST_CASE_METHOD(ImportingGranules, "what a context has open goes with it, and is unmapped") {
  CUdeviceptr address = kUntouched;
  REQUIRE(open(publish(8), address) == CUDA_SUCCESS);
  granules.done();
  imports.finish_end(context);
  CHECK(granules.done() == Done{"unmap of 8", "free of 8"});
  CHECK_FALSE(imports.covers(address));
  CHECK_FALSE(is_open());
}
