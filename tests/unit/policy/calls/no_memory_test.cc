// The host's memory runs out in the middle of a call: no record is lost.
#include <cstdlib>
#include <new>

#include "catch.h"
#include "unit/events/log_lines.h"
#include "unit/events/scratch_folder.h"
#include "unit/policy/host_memory.h"
#include "unit/policy/program.h"

namespace {

using ration::test::allocations_left;

void *allocate_or_fail(std::size_t bytes) {
  if (allocations_left == 0) {
    throw std::bad_alloc();
  }
  allocations_left -= allocations_left > 0 ? 1 : 0;
  if (void *memory = std::malloc(bytes != 0 ? bytes : 1)) {
    return memory;
  }
  throw std::bad_alloc();
}

// Out of line: inlined into a caller of `new`, g++ takes the pair for a mismatch.
[[gnu::noinline]] void give_back(void *memory) {
  std::free(memory);
}

}  // namespace

void *operator new(std::size_t bytes) {
  return allocate_or_fail(bytes);
}
void *operator new[](std::size_t bytes) {
  return allocate_or_fail(bytes);
}
void *operator new(std::size_t bytes, const std::nothrow_t &) noexcept {
  return std::malloc(bytes != 0 ? bytes : 1);
}
void operator delete(void *memory) noexcept {
  give_back(memory);
}
void operator delete[](void *memory) noexcept {
  give_back(memory);
}
// clang knows these only where they are asked for, and would hide them from the standard library.
[[gnu::visibility("default")]] void operator delete(void *memory, std::size_t) noexcept {
  give_back(memory);
}
[[gnu::visibility("default")]] void operator delete[](void *memory, std::size_t) noexcept {
  give_back(memory);
}

using namespace ration;
using namespace ration::test;

namespace {

// Runs `body` with memory for so many allocations; what it throws is answered as the hooks' boundary answers it.
template <class Body>
CUresult with_memory_for(int allocations, const Body &body) {
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  allocations_left = allocations;
  try {
    result = body();
  } catch (const std::bad_alloc &) {
  }
  allocations_left = -1;
  return result;
}

// Runs `round` with memory for 0, 1, 2, … allocations until that was enough. True: it ran short at least once before.
template <class Round>
bool runs_short_then_succeeds(const Round &round) {
  for (int allocations = 0; allocations < 100; ++allocations) {
    if (round(allocations)) {
      return allocations > 0;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("an allocation that runs out of host memory takes nothing from the device") {
  CHECK(runs_short_then_succeeds([](int allocations) {
    FakeDriver driver;
    Program program(limit_of(10240));
    program.create();
    CUdeviceptr address = kUntouched;
    const CUresult result = with_memory_for(allocations, [&] { return program.allocate(6144, &address); });
    const bool succeeded = result == CUDA_SUCCESS;
    CHECK((succeeded || result == CUDA_ERROR_OUT_OF_MEMORY));
    CHECK((address != kUntouched) == succeeded);
    CHECK(driver.live_blocks() == (succeeded ? 1 : 0));
    CHECK(program.charged() == (succeeded ? 6144 : 0));
    return succeeded;
  }));
}

TEST_CASE("what ends without host memory comes back all the same, by free and by its context") {
  const ScratchFolder folder;
  FakeDriver driver;
  Program program(limit_of(100'000), folder / "log");
  const CUcontext context = program.create();
  const CUdeviceptr address = program.take(600);
  for (int i = 0; i < 100; ++i) {
    program.take(512);
  }
  CHECK(with_memory_for(0, [&] { return program.free(address); }) == CUDA_SUCCESS);
  CHECK(with_memory_for(0, [&] { return program.destroy(context); }) == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
  CHECK(sums_of(log_lines(folder / "log")).frees == 101);
}

TEST_CASE("a stream-ordered free that cannot be remembered is waited for") {
  FakeDriver driver;
  Program program(limit_of(1000));
  program.create();
  const CUdeviceptr address = program.take(600);
  driver.streams_wait = true;
  CHECK(with_memory_for(0, [&] { return program.free_async(address); }) == CUDA_SUCCESS);
  CHECK(driver.calls("cuEventSynchronize") == 1);
  CHECK(program.charged() == 0);
}

TEST_CASE("a context that cannot be noted is noted when it is seen") {
  FakeDriver driver;
  Program program(limit_of(10240));
  program.take(1);  // what is built once is built
  CUcontext context = nullptr;
  with_memory_for(0, [&] {
    context = program.create(1);
    return CUDA_SUCCESS;
  });
  REQUIRE(context != nullptr);
  program.take(6144);
  CHECK(program.charged(1) == 6144);
  CHECK(program.destroy(context) == CUDA_SUCCESS);
  CHECK(program.charged(1) == 0);
}

TEST_CASE("a record that finds no memory is counted once, and lost once") {
  // Behind the end a record is written together with the end: more than the place that a line brings along.
  CHECK(runs_short_then_succeeds([](int allocations) {
    const ScratchFolder folder;
    FakeDriver driver;
    Program program(limit_of(10'000), folder / "log");
    program.create();
    const CUdeviceptr address = program.take(6144);
    program.parts.journal.end(nullptr);
    CHECK(with_memory_for(allocations, [&] { return program.free(address); }) == CUDA_SUCCESS);
    program.take(1024);
    const std::vector<json> lines = log_lines(folder / "log");
    CHECK(is_consecutive(lines));
    CHECK(lines.back().at("frees") == 1);
    CHECK(lines.back().at("live").at(0).at("bytes") == 1024);
    const int lost = lines.back().at("dropped");
    CHECK(of_type(lines, "free").size() + static_cast<std::size_t>(lost) == 1);
    return lost == 0;
  }));
}
