// Reservations that race: exactly as many are granted as fit.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <vector>

#include "catch.h"
#include "groups.h"
#include "ledger/ledger.h"

using namespace multiproc;
using ration::ledger::Account;
using ration::ledger::Effort;
using ration::ledger::GroupKind;
using ration::ledger::Ledger;
using ration::ledger::Membership;

namespace {

constexpr std::uint32_t kMost = 64;

struct Table {
  Barrier barrier;
  std::array<std::atomic<std::uint64_t>, 2> granted;  // alternate by round
  std::atomic<std::uint64_t> exceeded;
  std::atomic<std::uint64_t> kept_out;
  std::atomic<std::uint64_t> untrue;  // the total differs from the sum
  std::array<std::atomic<std::uint64_t>, kMost> held;
};

struct Race {
  std::uint32_t processes;
  std::uint32_t rounds;
  std::uint64_t seed;
};

// Each process tries once in a round; `check` runs in one of them after all have tried.
template <class Try, class Undo, class Check>
void run_rounds(Table &table, const Race &race, std::uint32_t self, Try &&attempt, Undo &&undo, Check &&check) {
  for (std::uint32_t round = 0; round < race.rounds; ++round) {
    table.barrier.meet();
    const std::uint64_t got = attempt(round);
    table.held[self].store(got);
    table.barrier.meet();
    if (self == 0) {
      check(round);
    }
    table.barrier.meet();
    if (got > 0) {
      undo(got);
    }
  }
}

void run(const Race &race, Table &table, const std::function<void(std::uint32_t)> &process) {
  table.barrier.count = race.processes;
  std::vector<Child> children;
  for (std::uint32_t i = 0; i < race.processes; ++i) {
    children.emplace_back([&, i] { process(i); });
  }
  for (Child &child : children) {
    REQUIRE(child.ended() == 0);
  }
  CHECK(table.exceeded == 0);
  CHECK(table.kept_out == 0);
  CHECK(table.untrue == 0);
}

std::uint64_t sum_of(const Table &table, std::uint32_t processes) {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < processes; ++i) {
    sum += table.held[i].load();
  }
  return sum;
}

void race_for_one_limit(const Race &race) {
  const Folder folder;
  Shared<Table> table;
  run(race, *table, [&](std::uint32_t self) {
    const std::unique_ptr<Membership> member = join(folder.path());
    const int device = member->device(kDevice0, 0);
    Random same(race.seed);  // the same in every process
    std::uint64_t bytes = 0, fitting = 0;
    const auto attempt = [&](std::uint32_t round) -> std::uint64_t {
      bytes = 1 + same.below(1000 * kMiB);
      fitting = same.below(race.processes + 1);
      // All state the same limit, so it is in effect as soon as the first has stated it.
      const std::uint64_t limit = fitting * bytes + same.below(bytes);
      member->state_limit(device, limit);
      table->barrier.meet();
      const bool got = granted(member->reserve(device, bytes, round % 8 == 0));
      if (member->total(device) > limit) {
        table->exceeded.fetch_add(1);
      }
      table->granted[round % 2].fetch_add(got ? 1 : 0);
      return got ? bytes : 0;
    };
    const auto check = [&](std::uint32_t round) {
      const std::uint64_t got = table->granted[round % 2].exchange(0);
      table->exceeded.fetch_add(got > fitting ? 1 : 0);
      table->kept_out.fetch_add(got < fitting ? 1 : 0);
      table->untrue.fetch_add(member->total(device) != sum_of(*table, race.processes) ? 1 : 0);
    };
    run_rounds(
        *table, race, self, attempt, [&](std::uint64_t held) { member->release(device, held); }, check);
    table->barrier.meet();
    expect(member->total(device) == 0, "bytes are left after all released");
    table->barrier.meet();
  });
}

void race_of_mixed_sizes(const Race &race) {
  const Folder folder;
  Shared<Table> table;
  constexpr std::uint64_t kLimit = 1000 * kMiB;
  run(race, *table, [&](std::uint32_t self) {
    const std::unique_ptr<Membership> member = join(folder.path());
    const int device = member->device(kDevice1, 0);
    member->state_limit(device, kLimit);
    Random random(race.seed + self);
    std::uint64_t wanted = 0;
    const auto attempt = [&](std::uint32_t) -> std::uint64_t {
      wanted = 1 + random.below(kLimit / 2);
      const bool got = granted(member->reserve(device, wanted, false));
      table->exceeded.fetch_add(member->total(device) > kLimit ? 1 : 0);
      table->barrier.meet();
      // No memory was released meanwhile: a refused request still does not fit.
      table->kept_out.fetch_add(!got && wanted <= member->available(device) ? 1 : 0);
      return got ? wanted : 0;
    };
    const auto check = [&](std::uint32_t) {
      table->untrue.fetch_add(member->total(device) != sum_of(*table, race.processes) ? 1 : 0);
    };
    run_rounds(
        *table, race, self, attempt, [&](std::uint64_t held) { member->release(device, held); }, check);
  });
}

// Each process is in two groups: a named one, and a tree around it.
void race_in_two_groups(const Race &race, std::uint64_t fit_group, std::uint64_t fit_tree) {
  const Folder folder;
  Shared<Table> table;
  constexpr std::uint64_t kBytes = 7 * kMiB;
  run(race, *table, [&](std::uint32_t self) {
    Ledger ledger;
    std::string problem;
    Membership *const tree = ledger.join(folder.path(), GroupKind::kTree, "0123456789abcdef", problem);
    expect(tree != nullptr, problem.c_str());
    Membership *const group = ledger.join(folder.path(), GroupKind::kNamed, "g", problem);
    expect(group != nullptr, problem.c_str());
    Account &account = ledger.account(0);
    for (const auto &[member, fitting] : {std::pair{tree, fit_tree}, std::pair{group, fit_group}}) {
      const int device = member->device(kDevice0, 0);
      member->state_limit(device, fitting * kBytes + kBytes - 1);
      account.share(member, device);
    }
    const std::uint64_t fitting = std::min({fit_group, fit_tree, std::uint64_t{race.processes}});
    const auto attempt = [&](std::uint32_t round) -> std::uint64_t {
      const Effort effort = round % 8 == 0 ? Effort::kReclaimFromDead : Effort::kImmediate;
      const bool got = granted(account.reserve(kBytes, effort));
      table->granted[round % 2].fetch_add(got ? 1 : 0);
      return got ? kBytes : 0;
    };
    const auto check = [&](std::uint32_t round) {
      const std::uint64_t got = table->granted[round % 2].exchange(0);
      table->exceeded.fetch_add(got > fitting ? 1 : 0);
      table->kept_out.fetch_add(got < fitting ? 1 : 0);
      for (Membership *member : {tree, group}) {
        table->untrue.fetch_add(member->total(0) != got * kBytes ? 1 : 0);
      }
    };
    run_rounds(
        *table, race, self, attempt, [&](std::uint64_t held) { account.release(held); }, check);
    expect(account.charged() == 0, "the account still holds bytes");
  });
}

const std::uint32_t kRounds = count_of(2'000U, 100'000U);

}  // namespace

TEST_CASE("when processes race for a limit, exactly as many are granted as fit") {
  const std::uint64_t seed = seed_of("race for one limit");
  for (const std::uint32_t processes : {2U, 4U, 8U}) {
    race_for_one_limit({processes, kRounds, seed});
  }
  race_for_one_limit({kMost, 200, seed});
}

TEST_CASE("when requests of different sizes race, none is refused that still fits after all have tried") {
  const std::uint64_t seed = seed_of("race of mixed sizes");
  for (const std::uint32_t processes : {2U, 4U, 8U}) {
    race_of_mixed_sizes({processes, kRounds, seed});
  }
  race_of_mixed_sizes({kMost, 200, seed});
}

TEST_CASE("a race in two groups at once is decided by the tighter one, and both totals are right") {
  race_in_two_groups({4, kRounds, 0}, 2, 3);
  race_in_two_groups({4, kRounds, 0}, 3, 1);
  race_in_two_groups({8, kRounds, 0}, 8, 8);
  race_in_two_groups({8, kRounds, 0}, 5, 5);
}
