// Blocks of others: how often the driver is asked, what an address is said to be, and when an owner gets a block back.
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

struct Customer : QuarantineFixture {
  Customer() {
    std::string said;
    file = ledger::ExportFile::make(folder.path(), said);
    REQUIRE(file != nullptr);
  }
  // A block in slab number `slab`, each of which the driver has a handle for.
  ledger::ExportToken sell(std::uint32_t record, std::uint64_t offset, unsigned char slab = 0) {
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

TEST_CASE("blocks of one slab are opened by one call of the driver's, each at its own place") {
  Customer customer;
  const CUdeviceptr first = customer.opened_at(customer.sell(0, 512));
  const CUdeviceptr second = customer.opened_at(customer.sell(1, 4096));
  const CUdeviceptr elsewhere = customer.opened_at(customer.sell(2, 512, 1));
  CHECK(first == kBase + 512);
  CHECK(second == kBase + 4096);
  CHECK(elsewhere == kBase + 2 * kMiB + 512);
  CHECK(customer.opened == 2);
  REQUIRE(customer.imports.block_at(second + 999));
  CHECK(customer.imports.block_at(second + 999)->base == second);
  CHECK(customer.imports.block_at(second + 999)->bytes == 1000);
  CHECK_FALSE(customer.imports.block_at(second + 1000));
  CHECK(customer.imports.covers(second + 1000));
  CHECK_FALSE(customer.imports.covers(kBase + kMiB));
  CHECK(customer.close(first + 1) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a token that is opened twice gives one address, and is open until it is closed twice") {
  Customer customer;
  const ledger::ExportToken token = customer.sell(0, 512);
  const CUdeviceptr address = customer.opened_at(token);
  CHECK(customer.opened_at(token) == address);
  CHECK(customer.opened == 1);
  CHECK(customer.close(address) == CUDA_SUCCESS);
  CHECK(customer.is_open(0));
  CHECK(customer.close(address) == CUDA_SUCCESS);
  CHECK_FALSE(customer.is_open(0));
  CHECK_FALSE(customer.imports.covers(address));
}

TEST_CASE("what has ended is not opened again, not even where it is open") {
  Customer customer;
  const ledger::ExportToken token = customer.sell(0, 512);
  customer.opened_at(token);
  customer.file->end(0);
  CUdeviceptr address = kUntouched;
  CHECK(customer.open(token, address) == CUDA_ERROR_INVALID_VALUE);
  CHECK(address == kUntouched);
}

TEST_CASE("what the driver does not open nobody has") {
  Customer customer;
  customer.answer = CUDA_ERROR_MAP_FAILED;
  CUdeviceptr address = kUntouched;
  CHECK(customer.open(customer.sell(0, 512), address) == CUDA_ERROR_MAP_FAILED);
  CHECK(address == kUntouched);
  CHECK_FALSE(customer.is_open(0));
  CHECK_FALSE(customer.imports.covers(kBase));
}

TEST_CASE("an owner gets a block back when the device is through with what came before its close") {
  Customer customer;
  const CUdeviceptr address = customer.opened_at(customer.sell(0, 512));
  customer.driver.timeline.submit(customer.context->handle);
  CHECK(customer.close(address) == CUDA_SUCCESS);
  CHECK(customer.is_open(0));
  customer.imports.poll();
  CHECK(customer.is_open(0));
  const FakeTimeline::Point before = customer.driver.timeline.submitted();
  customer.driver.timeline.submit(customer.context->handle);  // of no concern to it
  customer.driver.timeline.finish(before);
  customer.imports.poll();
  CHECK_FALSE(customer.is_open(0));
}

TEST_CASE("a close during a capture leaves the capture whole, and lets go behind it") {
  Customer customer;
  const CUdeviceptr address = customer.opened_at(customer.sell(0, 512));
  FakeDriver::current = customer.context->handle;

  const CUstream stream = customer.driver.timeline.open_stream(customer.context->handle);
  customer.captures.begin_capture();
  REQUIRE(customer.driver.timeline.begin_capture(stream, customer.context->handle) == CUDA_SUCCESS);
  customer.captures.finish_begin(stream, CUDA_SUCCESS, customer.context);
  CHECK(customer.close(address) == CUDA_SUCCESS);
  CHECK(customer.is_open(0));
  const std::uint64_t number = customer.captures.number_of(stream, customer.context);
  const CUresult ended = customer.driver.timeline.end_capture(stream);
  CHECK(ended == CUDA_SUCCESS);
  customer.captures.finish_end(number, ended);
  customer.imports.poll();
  CHECK_FALSE(customer.is_open(0));
}

TEST_CASE("a context that goes takes its openings along") {
  Customer customer;
  const policy::ContextRef gone = customer.context;
  const CUdeviceptr address = customer.opened_at(customer.sell(0, 512));
  customer.context = customer.add_context();
  const CUdeviceptr same = customer.opened_at(customer.sell(1, 512));
  CHECK(same == address);  // the fake driver's word
  customer.imports.finish_end(gone);
  CHECK_FALSE(customer.is_open(0));
  CHECK(customer.is_open(1));
  CHECK(customer.imports.covers(same));
}
