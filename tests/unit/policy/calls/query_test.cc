// What the memory queries of a program answer.
#include "catch.h"
#include "unit/policy/program.h"

using namespace ration;
using namespace ration::test;

TEST_CASE("without a limit a program gets the driver's figures") {
  FakeDriver driver;
  driver.taken_by_others = 5 * kMiB;
  Program program;
  program.create();
  program.take(100 * kMiB);
  CHECK(program.memory().free_bytes == driver.total - 105 * kMiB);
  CHECK(program.memory().total_bytes == driver.total);
  std::size_t total = driver.total;
  program.parts.queries.present_total(&total, FakeDriver::kFirstHandle);
  CHECK(total == driver.total);
}

TEST_CASE("a limit that was asked for is the size of the device, free is what is left of it") {
  FakeDriver driver;
  Program program(limit_of(1024 * kMiB));
  program.create();
  CHECK(program.memory().total_bytes == 1024 * kMiB);
  CHECK(program.memory().free_bytes == 1024 * kMiB);
  program.take(1000 * kMiB);
  CHECK(program.memory().free_bytes == 24 * kMiB);
  std::size_t total = driver.total;
  program.parts.queries.present_total(&total, FakeDriver::kFirstHandle + 1);
  CHECK(total == 1024 * kMiB);
}

TEST_CASE("free is never more than the device really has") {
  FakeDriver driver;
  driver.taken_by_others = driver.total - 10 * kMiB;
  Program program(limit_of(1024 * kMiB));
  program.create();
  CHECK(program.memory().free_bytes == 10 * kMiB);
}

TEST_CASE("a limit that is not to be shown leaves the total alone and bounds what is free") {
  FakeDriver driver;
  Program program(limit_of(1024 * kMiB), "", {false, false});
  program.create();
  program.take(1000 * kMiB);
  CHECK(program.memory().total_bytes == driver.total);
  CHECK(program.memory().free_bytes == 24 * kMiB);
  std::size_t total = driver.total;
  program.parts.queries.present_total(&total, FakeDriver::kFirstHandle);
  CHECK(total == driver.total);
}

TEST_CASE("a query takes null for what nobody wants to know") {
  FakeDriver driver;
  Program program(limit_of(1024 * kMiB));
  program.create();
  std::size_t value = driver.total;
  program.parts.queries.present_memory(nullptr, &value);
  CHECK(value == 1024 * kMiB);
  value = driver.total;
  program.parts.queries.present_memory(&value, nullptr);
  CHECK(value == 1024 * kMiB);
  program.parts.queries.present_memory(nullptr, nullptr);
  program.parts.queries.present_total(nullptr, FakeDriver::kFirstHandle);
}

TEST_CASE("a query counts bytes free whose stream has passed, and waits for none") {
  FakeDriver driver;
  Program program(limit_of(1000));
  program.create();
  driver.streams_wait = true;
  program.free_async(program.take(1000));
  CHECK(program.memory().free_bytes == 0);
  driver.streams_wait = false;
  CHECK(program.memory().free_bytes == 1000);
  CHECK(driver.calls("cuEventSynchronize") == 0);
}

TEST_CASE("a handle that no device has is answered as it was") {
  FakeDriver driver;
  Program program(limit_of(1000));
  std::size_t total = 5000;
  program.parts.queries.present_total(&total, 99);
  CHECK(total == 5000);
  program.parts.queries.present_total(&total, -1);
  CHECK(total == 5000);
}
