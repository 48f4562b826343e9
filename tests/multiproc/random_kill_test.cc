// Workers are killed at random times and replaced: after each death the total is what the living hold.
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <optional>
#include <vector>

#include "catch.h"
#include "groups.h"

using namespace multiproc;
using namespace ration::ledger;

namespace {

constexpr std::uint32_t kWorkers = 6;
constexpr std::uint64_t kLimits[] = {600 * kMiB, 250 * kMiB};
constexpr std::uint64_t kMostPerCall = 100 * kMiB;

struct Place {
  Gate rested;  // the pause in which it rests
  std::array<std::atomic<std::uint64_t>, 2> held;
  std::array<std::atomic<std::uint64_t>, 2> claimed;
};

struct Table {
  Gate pause;  // odd: rest. Its value identifies the pause
  std::atomic<std::uint64_t> calls;
  std::atomic<std::uint64_t> longest_ns;
  std::atomic<std::uint64_t> longest_alone_ns;  // of calls during which the process was not preempted
  std::atomic<std::uint64_t> exceeded;
  Place places[kWorkers];
};

class Worker {
 public:
  Worker(Table &table, std::uint32_t index, const std::string &folder, std::uint64_t seed)
      : table_(table), place_(table.places[index]), folder_(folder), random_(seed) {}

  [[noreturn]] void work() {
    std::unique_ptr<Membership> member;
    timed([&] { member = join(folder_); });
    for (const int device : {0, 1}) {
      expect(member->device(device == 0 ? kDevice0 : kDevice1, 0) == device, "the devices have other indices");
      timed([&] { member->state_limit(device, kLimits[device]); });
    }
    for (;;) {
      rest();
      const auto device = static_cast<int>(random_.below(2));
      step(*member, device, held_[device], guaranteed_[device]);
      table_.exceeded.fetch_add(member->total(device) > kLimits[device] ? 1 : 0);
    }
  }

 private:
  template <class Call>
  void timed(Call &&call) {
    const long taken_before = times_taken();
    const std::uint64_t begin = now_ns();
    call();
    const std::uint64_t took = now_ns() - begin;
    raise_to(table_.longest_ns, took);
    if (times_taken() == taken_before) {
      raise_to(table_.longest_alone_ns, took);
    }
    table_.calls.fetch_add(1);
  }

  // How often this process lost the processor.
  static long times_taken() {
    struct rusage usage {};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nivcsw;
  }
  static void raise_to(std::atomic<std::uint64_t> &most, std::uint64_t value) {
    std::uint64_t before = most.load();
    while (value > before && !most.compare_exchange_weak(before, value)) {
    }
  }

  void step(Membership &member, int device, std::uint64_t &held, std::uint64_t &guaranteed) {
    const std::uint64_t bytes = 1 + random_.below(kMostPerCall);
    if (random_.below(2) == 0) {
      const bool look = random_.below(4) == 0;
      const bool is_granted_for_sure = held + bytes <= guaranteed;
      timed([&] {
        const bool is_granted = granted(member.reserve(device, bytes, look));
        held += is_granted ? bytes : 0;
        expect(is_granted || !is_granted_for_sure, "refused what is guaranteed");
      });
    } else if (held > 0) {
      const std::uint64_t back = std::min(held, bytes);
      timed([&] { member.release(device, back); });
      held -= back;
    }
    if (random_.below(8) == 0) {
      const std::uint64_t wanted = random_.below(kLimits[device] / kWorkers);
      timed([&] { guaranteed = granted(member.guarantee(device, wanted, false)) ? wanted : guaranteed; });
    }
    if (random_.below(16) == 0) {
      member.publish(device, {held, 1, {}});
    }
  }

  // Between two calls: publishes what it holds and changes nothing until all go on.
  void rest() {
    const std::uint32_t pause = table_.pause.load();
    if (pause % 2 == 0) {
      return;
    }
    for (std::size_t device = 0; device < 2; ++device) {
      place_.held[device].store(held_[device]);
      place_.claimed[device].store(std::max(held_[device], guaranteed_[device]));
    }
    open(place_.rested, pause);
    wait_while(table_.pause, pause);
  }

  Table &table_;
  Place &place_;
  const std::string &folder_;
  Random random_;
  std::uint64_t held_[2] = {};
  std::uint64_t guaranteed_[2] = {};
};

class Killer {
 public:
  Killer(const std::string &folder, std::uint64_t seed) : folder_(folder), random_(seed) {
    workers_.resize(kWorkers);
    for (std::uint32_t i = 0; i < kWorkers; ++i) {
      replace(i);
    }
  }

  void kill_one() {
    const std::uint64_t target = table_->calls.load() + random_.below(200);
    const std::uint64_t deadline = now_ns() + 60'000'000'000;
    while (table_->calls.load() < target && now_ns() < deadline) {
      sched_yield();
    }
    REQUIRE(table_->calls.load() >= target);
    const auto index = static_cast<std::uint32_t>(random_.below(kWorkers));
    workers_[index]->kill();
    compare(index);
    replace(index);
  }

  const Table &table() const { return *table_; }

 private:
  void replace(std::uint32_t index) {
    const std::uint64_t seed = random_.next();
    workers_[index].emplace([&, index, seed] { Worker(*table_, index, folder_, seed).work(); });
  }

  void compare(std::uint32_t dead) {
    const std::uint32_t pause = table_->pause.load() + 1;
    open(table_->pause, pause);
    std::uint64_t held[2] = {};
    std::uint64_t claimed[2] = {};
    for (std::uint32_t i = 0; i < kWorkers; ++i) {
      Place &place = table_->places[i];
      for (std::uint32_t seen = place.rested.load(); i != dead && seen != pause; seen = place.rested.load()) {
        wait_while(place.rested, seen);
      }
      for (std::size_t device = 0; i != dead && device < 2; ++device) {
        held[device] += place.held[device].load();
        claimed[device] += place.claimed[device].load();
      }
    }
    std::string problem;
    const std::vector<Group> groups = read_groups(folder_, problem);
    REQUIRE(groups.size() == 1);
    REQUIRE(groups[0].devices.size() == 2);
    CHECK(groups[0].members.size() == kWorkers - 1);
    for (std::size_t device = 0; device < 2; ++device) {
      CHECK(groups[0].devices[device].reserved == held[device]);
      CHECK(groups[0].devices[device].claimed == claimed[device]);
      CHECK(groups[0].devices[device].limit == kLimits[device]);
    }
    open(table_->pause, pause + 1);
  }

  const std::string folder_;
  Random random_;
  Shared<Table> table_;
  std::vector<std::optional<Child>> workers_;
};

}  // namespace

TEST_CASE("after every random kill the total is what the living hold, to the byte") {
  const Folder folder;
  Killer killer(folder.path(), seed_of("random kills"));
  const int kills = count_of(200, 3000);
  for (int i = 0; i < kills; ++i) {
    INFO("kill " << i);
    killer.kill_one();
  }
  const Table &table = killer.table();
  std::printf("%d kills, %llu calls, longest %llu us, longest uninterrupted %llu us\n", kills,
              static_cast<unsigned long long>(table.calls), static_cast<unsigned long long>(table.longest_ns / 1000),
              static_cast<unsigned long long>(table.longest_alone_ns / 1000));
  CHECK(table.exceeded == 0);
  if (is_long()) {
    CHECK(table.longest_alone_ns < 100'000'000);
  }
}
