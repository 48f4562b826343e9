// An account in groups.
#include "catch.h"
#include "group_folder.h"
#include "ledger/ledger.h"

using namespace ration::ledger;

namespace {

struct Two {
  GroupFolder folder;
  std::unique_ptr<Membership> first = folder.join("first");
  std::unique_ptr<Membership> second = folder.join("second");
  Account account;
  Two() {
    for (Membership *member : {first.get(), second.get()}) {
      REQUIRE(member->device("", 0) == 0);
      REQUIRE(account.share(member, 0));
    }
  }
};

}  // namespace

TEST_CASE("a refusal by the second group undoes the first group's grant") {
  Two two;
  two.first->state_limit(0, 1000);
  two.second->state_limit(0, 500);
  two.account.set_limit(2000);
  for (const Effort effort : {Effort::kImmediate, Effort::kReclaimFromDead}) {
    CHECK(two.account.reserve(501, effort) == ReserveOutcome::over_group_limit);
    CHECK(two.first->total(0) == 0);
    CHECK(two.second->total(0) == 0);
    CHECK(two.account.charged() == 0);
  }
  CHECK(two.account.reserve(500) == ReserveOutcome::granted);
  CHECK(two.account.available() == 0);
  int device = -1;
  CHECK(two.account.tightest(device) == two.second.get());
  CHECK(device == 0);
}

TEST_CASE("a refusal by the process's own limit is reported as such and reaches no group") {
  Two two;
  two.account.set_limit(100);
  CHECK(two.account.reserve(101) == ReserveOutcome::over_limit);
  CHECK(two.first->total(0) == 0);
  CHECK(two.account.available() == 100);
}

TEST_CASE("commits, releases and charges are the same in every group") {
  Two two;
  two.first->state_limit(0, 1000);
  REQUIRE(two.account.reserve(800) == ReserveOutcome::granted);
  two.account.commit(800, 300);
  two.account.charge(900);
  for (const Membership *member : {two.first.get(), two.second.get()}) {
    CHECK(member->total(0) == 1200);
  }
  CHECK(two.account.reserve(1) == ReserveOutcome::over_group_limit);
  two.account.release(1200);
  CHECK(two.first->total(0) == 0);
  CHECK(two.second->total(0) == 0);
  CHECK(two.account.charged() == 0);
}

TEST_CASE("what an account sees of a group is left where it was told to, once memory was taken or refused") {
  Two two;
  ration::GroupFigures first{};
  ration::GroupFigures second{};
  two.second->state_limit(0, 1000);
  two.account.leave_figures(two.first.get(), &first);
  two.account.leave_figures(two.second.get(), &second);
  CHECK(first.limit == 0);
  CHECK(second.limit == 1000);
  REQUIRE(two.account.reserve(800) == ReserveOutcome::granted);
  CHECK(second.most_claimed == 0);  // the driver may refuse it
  two.account.note_groups();
  CHECK(first.most_claimed == 800);
  CHECK(second.most_claimed == 800);
  two.account.release(700);
  two.second->state_limit(0, 500);
  two.account.note_groups();
  CHECK(second.most_claimed == 800);
  CHECK(second.limit == 500);
  two.second->charge(0, 1000);  // as another member would
  CHECK(two.account.reserve(1) == ReserveOutcome::over_group_limit);
  CHECK(second.most_claimed == 1100);
}

TEST_CASE("a closed account refuses everything until it is opened again") {
  Two two;
  two.account.close();
  CHECK(two.account.reserve(1) == ReserveOutcome::over_group_limit);
  CHECK(two.account.available() == 0);
  two.account.close(false);
  CHECK(two.account.reserve(1) == ReserveOutcome::granted);
  CHECK(two.first->total(0) == 1);
}

TEST_CASE("a group that is joined late counts what is charged by then") {
  Two two;
  REQUIRE(two.account.reserve(70) == ReserveOutcome::granted);
  const auto late = two.folder.join("late");
  REQUIRE(late->device("", 0) == 0);
  REQUIRE(two.account.share(late.get(), 0));
  CHECK(late->total(0) == 70);
  two.account.release(70);
  CHECK(late->total(0) == 0);
}

TEST_CASE("a dead member's bytes are available to an account that reclaims, and not to one that does not") {
  Two two;
  two.first->state_limit(0, 100);
  {
    const auto dead = two.folder.join("first");
    dead->charge(0, 60);
  }
  CHECK(two.account.reserve(50, Effort::kImmediate) == ReserveOutcome::over_group_limit);
  CHECK(two.account.reserve(50, Effort::kReclaimFromDead) == ReserveOutcome::granted);
}

TEST_CASE("the unpublished change of use is at most the larger of 1 MiB and a 64th of what is charged") {
  constexpr std::uint64_t kMiB = 1 << 20;
  Two two;
  const auto publish = [&](std::uint64_t used) {
    Published published;
    published.used = used;
    two.account.publish(published);
  };
  CHECK(two.account.max_unpublished_fall(kMiB) == UINT64_MAX);
  publish(5 * kMiB);
  CHECK(two.account.max_unpublished_fall(5 * kMiB) == kMiB);
  CHECK(two.account.max_unpublished_fall(6 * kMiB) == 2 * kMiB);
  CHECK_FALSE(two.account.exceeds_published(6 * kMiB));
  CHECK(two.account.exceeds_published(6 * kMiB + 1));
  CHECK(two.account.max_unpublished_fall(6 * kMiB + 1) == 0);
  CHECK(two.account.max_unpublished_fall(4 * kMiB) == 0);
  CHECK_FALSE(two.account.is_worth_publishing(4 * kMiB));
  CHECK(two.account.is_worth_publishing(4 * kMiB - 1));
  CHECK(two.account.max_unpublished_fall(3 * kMiB) == 0);
  REQUIRE(two.account.reserve(128 * kMiB) == ReserveOutcome::granted);
  publish(100 * kMiB);
  CHECK(two.account.max_unpublished_fall(100 * kMiB) == 2 * kMiB);
  publish(kMiB);
  CHECK(two.account.max_unpublished_fall(kMiB) == UINT64_MAX);
  two.account.request_publication();
  CHECK(two.account.max_unpublished_fall(kMiB) == 0);
  CHECK(two.account.exceeds_published(kMiB));
}

TEST_CASE("without a group the use may change without a publication") {
  const Account alone;
  CHECK_FALSE(alone.exceeds_published(UINT64_MAX / 2));
  CHECK(alone.max_unpublished_fall(UINT64_MAX / 2) == UINT64_MAX);
}

TEST_CASE("a member's wish wakes who sleeps, is new once, and what it repeats until it is answered is none") {
  constexpr std::uint64_t kMiB = 1 << 20;
  GroupFolder folder;
  std::unique_ptr<Membership> members[3];
  Account accounts[3];
  for (int i = 0; i < 3; ++i) {
    members[i] = folder.join("g");
    REQUIRE(members[i] != nullptr);
    REQUIRE(members[i]->device("", 0) == 0);
    REQUIRE(accounts[i].share(members[i].get(), 0));
  }
  Account &holder = accounts[0];
  const std::uint32_t seen = members[0]->wishes();
  CHECK(members[0]->wait_for_wish(seen, 1) == Membership::Woken::by_time);
  accounts[1].want(3 * kMiB, Account::Of::device);
  CHECK(members[0]->wait_for_wish(seen, UINT64_MAX / 4) == Membership::Woken::by_wish);
  CHECK(members[0]->wishes() != seen);
  CHECK(holder.newly_wanted() == 3 * kMiB);
  CHECK(holder.newly_wanted() == 0);
  CHECK(accounts[1].newly_wanted() == 0);  // its own
  accounts[1].want(2 * kMiB, Account::Of::device);
  holder.answered();
  CHECK(holder.newly_wanted() == 0);
  accounts[1].want(kMiB, Account::Of::device);
  CHECK(holder.newly_wanted() == kMiB);
  accounts[2].want(5 * kMiB, Account::Of::device);
  holder.answered();
  CHECK(holder.newly_wanted() == 5 * kMiB);
}
