#include "policy/calls/overhead.h"

#include <memory>

#include "tests/catch.h"
#include "unit/policy/program.h"

using namespace ration;
using namespace ration::test;

namespace {

runtime::Options charging() {
  runtime::Options options;
  options.charge_context = true;
  return options;
}

// A program in a context of 10 MiB, on a device of which a neighbour holds 100 MiB.
struct Measured {
  explicit Measured(bool listed, runtime::Options options = charging())
      : program(std::make_unique<TestLimits>(), "", options) {
    driver.context_bytes = 10 * kMiB;
    driver.taken_by_others = 100 * kMiB;
    program.figures.lists = listed;
    context = program.create();
  }
  CUmodule load(
      std::uint64_t bytes, FunctionRef<void()> meanwhile = [] {}) {
    CUmodule module = nullptr;
    CHECK(program.parts.overhead.load_module("cuModuleLoad", &module, [&] {
      meanwhile();
      driver.own_bytes[0] += bytes;
      module = reinterpret_cast<CUmodule>(next += 16);
      return CUDA_SUCCESS;
    }) == CUDA_SUCCESS);
    return module;
  }
  CUresult unload(CUmodule module, std::uint64_t bytes, CUresult code = CUDA_SUCCESS) {
    return program.parts.overhead.unload_module(module, [&] {
      driver.own_bytes[0] -= code == CUDA_SUCCESS ? bytes : 0;
      return code;
    });
  }
  void use(CUlibrary library, std::uint64_t bytes) {
    CHECK(program.parts.overhead.use_library("cuLibraryGetModule", library, [&] {
      driver.own_bytes[0] += bytes;
      return CUDA_SUCCESS;
    }) == CUDA_SUCCESS);
  }
  void set_limit(std::int64_t change, std::size_t value = kMiB) {
    CHECK(program.parts.overhead.set_limit(CU_LIMIT_MALLOC_HEAP_SIZE, value, [&] {
      driver.own_bytes[0] += static_cast<std::uint64_t>(change);
      return CUDA_SUCCESS;
    }) == CUDA_SUCCESS);
  }
  std::uint64_t peak(events::OverheadKind kind) {
    return program.tally().devices[0].overhead[static_cast<int>(kind)].load();
  }
  std::uint64_t charged() const { return program.charged(); }

  FakeDriver driver;
  Program program;
  CUcontext context = nullptr;
  std::uintptr_t next = 0x9000;
};

const auto kLibrary = reinterpret_cast<CUlibrary>(std::uintptr_t{0x8000});

}  // namespace

TEST_CASE("where nobody would see it, nothing is measured") {
  Measured measured(true, {});
  const int calls = measured.driver.calls();
  const CUmodule module = measured.load(kMiB);
  measured.use(kLibrary, kMiB);
  measured.set_limit(kMiB);
  CHECK(measured.unload(module, kMiB) == CUDA_SUCCESS);
  CHECK(measured.driver.calls() == calls);
  CHECK(measured.charged() == 0);
}

TEST_CASE("what is only told is not charged") {
  runtime::Options options;
  FakeDriver driver;
  FakeFigures figures;
  figures.lists = true;
  TestLimits limits;
  std::string problem;
  events::JournalOptions journal = Program::journal_options("");
  journal.summary_directory = "/nonexistent/folder";  // somebody wants the totals
  runtime::Assembly parts(options, limits, std::move(journal), figures, problem);
  driver.context_bytes = 10 * kMiB;
  CUcontext context = nullptr;
  CHECK(parts.context_life.create("cuCtxCreate_v2", &context, FakeDriver::kFirstHandle, [&] {
    return driver::real.cuCtxCreate_v2(&context, 0, FakeDriver::kFirstHandle);
  }) == CUDA_SUCCESS);
  CHECK(parts.ledger.account(0).charged() == 0);
  CHECK(parts.journal.tally().devices[0].overhead_peak == 10 * kMiB);
}

TEST_CASE("a first context is charged its own memory where the process is listed, else all that is not ours") {
  CHECK(Measured(true).charged() == 10 * kMiB);
  CHECK(Measured(false).charged() == 110 * kMiB);
}

TEST_CASE("a further context is charged its own memory alone") {
  Measured measured(false);
  measured.program.create();
  CHECK(measured.charged() == 120 * kMiB);
}

TEST_CASE("a module is charged until it is unloaded") {
  for (const bool listed : {true, false}) {
    Measured measured(listed);
    const std::uint64_t before = measured.charged();
    const CUmodule module = measured.load(3 * kMiB);
    CHECK(measured.charged() == before + 3 * kMiB);
    CHECK(measured.unload(module, 3 * kMiB, CUDA_ERROR_INVALID_HANDLE) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(measured.charged() == before + 3 * kMiB);
    CHECK(measured.unload(module, 3 * kMiB) == CUDA_SUCCESS);
    CHECK(measured.charged() == before);
    CHECK(measured.peak(events::OverheadKind::module) == 3 * kMiB);
  }
}

TEST_CASE("a library is charged once in each context that uses it") {
  Measured measured(true);
  measured.use(kLibrary, 2 * kMiB);
  const int calls = measured.driver.calls("cuMemGetInfo_v2");
  measured.use(kLibrary, 0);
  CHECK(measured.driver.calls("cuMemGetInfo_v2") == calls);
  CHECK(measured.charged() == 12 * kMiB);
  measured.program.create();
  measured.use(kLibrary, 2 * kMiB);
  CHECK(measured.charged() == 24 * kMiB);
  CHECK(measured.program.parts.overhead.unload_library(kLibrary, [] { return CUDA_SUCCESS; }) == CUDA_SUCCESS);
  CHECK(measured.charged() == 20 * kMiB);
}

TEST_CASE("what a limit takes is charged, and what it gives back is not") {
  for (const bool listed : {true, false}) {
    Measured measured(listed);
    const std::uint64_t before = measured.charged();
    measured.set_limit(5 * kMiB);
    CHECK(measured.charged() == before + 5 * kMiB);
    measured.set_limit(-static_cast<std::int64_t>(2 * kMiB));
    CHECK(measured.charged() == before + 3 * kMiB);
  }
}

TEST_CASE("a neighbour's memory is never charged where the process is listed") {
  Measured measured(true);
  measured.load(kMiB, [&] { measured.driver.taken_by_others += 500 * kMiB; });
  CHECK(measured.charged() == 11 * kMiB);
  measured.load(kMiB, [&] { measured.driver.taken_by_others -= 600 * kMiB; });
  CHECK(measured.charged() == 12 * kMiB);
}

TEST_CASE("elsewhere a neighbour's memory counts up to what the call can take, and none that it frees") {
  Measured measured(false);
  measured.driver.taken_by_others += 900 * kMiB;
  const std::uint64_t before = measured.charged();
  measured.load(kMiB, [&] { measured.driver.taken_by_others -= 900 * kMiB; });
  CHECK(measured.charged() == before);
  measured.program.parts.overhead.set_limit(CU_LIMIT_MALLOC_HEAP_SIZE, kMiB, [&] {
    measured.driver.taken_by_others += 900 * kMiB;
    return CUDA_SUCCESS;
  });
  CHECK(measured.charged() == before + 65 * kMiB);
}

TEST_CASE("the program's own blocks that come and go meanwhile are no overhead") {
  for (const bool listed : {true, false}) {
    Measured measured(listed);
    const CUdeviceptr old = measured.program.take(8 * kMiB);
    const std::uint64_t before = measured.charged();
    measured.load(kMiB, [&] {
      CHECK(measured.program.take(20 * kMiB) != kUntouched);
      CHECK(measured.program.free(old) == CUDA_SUCCESS);
    });
    CHECK(measured.charged() == before + 13 * kMiB);
  }
}

TEST_CASE("a call during another thread's allocation counts nothing, until NVML's figure is asked again") {
  for (const bool listed : {true, false}) {
    Measured measured(listed);
    const std::uint64_t before = measured.charged();
    {
      const ledger::Change change(measured.program.parts.ledger.account(0).changes());
      measured.load(kMiB);
      CHECK(measured.charged() == before);
    }
    measured.program.memory();
    CHECK(measured.charged() == before + (listed ? kMiB : 0));
  }
}

TEST_CASE("measured calls that overlap count everything once") {
  for (const bool listed : {true, false}) {
    Measured measured(listed);
    const std::uint64_t before = measured.charged();
    CUmodule inner = nullptr;
    const CUmodule outer = measured.load(2 * kMiB, [&] { inner = measured.load(kMiB); });
    CHECK(measured.charged() == before + 3 * kMiB);
    CHECK(measured.unload(inner, kMiB) == CUDA_SUCCESS);
    CHECK(measured.unload(outer, 2 * kMiB) == CUDA_SUCCESS);
    CHECK(measured.charged() == before);
    const CUmodule gone = measured.load(4 * kMiB);
    measured.load(2 * kMiB, [&] { CHECK(measured.unload(gone, 4 * kMiB) == CUDA_SUCCESS); });
    CHECK(measured.charged() == before + 2 * kMiB);
  }
}

TEST_CASE("what launches take is corrected at the next query, both ways") {
  Measured measured(true);
  measured.driver.own_bytes[0] += 7 * kMiB;
  measured.program.memory();
  CHECK(measured.charged() == 17 * kMiB);
  measured.driver.own_bytes[0] -= 4 * kMiB;
  measured.program.memory();
  CHECK(measured.charged() == 13 * kMiB);
  CHECK(measured.peak(events::OverheadKind::other) == 7 * kMiB);
}

TEST_CASE("a context that ends takes all its parts along") {
  Measured measured(true);
  measured.load(kMiB);
  measured.use(kLibrary, kMiB);
  measured.set_limit(kMiB);
  measured.driver.own_bytes[0] += kMiB;
  measured.program.memory();
  CHECK(measured.charged() == 14 * kMiB);
  measured.driver.own_bytes[0] = 0;
  CHECK(measured.program.destroy(measured.context) == CUDA_SUCCESS);
  CHECK(measured.charged() == 0);
}

TEST_CASE("a call that fails is charged nothing") {
  Measured measured(true);
  CUmodule module = nullptr;
  CHECK(measured.program.parts.overhead.load_module("cuModuleLoad", &module, [] { return CUDA_ERROR_INVALID_VALUE; }) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(measured.program.parts.overhead.set_limit(CU_LIMIT_STACK_SIZE, 1, [] { return CUDA_ERROR_OUT_OF_MEMORY; }) ==
        CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(measured.program.parts.overhead.load_module("cuModuleLoad", nullptr, [] { return CUDA_ERROR_INVALID_VALUE; }) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(measured.charged() == 10 * kMiB);
}

TEST_CASE("without a current context, or a driver that says what is free, the calls are the driver's alone") {
  Measured measured(false);
  const std::uint64_t before = measured.charged();
  measured.driver.fails["cuMemGetInfo_v2"] = CUDA_ERROR_UNKNOWN;
  measured.load(kMiB);
  CHECK(measured.charged() == before);
  FakeDriver::current = nullptr;
  measured.load(kMiB);
  CHECK(measured.charged() == before);
}
