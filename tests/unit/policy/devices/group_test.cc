// A process in groups: a neighbour is a membership of the test's own, which dies when it is dropped.
#include <string>

#include "catch.h"
#include "ledger/device_key.h"
#include "unit/events/child_process.h"
#include "unit/events/log_lines.h"
#include "unit/events/scratch_folder.h"
#include "unit/policy/pooled_program.h"

using namespace ration;
using namespace ration::test;

namespace {

struct GroupLimits : TestLimits {
  std::string state_folder() const override { return folder; }
  std::vector<policy::GroupAsked> groups() const override { return asked_groups; }
  std::optional<std::uint64_t> group_limit_on(std::size_t, const events::DeviceFacts &device) const override {
    return group_share > 0 ? std::optional(static_cast<std::uint64_t>(static_cast<double>(device.total) * group_share))
                           : group_limit;
  }

  std::string folder;
  std::vector<policy::GroupAsked> asked_groups{{ledger::GroupKind::kNamed, "team"}};
  std::optional<std::uint64_t> group_limit;
  double group_share = 0;
};

struct Team {
  explicit Team(std::uint64_t limit, runtime::Options options = {}, const std::string &log = "",
                policy::Preallocation plan = {}) {
    auto limits = std::make_unique<GroupLimits>();
    limits->folder = folder.path();
    limits->group_limit = limit;
    limits->plan = plan;
    reported = stderr_of([&] {
      program.emplace(driver, std::move(limits), log, options);
      program->parts.devices.join_groups();
    });
    std::string problem;
    neighbour =
        ledger::Membership::join(folder.path(), ledger::GroupKind::kNamed, "team", ledger::this_process(), problem);
    REQUIRE(problem.empty());
    driver.create(&FakeDriver::current, 0);
    program->parts.describe();
    place = neighbour->device(program->limits->met.at(0).uuid, 0);
  }
  bool neighbour_takes(std::uint64_t bytes) {
    return neighbour->reserve(place, bytes, true) == ledger::ReserveOutcome::granted;
  }

  ScratchFolder folder;
  FakeDriver driver;
  std::optional<PooledProgram> program;
  std::unique_ptr<ledger::Membership> neighbour;
  int place = -1;
  std::string reported;
};

}  // namespace

TEST_CASE("what a neighbour holds of the group is not there for the process, and comes back when he dies") {
  Team team(100 * kMiB);
  REQUIRE(team.neighbour_takes(60 * kMiB));
  CHECK(team.program->take(41 * kMiB) == kUntouched);
  CHECK(team.program->last == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(team.program->denied(events::Reason::group) == 1);
  CHECK(team.driver.asked().empty());
  CHECK(team.program->take(40 * kMiB) != kUntouched);
  team.neighbour.reset();
  CHECK(team.program->take(60 * kMiB) != kUntouched);
  CHECK(team.program->take(1) == kUntouched);
}

TEST_CASE("what the process frees is there for its neighbours") {
  Team team(100 * kMiB);
  const CUdeviceptr block = team.program->take(100 * kMiB);
  CHECK_FALSE(team.neighbour_takes(1));
  REQUIRE(team.program->free(block) == CUDA_SUCCESS);
  CHECK(team.neighbour_takes(100 * kMiB));
}

TEST_CASE("an allocation that the driver refuses leaves nothing in the group") {
  Team team(100 * kMiB);
  team.driver.fails["cuMemAlloc_v2"] = CUDA_ERROR_OUT_OF_MEMORY;
  CHECK(team.program->take(10 * kMiB) == kUntouched);
  CHECK(team.program->denied(events::Reason::device) == 1);
  CHECK(team.neighbour->total(team.place) == 0);
}

TEST_CASE("a refusal names the group, its limit and who holds most") {
  ScratchFolder logs;
  Team team(100 * kMiB, {}, logs / "log");
  REQUIRE(team.neighbour_takes(70 * kMiB));
  REQUIRE(team.program->take(20 * kMiB) != kUntouched);
  REQUIRE(team.program->take(20 * kMiB) == kUntouched);
  const json oom = log_lines(logs / "log").back();
  CHECK(oom.at("t") == "oom");
  CHECK(oom.at("reason") == "group");
  CHECK(oom.at("group") == "team");
  CHECK(oom.at("group_limit") == 100 * kMiB);
  CHECK(oom.at("group_reserved") == 90 * kMiB);
  CHECK(oom.at("group_claimed") == 90 * kMiB);
  REQUIRE(oom.at("holders").size() == 2);
  CHECK(oom.at("holders")[0].at("reserved") == 70 * kMiB);
  CHECK(oom.at("holders")[1].at("reserved") == 20 * kMiB);
  CHECK(oom.at("holders")[0].at("pid") == getpid());
  CHECK(oom.at("holders")[0].count("guarantee") == 0);
}

TEST_CASE("a refusal names what is guaranteed to whom") {
  ScratchFolder logs;
  Team team(100 * kMiB, {}, logs / "log");
  REQUIRE(team.neighbour->guarantee(team.place, 70 * kMiB, false) == ledger::ReserveOutcome::granted);
  REQUIRE(team.neighbour_takes(10 * kMiB));
  REQUIRE(team.program->take(20 * kMiB) != kUntouched);
  REQUIRE(team.program->take(20 * kMiB) == kUntouched);
  const json oom = log_lines(logs / "log").back();
  CHECK(oom.at("reason") == "group");
  CHECK(oom.at("group_reserved") == 30 * kMiB);
  CHECK(oom.at("group_claimed") == 90 * kMiB);
  REQUIRE(oom.at("holders").size() == 2);
  CHECK(oom.at("holders")[0].at("reserved") == 10 * kMiB);
  CHECK(oom.at("holders")[0].at("guarantee") == 70 * kMiB);
  CHECK(oom.at("holders")[1].at("reserved") == 20 * kMiB);
  CHECK(oom.at("holders")[1].count("guarantee") == 0);
}

TEST_CASE("a group that cannot be joined refuses everything and says why") {
  ScratchFolder folder;
  FakeDriver driver;
  auto limits = std::make_unique<GroupLimits>();
  limits->folder = folder / "missing/folder";
  std::optional<PooledProgram> program;
  const std::string reported = stderr_of([&] {
    program.emplace(driver, std::move(limits));
    program->parts.devices.join_groups();
  });
  CHECK(reported.find("ration: group 'team' cannot be joined, so every allocation is refused: ") == 0);
  driver.create(&FakeDriver::current, 0);
  CHECK(program->take(512) == kUntouched);
  CHECK(program->last == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(driver.asked().empty());
}

TEST_CASE("without a group nobody minds that the folder cannot be had") {
  FakeDriver driver;
  auto limits = std::make_unique<GroupLimits>();
  limits->folder = "/proc/no/such/folder";
  limits->asked_groups.clear();
  std::optional<PooledProgram> program;
  CHECK(stderr_of([&] {
          program.emplace(driver, std::move(limits));
          program->parts.devices.join_groups();
        }).empty());
  driver.create(&FakeDriver::current, 0);
  CHECK(program->take(512) != kUntouched);
}

TEST_CASE("a process without a group can be seen, and is held by nothing") {
  ScratchFolder folder;
  FakeDriver driver;
  auto limits = std::make_unique<GroupLimits>();
  limits->folder = folder.path();
  limits->asked_groups.clear();
  limits->group_limit = 1;  // of no group
  PooledProgram program(driver, std::move(limits));
  program.parts.devices.join_groups();
  driver.create(&FakeDriver::current, 0);
  REQUIRE(program.take(64 * kMiB) != kUntouched);
  std::string problem;
  const std::vector<ledger::Group> groups = ledger::read_groups(folder.path(), problem);
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].kind == ledger::GroupKind::kNone);
  REQUIRE(groups[0].members.size() == 1);
  REQUIRE(groups[0].members[0].devices.size() == 1);
  CHECK(groups[0].members[0].devices[0].reserved >= 64 * kMiB);
  CHECK(groups[0].members[0].devices[0].used == 64 * kMiB);
  CHECK(groups[0].members[0].devices[0].allocations == 1);
}

TEST_CASE("a share of a device that the driver tells no size of is refused until it does") {
  ScratchFolder folder;
  FakeDriver driver;
  driver.fails["cuDeviceTotalMem_v2"] = CUDA_ERROR_NOT_SUPPORTED;
  driver.fails["cuMemGetInfo_v2"] = CUDA_ERROR_NOT_SUPPORTED;
  auto limits = std::make_unique<GroupLimits>();
  limits->folder = folder.path();
  limits->group_share = 0.5;
  PooledProgram program(driver, std::move(limits));
  program.parts.devices.join_groups();
  driver.create(&FakeDriver::current, 0);
  CHECK(stderr_of([&] { program.take(512); }).find("is a percentage of its memory") != std::string::npos);
  CHECK(program.last == CUDA_ERROR_OUT_OF_MEMORY);
  driver.fails.clear();
  CHECK(program.take(driver.total / 2) != kUntouched);
  CHECK(program.take(kMiB) == kUntouched);
}

TEST_CASE("another member's smaller limit holds with a message until that member ends") {
  Team team(100 * kMiB);
  team.neighbour->state_limit(team.place, 50 * kMiB);
  CHECK(team.program->take(51 * kMiB) == kUntouched);
  auto limits = std::make_unique<GroupLimits>();
  limits->folder = team.folder.path();
  limits->group_limit = 70 * kMiB;
  PooledProgram third(team.driver, std::move(limits));
  third.parts.devices.join_groups();
  CHECK(stderr_of([&] {
          third.parts.describe();
        }).find("uses the smallest limit given, 52428800 bytes on device 0 (asked here: 73400320 bytes)") !=
        std::string::npos);
  team.neighbour.reset();
  CHECK(team.program->take(70 * kMiB) != kUntouched);
  CHECK(team.program->take(1) == kUntouched);
}

TEST_CASE("free memory is what the group leaves") {
  Team team(100 * kMiB);
  REQUIRE(team.neighbour_takes(30 * kMiB));
  CHECK(team.program->memory().free_bytes == 70 * kMiB);
  CHECK(team.program->memory().total_bytes == 100 * kMiB);
  team.neighbour.reset();
  CHECK(team.program->memory().free_bytes == 100 * kMiB);
}

TEST_CASE("preallocation takes what the group still has") {
  policy::Preallocation plan;
  plan.bytes = 200 * kMiB;
  Team team(100 * kMiB, mode_pool(), "", plan);
  REQUIRE(team.neighbour_takes(30 * kMiB));
  REQUIRE(team.program->take(kMiB) != kUntouched);
  CHECK(team.program->charged() <= 70 * kMiB);
  CHECK(team.program->charged() > 60 * kMiB);
}

TEST_CASE("preallocation takes what the dead held") {
  policy::Preallocation plan;
  plan.bytes = 200 * kMiB;
  Team team(100 * kMiB, mode_pool(), "", plan);
  REQUIRE(team.neighbour_takes(90 * kMiB));
  team.neighbour.reset();
  REQUIRE(team.program->take(kMiB) != kUntouched);
  CHECK(team.program->charged() > 90 * kMiB);
}

TEST_CASE("a pool in a group grows by an eighth of what is left, and by what a request needs") {
  Team team(800 * kMiB, mode_pool());
  for (int i = 0; i < 40; ++i) {
    REQUIRE(team.program->take(4 * kMiB) != kUntouched);
  }
  // Doubling would have taken twice as much.
  CHECK(team.program->charged() < 160 * kMiB + 100 * kMiB);
  CHECK(team.program->take(300 * kMiB) != kUntouched);
  // To the last block.
  while (team.program->take(4 * kMiB) != kUntouched) {
  }
  CHECK(team.program->charged() <= 800 * kMiB);
  CHECK(team.neighbour->available(team.place) < 8 * kMiB);
}

TEST_CASE("a device that is full because a neighbour just died is asked again") {
  Team team(1000 * kMiB);
  REQUIRE(team.neighbour_takes(500 * kMiB));
  team.driver.taken_by_others = team.driver.total;
  team.neighbour.reset();
  int refusals = 0;
  team.program->parts.describe();
  CUdeviceptr address = kUntouched;
  const auto act = [&](policy::Obtained &got) {
    if (++refusals == 3) {
      team.driver.taken_by_others = 0;  // the device has it back
    }
    got.bytes = 400 * kMiB;
    return driver::real.cuMemAlloc_v2(&got.address, got.bytes);
  };
  CHECK(team.program->parts.device_memory.allocate({"cuMemAlloc_v2", 400 * kMiB, 400 * kMiB, nullptr, false}, act,
                                                   &address) == CUDA_SUCCESS);
  CHECK(refusals == 3);
}

TEST_CASE("a device that is full is not asked again where nobody died") {
  Team team(1000 * kMiB);
  team.driver.taken_by_others = team.driver.total;
  CHECK(team.program->take(kMiB) == kUntouched);
  CHECK(team.driver.asked().size() == 1);
}

TEST_CASE("the published usage stays within 1 MiB or a 64th of what is reserved, even if every call is a hit") {
  Team team(1000 * kMiB, mode_pool());
  const auto used = [&] {
    std::string problem;
    const std::vector<ledger::Group> groups = ledger::read_groups(team.folder.path(), problem);
    for (const ledger::Member &member : groups.at(0).members) {
      if (!member.devices.empty()) {
        return member.devices[0].used;
      }
    }
    return std::uint64_t{0};
  };
  const CUdeviceptr first = team.program->take(40 * kMiB);
  CHECK(used() == 40 * kMiB);
  team.program->free(first);
  CHECK(used() == 0);
  std::uint64_t now = 0;
  std::uint64_t published_before = 0;
  int publications = 0;
  const auto is_near = [&] {
    const std::uint64_t reported = used();
    publications += reported != published_before ? 1 : 0;
    published_before = reported;
    const std::uint64_t off = std::max(kMiB, team.program->charged() / 64);
    return reported <= now + off && reported + off >= now;
  };
  std::vector<CUdeviceptr> small;
  for (int i = 0; i < 1000; ++i) {  // 10 MiB in all
    small.push_back(team.program->take(10240));
    REQUIRE(small.back() != kUntouched);
    now += 10240;
    REQUIRE(is_near());
  }
  const CUdeviceptr large = team.program->take(300 * kMiB);
  now += 300 * kMiB;
  REQUIRE(is_near());
  for (const CUdeviceptr address : small) {
    REQUIRE(team.program->free(address) == CUDA_SUCCESS);
    now -= 10240;
    REQUIRE(is_near());
  }
  REQUIRE(team.program->free(large) == CUDA_SUCCESS);
  now = 0;
  CHECK(is_near());
  CHECK(publications < 100);  // of 2,002 calls
}
