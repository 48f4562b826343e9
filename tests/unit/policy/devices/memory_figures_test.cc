// What NVML is made to say of a device's memory.
#include "policy/devices/memory_figures.h"

#include "catch.h"
#include "ledger/device_key.h"
#include "unit/events/scratch_folder.h"
#include "unit/policy/pooled_program.h"

using namespace ration;
using namespace ration::test;
using policy::MemoryFigures;
using policy::Presented;

namespace {

constexpr std::uint64_t kKept = 100 * kMiB;  // by the driver, for itself

// NVML's own answer about a device of the fake driver's.
MemoryFigures nvml_of(const FakeDriver &driver) {
  return {driver.total + kKept, kKept, driver.total - driver.taken_by_others};
}

std::string uuid_of(Program &program, std::size_t device) {
  program.parts.describe();
  return program.limits->met.at(device).uuid;
}

// A process that has not begun with CUDA, in a group of which one member, a process of the test's own, is alive.
struct Watcher : TestLimits {
  std::string state_folder() const override { return folder.path(); }
  std::vector<policy::GroupAsked> groups() const override { return {{ledger::GroupKind::kNamed, "team"}}; }
  std::optional<std::uint64_t> group_limit_on(std::size_t, const events::DeviceFacts &) const override {
    return group_limit;
  }
  MemoryFigures reported(bool show_limit = true) {
    MemoryFigures memory{1100 * kMiB, kKept, 900 * kMiB};
    presented = policy::present_before_cuda(*this, device, show_limit, memory);
    return memory;
  }
  std::unique_ptr<ledger::Membership> join() {
    std::string problem;
    auto member =
        ledger::Membership::join(folder.path(), ledger::GroupKind::kNamed, "team", ledger::this_process(), problem);
    REQUIRE(problem.empty());
    return member;
  }

  ScratchFolder folder;
  events::DeviceFacts device{0, "GPU-00112233-4455-6677-8899-aabbccddeeff", "", 1100 * kMiB, 1100 * kMiB, false};
  std::optional<std::uint64_t> group_limit;
  Presented presented{};
};

}  // namespace

TEST_CASE("the limit is the device's size, and what the program holds is used") {
  FakeDriver driver;
  Program program(limit_of(1024 * kMiB));
  program.create();
  const std::string uuid = uuid_of(program, 0);
  MemoryFigures memory = nvml_of(driver);
  CHECK(program.parts.queries.present_device(uuid, false, memory) == Presented::yes);
  CHECK((memory.total == 1024 * kMiB && memory.reserved == 0 && memory.free == 1024 * kMiB && memory.used() == 0));
  program.take(1000 * kMiB);
  memory = nvml_of(driver);
  CHECK(program.parts.queries.present_device(uuid, false, memory) == Presented::yes);
  CHECK((memory.total == 1024 * kMiB && memory.free == 24 * kMiB && memory.used() == 1000 * kMiB));
}

TEST_CASE("without a limit, or where it is not shown, the size and what the driver keeps are NVML's") {
  for (const bool limited : {false, true}) {
    FakeDriver driver;
    driver.taken_by_others = 300 * kMiB;
    Program program(limited ? limit_of(1024 * kMiB) : std::make_unique<TestLimits>(), "", {false, false});
    program.create();
    MemoryFigures memory = nvml_of(driver);
    CHECK(program.parts.queries.present_device(uuid_of(program, 1), false, memory) == Presented::yes);
    CHECK((memory.total == driver.total + kKept && memory.reserved == kKept));
    CHECK(memory.free == (limited ? 1024 * kMiB : driver.total - 300 * kMiB));
  }
}

TEST_CASE("what a pool holds is free to NVML too") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(1024 * kMiB));
  program.create();
  const CUdeviceptr block = program.take(kMiB);
  std::size_t free_bytes = driver.total - driver.used(0);
  std::size_t total_bytes = driver.total;
  MemoryFigures memory{driver.total, 0, free_bytes};
  program.parts.queries.present_memory(&free_bytes, &total_bytes);
  CHECK(program.parts.queries.present_device(uuid_of(program, 0), false, memory) == Presented::yes);
  CHECK(memory.free > 1022 * kMiB);
  CHECK((memory.free == free_bytes && memory.total == total_bytes));
  CHECK(program.free(block) == CUDA_SUCCESS);
}

TEST_CASE("a device that the process does not have stays NVML's business") {
  FakeDriver driver;
  Program program(limit_of(1024 * kMiB));
  program.create();
  MemoryFigures memory = nvml_of(driver);
  for (const char *other : {"GPU-99999999-9999-9999-9999-999999999999", "", "MIG-GPU-no"}) {
    CHECK(program.parts.queries.present_device(other, false, memory) == Presented::untouched);
  }
  CHECK((memory.total == driver.total + kKept && memory.reserved == kKept && memory.free == driver.total));
}

TEST_CASE("UUIDs are the same whatever kind of device they are said to name, and only whole") {
  const std::string uuid = "00112233-4455-6677-8899-aabbccddeeff";
  CHECK(policy::same_uuid("GPU-" + uuid, "GPU-" + uuid));
  CHECK(policy::same_uuid("MIG-" + uuid, "GPU-" + uuid));
  CHECK(policy::same_uuid("GPU-00112233-4455-6677-8899-AABBCCDDEEFF", "GPU-" + uuid));
  CHECK_FALSE(policy::same_uuid("", ""));
  CHECK_FALSE(policy::same_uuid("GPU-" + uuid, ""));
  CHECK_FALSE(policy::same_uuid("MIG-GPU-" + uuid + "/1/0", "GPU-" + uuid));
  CHECK_FALSE(policy::same_uuid("GPU-00112233-4455-6677-8899-aabbccddeefe", "GPU-" + uuid));
  CHECK_FALSE(
      policy::same_uuid("GPU-00112233-4455-6677-8899-aabbccddeefx", "GPU-00112233-4455-6677-8899-aabbccddeefx"));
}

TEST_CASE("used never wraps, whatever NVML says") {
  MemoryFigures memory{100, 200, 50};
  CHECK(memory.used() == 0);
  memory.show(std::nullopt, 50);
  CHECK((memory.free == 0 && memory.used() == 0));
}

TEST_CASE("before CUDA a process without limits gets NVML's figures") {
  Watcher watcher;
  const MemoryFigures memory = watcher.reported();
  CHECK(watcher.presented == Presented::untouched);
  CHECK((memory.total == 1100 * kMiB && memory.reserved == kKept && memory.free == 900 * kMiB));
}

TEST_CASE("before CUDA a process sees its limit, and no more free than the device has") {
  Watcher watcher;
  watcher.asked = true;
  watcher.bytes = 400 * kMiB;
  MemoryFigures memory = watcher.reported();
  CHECK((memory.total == 400 * kMiB && memory.reserved == 0 && memory.free == 400 * kMiB));
  watcher.bytes = 1000 * kMiB;
  memory = watcher.reported();
  CHECK((memory.total == 1000 * kMiB && memory.free == 900 * kMiB && memory.used() == 100 * kMiB));
  memory = watcher.reported(false);
  CHECK((memory.total == 1100 * kMiB && memory.reserved == kKept && memory.free == 900 * kMiB));
}

TEST_CASE("before CUDA the smallest limit of the group and what its living members hold count") {
  Watcher watcher;
  watcher.group_limit = 800 * kMiB;
  CHECK(watcher.reported().free == 800 * kMiB);
  std::unique_ptr<ledger::Membership> member = watcher.join();
  const int place = member->device(watcher.device.uuid, 0);
  CHECK(watcher.reported().free == 800 * kMiB);
  member->state_limit(place, 600 * kMiB);
  REQUIRE(member->reserve(place, 250 * kMiB, true) == ledger::ReserveOutcome::granted);
  CHECK(watcher.reported().free == 350 * kMiB);
  CHECK(watcher.reported().total == 600 * kMiB);
  watcher.group_limit = 100 * kMiB;
  CHECK(watcher.reported().free == 0);
  watcher.group_limit.reset();
  CHECK(watcher.reported().free == 350 * kMiB);
  watcher.device.uuid = "GPU-99999999-4455-6677-8899-aabbccddeeff";
  watcher.reported();
  CHECK(watcher.presented == Presented::untouched);
  watcher.device.uuid = "GPU-00112233-4455-6677-8899-aabbccddeeff";
  member.reset();
  watcher.reported();
  CHECK(watcher.presented == Presented::untouched);
}

TEST_CASE("lists of processes share what is used, this process first and the others in proportion") {
  constexpr auto kNone = policy::ProcessShares::kNotAvailable;
  MemoryFigures memory{1024, 0, 1024 - 300};
  memory.own = 240;
  policy::ProcessShares shares;
  for (int list = 0; list < 2; ++list) {  // in both
    shares.begin_list();
    shares.add(1, 1280);
    shares.add(2, 600);
    shares.add(3, 100);
    shares.add(3, 200);  // in two instances of a device
    shares.add(4, kNone);
  }
  shares.fit(memory, 1);
  CHECK(shares.shown(1, 1280) == 240);
  CHECK(shares.shown(2, 600) == 40);
  CHECK(shares.shown(3, 100) == 6);
  CHECK(shares.shown(3, 200) == 13);
  CHECK(shares.shown(4, kNone) == kNone);
  memory.own = 900;
  shares.fit(memory, 1);
  CHECK(shares.shown(1, 1280) == 300);
  CHECK(shares.shown(2, 600) == 0);
}

TEST_CASE("without a limit a list has of this process what its pools do not keep free, and others as they are") {
  MemoryFigures memory{8000, 500, 8000 - 500 - 1900};
  memory.idle = 1000;
  policy::ProcessShares shares;
  shares.begin_list();
  shares.add(1, 2000);
  shares.add(2, 900);
  shares.fit(memory, 1);
  CHECK(shares.shown(1, 2000) == 1000);
  CHECK(shares.shown(2, 900) == 900);
}
