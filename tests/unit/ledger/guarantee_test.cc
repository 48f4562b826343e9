// What a member or a tree of processes always obtains.
#include <random>

#include "catch.h"
#include "group_folder.h"
#include "ledger/ledger.h"

using namespace ration::ledger;

namespace {

constexpr char kTree[] = "00000000000000a7";
constexpr std::uint64_t kTreeNumber = 0xa7;

std::unique_ptr<Membership> joined(const GroupFolder &folder, const Trees &trees = {}) {
  std::string problem;
  auto member = Membership::join(folder.path(), GroupKind::kNamed, "g", this_process(), problem, trees);
  REQUIRE(member != nullptr);
  REQUIRE(member->device(kUuid, 0) == 0);
  return member;
}

bool takes(Membership &member, std::uint64_t bytes) {
  return member.reserve(0, bytes, true) == ReserveOutcome::granted;
}
bool guarantees(Membership &member, std::uint64_t bytes) {
  return member.guarantee(0, bytes, true) == ReserveOutcome::granted;
}

DeviceUse seen(const GroupFolder &folder, std::size_t member) {
  std::string problem;
  for (const Group &group : read_groups(folder.path(), problem)) {
    if (group.kind == GroupKind::kNamed) {
      return group.members.at(member).devices.at(0);
    }
  }
  throw std::runtime_error("no group");
}

// A process of a tree: an account in the tree and in the group.
struct OfTree {
  std::unique_ptr<Membership> tree;
  std::unique_ptr<Membership> group;
  Account account;
  explicit OfTree(const GroupFolder &folder)
      : tree(folder.join(kTree, GroupKind::kTree)), group(joined(folder, {0, {kTreeNumber}})) {
    REQUIRE(tree->device(kUuid, 0) == 0);
    REQUIRE(account.share(tree.get(), 0));
    REQUIRE(account.share(group.get(), 0));
  }
};

}  // namespace

TEST_CASE("nobody else obtains what is guaranteed, and its owner always does") {
  const GroupFolder folder;
  const auto one = joined(folder);
  const auto two = joined(folder);
  one->state_limit(0, 100);
  REQUIRE(guarantees(*one, 40));
  CHECK(one->total(0) == 40);
  CHECK(two->available(0) == 60);
  CHECK(one->available(0) == 100);
  CHECK_FALSE(takes(*two, 61));
  CHECK(takes(*two, 60));
  CHECK(one->available(0) == 40);
  CHECK_FALSE(takes(*one, 41));
  CHECK(takes(*one, 25));
  CHECK(takes(*one, 15));
  CHECK(one->total(0) == 100);
  CHECK(seen(folder, 0).reserved == 40);
  CHECK(seen(folder, 0).guarantee == 40);
  one->release(0, 30);
  CHECK(one->total(0) == 100);
  CHECK_FALSE(takes(*two, 1));
  CHECK(takes(*one, 30));
}

TEST_CASE("what is held beyond a guarantee is like anybody's") {
  const GroupFolder folder;
  const auto one = joined(folder);
  const auto two = joined(folder);
  one->state_limit(0, 100);
  REQUIRE(guarantees(*one, 40));
  REQUIRE(takes(*one, 70));
  CHECK(one->total(0) == 70);
  CHECK(one->beyond_guarantee(0) == 30);
  CHECK_FALSE(takes(*two, 31));
  one->release(0, 50);
  CHECK(one->total(0) == 40);
  CHECK(seen(folder, 0).reserved == 20);
  CHECK(takes(*two, 60));
  one->release(0, 20);
  CHECK(one->total(0) == 100);
}

TEST_CASE("a guarantee that does not fit is refused and changes nothing") {
  const GroupFolder folder;
  const auto one = joined(folder);
  const auto two = joined(folder);
  one->state_limit(0, 100);
  REQUIRE(guarantees(*one, 50));
  CHECK_FALSE(guarantees(*two, 51));
  CHECK(two->guaranteed(0) == 0);
  CHECK(two->available(0) == 50);
  REQUIRE(takes(*two, 20));
  CHECK(guarantees(*two, 50));  // of which it holds 20
  CHECK(two->total(0) == 100);
  CHECK_FALSE(guarantees(*two, 51));
  CHECK(two->guaranteed(0) == 50);
  CHECK(guarantees(*two, 10));
  CHECK(two->total(0) == 70);
  CHECK(two->beyond_guarantee(0) == 10);
  CHECK(guarantees(*two, 0));
  CHECK(two->total(0) == 70);
  CHECK(seen(folder, 1).reserved == 20);
}

TEST_CASE("a guarantee ends with its owner") {
  const GroupFolder folder;
  const auto two = joined(folder);
  two->state_limit(0, 100);
  {
    const auto one = joined(folder);
    REQUIRE(guarantees(*one, 80));
    REQUIRE(takes(*one, 90));
    CHECK_FALSE(takes(*two, 11));
  }
  CHECK(takes(*two, 100));
}

TEST_CASE("an account counts what is left of its guarantee as available") {
  const GroupFolder folder;
  const auto one = joined(folder);
  const auto two = joined(folder);
  one->state_limit(0, 100);
  Account account;
  REQUIRE(account.share(one.get(), 0));
  int device = -1;
  REQUIRE(account.guarantee(40, device) == nullptr);
  REQUIRE(takes(*two, 60));
  CHECK(account.available() == 40);
  CHECK(account.guaranteed() == 40);
  REQUIRE(account.reserve(40) == ReserveOutcome::granted);
  CHECK(account.available() == 0);
  CHECK(account.reserve(1) == ReserveOutcome::over_group_limit);
  account.release(40);
  CHECK(account.available() == 40);
  CHECK(account.guarantee(41, device) == one.get());
  CHECK(device == 0);
}

TEST_CASE("a guarantee for a tree covers its processes together") {
  const GroupFolder folder;
  const auto holder = joined(folder, {kTreeNumber, {}});
  const auto other = joined(folder);
  other->state_limit(0, 100);
  REQUIRE(guarantees(*holder, 40));
  OfTree one(folder);
  OfTree two(folder);
  CHECK(one.account.guaranteed() == 40);
  REQUIRE(takes(*other, 60));
  CHECK(one.account.available() == 40);
  CHECK(one.account.reserve(30) == ReserveOutcome::granted);
  CHECK(two.account.available() == 10);
  CHECK(two.account.reserve(11) == ReserveOutcome::over_group_limit);
  CHECK(two.account.reserve(10) == ReserveOutcome::granted);
  CHECK(other->total(0) == 100);
  one.account.release(30);
  CHECK(other->total(0) == 100);
  CHECK_FALSE(takes(*other, 1));
  CHECK(two.account.reserve(30) == ReserveOutcome::granted);
  CHECK(two.account.charged() == 40);
  other->release(0, 60);
  CHECK(one.account.reserve(25) == ReserveOutcome::granted);
  CHECK(one.group->beyond_guarantee(0) == 25);
  CHECK(other->total(0) == 65);
}

TEST_CASE("a tree keeps its guarantee while one of its processes lives") {
  const GroupFolder folder;
  auto holder = joined(folder, {kTreeNumber, {}});
  const auto other = joined(folder);
  other->state_limit(0, 100);
  REQUIRE(guarantees(*holder, 40));
  {
    OfTree one(folder);
    REQUIRE(one.account.reserve(30) == ReserveOutcome::granted);
    holder.reset();  // killed
    CHECK_FALSE(takes(*other, 61));
    CHECK(takes(*other, 60));
    CHECK(one.account.reserve(10) == ReserveOutcome::granted);
    CHECK(one.account.reserve(1) == ReserveOutcome::over_group_limit);
  }
  CHECK(takes(*other, 40));
  CHECK_FALSE(takes(*other, 1));
}

TEST_CASE("what a tree's process holds of the tree's guarantee is listed once, as the process's") {
  const GroupFolder folder;
  const auto run = joined(folder, {kTreeNumber, {}});
  run->state_limit(0, 100);
  REQUIRE(guarantees(*run, 60));
  OfTree one(folder);
  REQUIRE(one.account.reserve(20) == ReserveOutcome::granted);
  std::vector<Holder> holders = run->holders(0);
  REQUIRE(holders.size() == 2);
  CHECK(holders[0].is_of_tree);
  CHECK(holders[0].guarantee == 40);
  CHECK(holders[1].reserved == 20);
  REQUIRE(one.account.reserve(50) == ReserveOutcome::granted);
  holders = run->holders(0);
  REQUIRE(holders.size() == 1);
  CHECK(holders[0].reserved == 70);
}

TEST_CASE("a process whose tree holds no guarantee has none") {
  const GroupFolder folder;
  const auto other = joined(folder);
  other->state_limit(0, 100);
  REQUIRE(guarantees(*other, 70));
  OfTree one(folder);
  CHECK(one.account.guaranteed() == 0);
  CHECK(one.account.reserve(31) == ReserveOutcome::over_group_limit);
  CHECK(one.account.reserve(30) == ReserveOutcome::granted);
}

TEST_CASE("at random the total is what is claimed, and never beyond the limit") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const GroupFolder folder;
  constexpr std::uint64_t kLimit = 1000;
  std::unique_ptr<Membership> members[4];
  std::uint64_t held[4] = {};
  std::uint64_t guaranteed[4] = {};
  for (auto &member : members) {
    member = joined(folder);
  }
  members[0]->state_limit(0, kLimit);
  for (int step = 0; step < 20'000; ++step) {
    const std::size_t who = random() % 4;
    const std::uint64_t bytes = random() % 400;
    const std::uint64_t before = members[0]->total(0);
    switch (random() % 3) {
      case 0: {
        const bool must = held[who] + bytes <= guaranteed[who];
        const bool fits =
            std::max(held[who] + bytes, guaranteed[who]) - std::max(held[who], guaranteed[who]) <= kLimit - before;
        const bool got = takes(*members[who], bytes);
        REQUIRE(got == fits);
        REQUIRE((got || !must));
        held[who] += got ? bytes : 0;
        break;
      }
      case 1: {
        const std::uint64_t less = std::min(bytes, held[who]);
        members[who]->release(0, less);
        held[who] -= less;
        break;
      }
      default:
        if (guarantees(*members[who], bytes)) {
          guaranteed[who] = bytes;
        }
    }
    std::uint64_t claimed = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      claimed += std::max(held[i], guaranteed[i]);
    }
    REQUIRE(members[0]->total(0) == claimed);
    REQUIRE(claimed <= kLimit);
  }
  std::string problem;
  const std::vector<Group> groups = read_groups(folder.path(), problem);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(groups.at(0).members.at(i).devices.at(0).reserved == held[i]);
  }
}
