// States of a group's file that are written by hand, and what the functions make of them.
#include "ledger/totals.h"

#include <fcntl.h>

#include "catch.h"
#include "group_folder.h"
#include "ledger/life_byte.h"

using namespace ration::ledger;
using shared::Cell;
using shared::Slot;
using shared::Tag;

namespace {

constexpr std::uint32_t kOwner = 2;  // the slot under test
constexpr std::uint32_t kOther = 1;
constexpr std::uint32_t kDevice = 5;

class HandMade {
 public:
  HandMade() {
    std::string problem;
    folder_descriptor_ = open_state_folder(folder_.path(), false, problem);
    REQUIRE(make_group_file(folder_descriptor_.number(), "group-g", "g", problem));
    descriptor_ = open_group_file(folder_descriptor_.number(), "group-g", problem);
    file_ = GroupFile::map(descriptor_.number(), problem);
    REQUIRE(problem.empty());
    REQUIRE(grow(file_, descriptor_.number(), 3));
    REQUIRE(file_.slots() == 4);
  }
  // Somebody locks the life byte of slot 0, for as long as the descriptor lives.
  Descriptor live() const {
    std::string problem;
    Descriptor member = open_group_file(folder_descriptor_.number(), "group-g", problem);
    REQUIRE(lock_life(member.number(), 0) == LifeLock::taken);
    return member;
  }
  const GroupFile &file() const { return file_; }
  int probe() const { return descriptor_.number(); }
  Slot &slot(std::uint32_t index = kOwner) const { return file_.slot(index); }
  Cell &cell(std::uint32_t index = kOwner) const { return slot(index).cells[kDevice]; }
  WideWord &total() const { return file_.header().device[kDevice].total; }
  std::uint64_t limit() const { return file_.header().device[kDevice].limit.load().low; }

  void set_total(std::uint64_t bytes, Tag tag) const {
    REQUIRE(total().exchange(total().load(), {bytes, tag.packed()}));
  }
  void own(std::uint32_t index, std::uint64_t generation = 0) const { slot(index).life.store(generation << 1 | 1); }
  void hold(std::uint64_t even, std::uint64_t odd, std::uint64_t applied) const {
    cell().claimed[0].store(even);
    cell().claimed[1].store(odd);
    cell().applied.store(applied);
  }

 private:
  GroupFolder folder_;
  Descriptor folder_descriptor_;
  Descriptor descriptor_;
  GroupFile file_;
};

}  // namespace

TEST_CASE("the last operation of a slot is the later of the noted one and the tag's") {
  const HandMade made;
  made.hold(100, 200, 2 << 1);  // even and odd numbers; bit 0 is the mark
  made.set_total(500, {kOther, 9 << 1});
  CHECK(last_operation(made.file(), kDevice, kOwner, made.total().load()).claimed == 100);
  made.set_total(500, {kOwner, 3 << 1});
  const LastOperation last = last_operation(made.file(), kDevice, kOwner, made.total().load());
  CHECK(last.operation == 3 << 1);
  CHECK(last.claimed == 200);
  made.set_total(500, {kOwner, (3 << 1) | 1});
  CHECK(last_operation(made.file(), kDevice, kOwner, made.total().load()).claimed == 0);
}

TEST_CASE("a noted operation number only grows, and notes for unused slots change nothing") {
  const HandMade made;
  made.hold(0, 0, 8);
  note_applied(made.file(), kDevice, {kOwner, 6});
  CHECK(made.cell().applied == 8);
  note_applied(made.file(), kDevice, {kOwner, 10});
  CHECK(made.cell().applied == 10);
  note_applied(made.file(), kDevice, Tag::of(0));
  note_applied(made.file(), kDevice, {shared::kSlots + 7, 100});
  CHECK(made.cell().applied == 10);
}

TEST_CASE("an intent is reclaimed only if it reached the total") {
  for (const bool reached : {false, true}) {
    const HandMade made;
    made.own(kOwner);
    made.hold(100, 250, 2 << 1);  // holds 100, intends 250
    made.set_total(reached ? 650 : 500, reached ? Tag{kOwner, 3 << 1} : Tag{kOther, 9 << 1});
    CHECK(reclaim_dead_owner(made.file(), kOwner, 1) == 0);
    CHECK(made.total().load().low == 400);
    CHECK((made.slot().life & 1) == 0);
    CHECK(made.cell(kOther).applied == (reached ? 0 : 9 << 1));
    CHECK(last_operation(made.file(), kDevice, kOwner, made.total().load()).claimed == 0);
  }
}

TEST_CASE("a late reclaim, or one with another life, takes nothing") {
  const HandMade made;
  made.own(kOwner, 3);
  made.hold(100, 0, 2 << 1);
  made.set_total(500, {kOther, 9 << 1});
  CHECK(reclaim_dead_owner(made.file(), kOwner, 5) == 0);
  CHECK(made.total().load().low == 500);
  CHECK(made.slot().life == 7);
  (void)reclaim_dead_owner(made.file(), kOwner, 7);
  CHECK(made.total().load().low == 400);
  CHECK(made.slot().life == 8);
  (void)reclaim_dead_owner(made.file(), kOwner, 7);
  CHECK(made.total().load().low == 400);
  CHECK(made.slot().life == 8);
}

TEST_CASE("reclaiming never takes a total below zero") {
  const HandMade made;
  made.own(kOwner);
  made.hold(100, 0, 2 << 1);
  made.set_total(30, {kOther, 9 << 1});
  (void)reclaim_dead_owner(made.file(), kOwner, 1);
  CHECK(made.total().load().low == 0);
}

TEST_CASE("the limit is the smallest that an owned slot states, and none where none does") {
  const HandMade made;
  made.cell(0).stated.store(1 + 700);
  made.cell(1).stated.store(1 + 300);
  made.cell(2).stated.store(1 + 100);
  made.own(0);
  made.own(1);
  recompute_limit(made.file(), kDevice);  // slot 2 has no owner
  CHECK(made.limit() == 300);
  made.slot(1).life.store(2);
  recompute_limit(made.file(), kDevice);
  CHECK(made.limit() == 700);
  made.slot(0).life.store(2);
  recompute_limit(made.file(), kDevice);
  CHECK(made.limit() == kNoLimit);
  made.cell(3).stated.store(1);  // a limit of 0 counts
  made.own(3);
  recompute_limit(made.file(), kDevice);
  CHECK(made.limit() == 0);
}

TEST_CASE("each recomputation of a limit is counted, and a check leaves a correct limit alone") {
  const HandMade made;
  WideWord &limit = made.file().header().device[kDevice].limit;
  made.cell(0).stated.store(1 + 700);
  made.own(0);
  recompute_limit(made.file(), kDevice);
  const std::uint64_t count = limit.load().high;
  recompute_limit(made.file(), kDevice);
  CHECK(limit.load().high == count + 1);
  check_limit(made.file(), kDevice);
  CHECK(limit.load().high == count + 1);
  made.slot(0).life.store(2);
  check_limit(made.file(), kDevice);
  CHECK(limit.load().low == kNoLimit);
}

TEST_CASE("the limit of a group outlives the last member that states it, until the group has ended") {
  const HandMade made;
  for (const std::uint32_t i : {0U, 1U, 2U}) {
    made.own(i);
  }
  made.cell(0).stated.store(1 + 700);
  made.cell(1).stated.store(1 + 300);
  std::uint32_t cursor = 0;
  const Descriptor own = made.live();  // of slot 0
  (void)reap(made.file(), made.probe(), 0, UINT64_MAX, cursor);
  CHECK(made.limit() == 700);  // a living member states it

  recompute_limits(made.file(), reclaim_dead_owner(made.file(), 0, 1));
  CHECK(made.limit() == 700);
  made.own(3);
  made.cell(3).stated.store(1 + 900);
  recompute_limit(made.file(), kDevice);
  CHECK(made.limit() == 900);
  recompute_limits(made.file(), reclaim_dead_owner(made.file(), 3, 1));
  CHECK(made.limit() == 900);
  made.file().header().device[kDevice].ordered.store(1 + 100);
  recompute_limit(made.file(), kDevice);
  CHECK(made.limit() == 100);
  made.file().header().device[kDevice].ordered.store(0);
  recompute_limit(made.file(), kDevice);
  CHECK(made.limit() == 900);

  made.own(2, 5);
  made.cell(2).stated.store(1 + 50);
  CHECK(remembers(made.file()));
  forget(made.file());
  check_limit(made.file(), kDevice);
  CHECK(made.limit() == kNoLimit);
  recompute_limits(made.file(), reclaim_dead_owner(made.file(), 2, 11));
  CHECK(made.limit() == kNoLimit);
  CHECK_FALSE(remembers(made.file()));
}

TEST_CASE("reaping reclaims from all unlocked slots, recomputes their limits, and spares its own slot") {
  const HandMade made;
  for (std::uint32_t i = 0; i < 4; ++i) {
    made.own(i);
    made.cell(i).claimed[0].store(100);
    made.cell(i).applied.store(2 << 1);
    made.cell(i).stated.store(1 + 1000 - i);
  }
  made.set_total(400, Tag::of(0));
  recompute_limit(made.file(), kDevice);
  REQUIRE(made.limit() == 997);
  std::uint32_t cursor = 2;
  const Descriptor own = made.live();
  const Reaping reaping = reap(made.file(), made.probe(), 0, UINT64_MAX, cursor);
  CHECK(reaping.found);
  CHECK(reaping.whole);
  CHECK(made.total().load().low == 100);
  CHECK(made.limit() == 1000);
  CHECK(made.slot(0).life == 1);
  CHECK_FALSE(reap(made.file(), made.probe(), 0, UINT64_MAX, cursor).found);
}

TEST_CASE("a probe that does not see its own member alive is another file's, and finds nobody dead") {
  const HandMade made, other;
  made.own(0);
  made.own(kOwner);
  const Descriptor own = made.live();
  std::uint32_t cursor = 0;
  CHECK_FALSE(reap(made.file(), other.probe(), 0, UINT64_MAX, cursor).found);
  CHECK_FALSE(reap(made.file(), -1, 0, UINT64_MAX, cursor).found);
  CHECK(made.slot().life == 1);
  CHECK(reap(made.file(), made.probe(), 0, UINT64_MAX, cursor).found);
}
