#include "ledger/membership.h"

#include "catch.h"
#include "group_folder.h"

using namespace ration::ledger;

namespace {

// Of the only member that has used the device.
Stitching stitching_seen(const GroupFolder &folder) {
  std::string problem;
  std::vector<DeviceUse> uses;
  for (const Group &group : read_groups(folder.path(), problem)) {
    for (const Member &member : group.members) {
      uses.insert(uses.end(), member.devices.begin(), member.devices.end());
    }
  }
  REQUIRE(uses.size() == 1);
  return uses[0].stitching;
}

}  // namespace

TEST_CASE("the name of a group's file identifies the group") {
  const auto both = [](GroupKind kind, const std::string &name) {
    GroupKind found = GroupKind::kNone;
    std::string found_name;
    return group_of_file(file_name(kind, name), found, found_name) && found == kind && found_name == name;
  };
  CHECK(both(GroupKind::kNamed, "a.b_c-D9"));
  CHECK(both(GroupKind::kNamed, "group-"));
  CHECK(both(GroupKind::kTree, "0123456789abcdef"));
  CHECK(both(GroupKind::kContainer, "4026531836-01234567"));
  CHECK(both(GroupKind::kNone, ""));
  GroupKind kind{};
  std::string name;
  for (const char *other : {"", "group-", "tree-", "container-", "ungrouped2", ".new-0123", "groupx", "notes.txt"}) {
    INFO(other);
    CHECK_FALSE(group_of_file(other, kind, name));
  }
}

TEST_CASE("the smallest limit of the living is in effect, and ends with the member that stated it") {
  const GroupFolder folder;
  const auto loose = folder.join();
  REQUIRE(loose->device(kUuid, 0) == 0);
  CHECK(loose->limit(0) == kNoLimit);
  loose->state_limit(0, 1000);
  {
    const auto tight = folder.join();
    REQUIRE(tight->device(kUuid, 0) == 0);
    tight->state_limit(0, 400);
    CHECK(loose->limit(0) == 400);
    CHECK(loose->reserve(0, 401, false) == ReserveOutcome::over_group_limit);
    tight->state_limit(0, 600);
    CHECK(loose->limit(0) == 600);
  }
  CHECK(loose->reserve(0, 601, false) == ReserveOutcome::over_group_limit);
  CHECK(loose->reserve(0, 1000, true) == ReserveOutcome::granted);
  CHECK(loose->limit(0) == 1000);
}

TEST_CASE("a group has places for 60 devices, by UUID, the same for all its members") {
  const GroupFolder folder;
  const auto one = folder.join();
  const auto other = folder.join();
  CHECK(one->device("", 5) == 0);
  CHECK(one->device(kUuid, 0) == 1);
  CHECK(other->device(kUuid, 3) == 1);
  CHECK(other->device("", 5) == 0);
  for (int ordinal = 100; ordinal < 158; ++ordinal) {
    CHECK(other->device("", ordinal) == ordinal - 98);
  }
  CHECK(one->device("", 158) == -1);
  CHECK(one->device("", 157) == 59);
  CHECK(one->reserve(-1, 1, true) == ReserveOutcome::over_group_limit);
  CHECK(one->reserve(60, 1, true) == ReserveOutcome::over_group_limit);
}

TEST_CASE("a member releases no more than it holds, whatever others hold") {
  const GroupFolder folder;
  const auto one = folder.join();
  const auto other = folder.join();
  REQUIRE(one->device(kUuid, 0) == 0);
  REQUIRE(one->reserve(0, 100, false) == ReserveOutcome::granted);
  REQUIRE(other->reserve(0, 50, false) == ReserveOutcome::granted);
  other->release(0, 80);
  CHECK(one->total(0) == 100);
  other->release(0, 1);
  CHECK(one->total(0) == 100);
}

TEST_CASE("the largest holders are listed first, and recent deaths are reported within the given time") {
  const GroupFolder folder;
  const auto little = folder.join();
  auto most = folder.join();
  const auto nothing = folder.join();
  REQUIRE(little->device(kUuid, 0) == 0);
  little->charge(0, 10);
  most->charge(0, 20);
  const std::vector<Holder> holders = nothing->holders(0);
  REQUIRE(holders.size() == 2);
  CHECK(holders[0].reserved == 20);
  CHECK(holders[1].reserved == 10);
  CHECK_FALSE(nothing->member_died_within(0, 1000));
  most.reset();
  CHECK(nothing->member_died_within(0, 1000));
  CHECK_FALSE(nothing->member_died_within(1, 1000));
  CHECK(nothing->holders(0).size() == 1);
  CHECK(nothing->total(0) == 10);
}

TEST_CASE("reading the groups shows what each member holds and removes groups without members") {
  const GroupFolder folder;
  std::string problem;
  CHECK(read_groups(folder.path() + "/absent", problem).empty());
  CHECK(problem.empty());
  {
    const auto member = folder.join();
    const auto tree = folder.join("0123456789abcdef", GroupKind::kTree);
    const auto alone = folder.join("", GroupKind::kNone);
    REQUIRE(member->device(kUuid, 0) == 0);
    member->state_limit(0, 1000);
    member->show_limit(0, 700);
    member->charge(0, 300);
    member->release(0, 100);
    member->show_total(0, 5000);
    member->publish(0, {150, 180, 9, {1, 2, 3, 4, 5}, {512, 2, 40}});
    const std::vector<Group> groups = read_groups(folder.path(), problem);
    CHECK(problem.empty());
    REQUIRE(groups.size() == 3);
    CHECK(groups[0].name == "g");
    CHECK(groups[1].kind == GroupKind::kTree);
    CHECK(groups[2].kind == GroupKind::kNone);
    REQUIRE(groups[0].members.size() == 1);
    REQUIRE(groups[0].members[0].devices.size() == 1);
    const DeviceUse &use = groups[0].members[0].devices[0];
    CHECK(use.uuid == kUuid);
    CHECK(use.reserved == 200);
    CHECK(use.used == 150);
    CHECK(use.peak_used == 180);
    CHECK(use.peak == 200);
    CHECK(use.limit == 700);
    CHECK(use.group_limit == 1000);
    CHECK(use.allocations == 9);
    CHECK(use.failures[4] == 5);
    CHECK(use.stitching.granules == 512);
    CHECK(use.stitching.blocks == 2);
    CHECK(use.stitching.total == 40);
    REQUIRE(groups[0].devices.size() == 1);
    CHECK(groups[0].devices[0].limit == 1000);
    CHECK(groups[0].devices[0].reserved == 200);
    CHECK(groups[0].devices[0].size == 5000);
    // What was used between two publications was reserved; a member of before may not tell its peak.
    member->publish(0, {190, 250, 9, {}, {}});
    CHECK(read_groups(folder.path(), problem).at(0).members.at(0).devices.at(0).peak == 250);
    member->publish(0, {190, 0, 9, {}, {}});
    CHECK(read_groups(folder.path(), problem).at(0).members.at(0).devices.at(0).peak_used == 190);
  }
  CHECK(read_groups(folder.path(), problem).empty());
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("counts of granules and stitched blocks stop at the largest that their word holds") {
  const auto again = [](const Stitching &counts) {
    return shared::PackedStitching::of(shared::PackedStitching::pack(counts));
  };
  const Stitching large = again({(1 << 20) - 1, (1 << 18) - 1, (1 << 26) - 1});
  CHECK(large.granules == (1 << 20) - 1);
  CHECK(large.blocks == (1 << 18) - 1);
  CHECK(large.total == (1 << 26) - 1);
  const Stitching too_large = again({1 << 20, 1ull << 40, UINT64_MAX});
  CHECK(too_large.granules == large.granules);
  CHECK(too_large.blocks == large.blocks);
  CHECK(too_large.total == large.total);
  CHECK(shared::PackedStitching::pack({}) == 0);
}

TEST_CASE("a slot's next owner has none of the stitched blocks of the last one") {
  const GroupFolder folder;
  const auto witness = folder.join();
  REQUIRE(witness->device(kUuid, 0) == 0);
  auto last = folder.join();
  last->charge(0, 10);
  last->publish(0, {10, 1, {}, {512, 2, 40}});
  last.reset();
  witness->reclaim_from_dead(0);  // a free slot is preferred to a new one
  const auto next = folder.join();
  next->charge(0, 10);
  CHECK(stitching_seen(folder).total == 0);
}
