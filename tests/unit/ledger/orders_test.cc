// What is ordered for a group or a member while it runs, the queue of those that wait, and the part of a pool.
#include "ledger/orders.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "catch.h"
#include "group_folder.h"
#include "ledger/ledger.h"

using namespace ration::ledger;

namespace {

constexpr std::uint64_t kTotal = 1'000'000;

std::unique_ptr<Membership> member_of(const GroupFolder &folder) {
  auto member = folder.join();
  REQUIRE(member->device(kUuid, 0) == 0);
  member->show_total(0, kTotal);
  return member;
}

OrderedSize bytes(std::uint64_t size) {
  return [size](const std::string &, std::uint64_t) { return std::optional(size); };
}
const OrderedSize half = [](const std::string &uuid, std::uint64_t total) {
  return uuid == kUuid ? std::optional(total / 2) : std::nullopt;
};
const OrderedSize nothing = [](const std::string &, std::uint64_t) { return std::optional<std::uint64_t>(); };

bool order_group(const GroupFolder &folder, const OrderedSize &limit) {
  std::string problem;
  std::optional<Guaranteed> refused;
  return order_group_limit(folder.path(), GroupKind::kNamed, "g", limit, refused, problem);
}

std::uint64_t identity_of(const GroupFolder &folder, std::size_t member) {
  std::string problem;
  return read_groups(folder.path(), problem).at(0).members.at(member).identity;
}

}  // namespace

TEST_CASE("an ordered limit counts instead of what the members state, until it is taken back") {
  const GroupFolder folder;
  const auto one = member_of(folder);
  one->state_limit(0, 1000);
  REQUIRE(order_group(folder, bytes(2000)));
  CHECK(one->limit(0) == 2000);
  CHECK(one->has_ordered_limit(0));
  const auto two = member_of(folder);
  two->state_limit(0, 500);
  CHECK(two->limit(0) == 2000);
  REQUIRE(order_group(folder, half));
  CHECK(two->limit(0) == kTotal / 2);
  REQUIRE(order_group(folder, bytes(0)));
  CHECK(one->reserve(0, 1, true) == ReserveOutcome::over_group_limit);
  REQUIRE(order_group(folder, nothing));
  CHECK(two->limit(0) == 500);
  CHECK_FALSE(one->has_ordered_limit(0));
}

TEST_CASE("an order for a group that is not there, or for a process that has ended, is refused") {
  const GroupFolder folder;
  CHECK_FALSE(order_group(folder, half));
  std::string problem;
  CHECK_FALSE(order_member(folder.path(), 42, {half, {}}, problem));
}

TEST_CASE("a member takes note of what was ordered for it, and says so") {
  const GroupFolder folder;
  const auto one = member_of(folder);
  const auto two = member_of(folder);
  one->charge(0, 1);
  two->charge(0, 1);
  const std::uint64_t identity = identity_of(folder, 0);
  std::string problem;
  REQUIRE(order_member(folder.path(), identity, {bytes(700), half}, problem));
  CHECK(one->orders() != one->heeded());
  CHECK(two->orders() == two->heeded());
  CHECK(one->ordered_limit(0) == 701);
  CHECK(one->ordered_guarantee(0) == kTotal / 2 + 1);
  CHECK(state_of_order(folder.path(), identity) == OrderState::pending);
  one->take_note(one->orders());
  CHECK(state_of_order(folder.path(), identity) == OrderState::done);
  one->refuse_guarantee(0);
  CHECK(state_of_order(folder.path(), identity) == OrderState::refused);
  REQUIRE(order_member(folder.path(), identity, {nothing, {}}, problem));
  CHECK(one->ordered_limit(0) == shared::kUnordered);
}

TEST_CASE("an account heeds the guarantee that was ordered") {
  const GroupFolder folder;
  const auto one = member_of(folder);
  const auto two = member_of(folder);
  one->state_limit(0, 100);
  Account account;
  REQUIRE(account.share(one.get(), 0));
  account.charge(10);
  std::string problem;
  const std::uint64_t identity = identity_of(folder, 0);
  REQUIRE(order_member(folder.path(), identity, {{}, bytes(60)}, problem));
  account.heed_guarantee(0);
  CHECK(account.guaranteed() == 60);
  CHECK(two->available(0) == 40);
  REQUIRE(order_member(folder.path(), identity, {{}, bytes(101)}, problem));
  account.heed_guarantee(0);
  CHECK(account.guaranteed() == 60);
  CHECK(one->ordered_guarantee(0) == shared::kRefused);
  REQUIRE(order_member(folder.path(), identity, {{}, nothing}, problem));
  account.heed_guarantee(20);
  CHECK(account.guaranteed() == 20);
}

TEST_CASE("those that wait for the same device are served in the order in which they came") {
  const GroupFolder folder;
  const auto first = member_of(folder);
  const auto second = member_of(folder);
  const auto elsewhere = member_of(folder);
  REQUIRE(elsewhere->device("GPU-11111111-89ab-cdef-fedc-ba9876543210", 1) == 1);
  first->queue_up({{0, 10}});
  second->queue_up({{0, 20}});
  elsewhere->queue_up({{1, 5}});
  CHECK(first->ahead() == 0);
  CHECK(second->ahead() == 1);
  CHECK(elsewhere->ahead() == 0);
  std::string problem;
  CHECK(read_groups(folder.path(), problem).at(0).members.at(1).devices.at(0).waiting == 20);
  first->leave_queue();
  CHECK(second->ahead() == 0);
  first->queue_up({{0, 10}});
  CHECK(first->ahead() == 1);
}

TEST_CASE("one that dies leaves the queue") {
  const GroupFolder folder;
  auto first = member_of(folder);
  const auto second = member_of(folder);
  first->queue_up({{0, 10}});
  second->queue_up({{0, 20}});
  CHECK(second->ahead() == 1);
  first.reset();
  CHECK(second->ahead() == 0);
}

TEST_CASE("a pool takes what is guaranteed, or a part that leaves room for one more") {
  const GroupFolder folder;
  const auto one = member_of(folder);
  Account account;
  REQUIRE(account.share(one.get(), 0));
  CHECK(account.fair_part(true) == UINT64_MAX);  // no limit
  one->state_limit(0, 1000);
  CHECK(account.fair_part(true) == 250);
  CHECK(account.fair_part(false) == 0);
  account.charge(200);
  CHECK(account.fair_part(true) == 400);
  const auto two = member_of(folder);
  const auto three = member_of(folder);
  CHECK(account.fair_part(true) == 300);
  int device = -1;
  REQUIRE(account.guarantee(600, device) == nullptr);
  CHECK(account.fair_part(true) == 600);
  CHECK(account.fair_part(false) == 600);
}

TEST_CASE("a member whose thread that gives is at work is about to answer, one that waits is not") {
  std::atomic<bool> stop{false};
  Membership::Idle self;
  self.pid = ::getpid();
  CHECK_FALSE(self.is_giving());
  std::thread giver([&] {
    ::prctl(PR_SET_NAME, "ration-give");
    while (!stop.load()) {
    }
  });
  bool seen = false;
  for (int look = 0; look < 100'000 && !seen; ++look) {
    seen = self.is_giving();
  }
  stop.store(true);
  giver.join();
  CHECK(seen);
  CHECK_FALSE(self.is_giving());
  self.pid = 0;  // of another PID namespace
  CHECK_FALSE(self.is_giving());
}
